/** How the simulated providers deliver: a POST to our own API, which Temporal retries until the API accepts it. */
import { ApplicationFailure } from '@temporalio/common';
import { request } from 'undici';
import type { ActivityDeps } from '../deps.ts';

const DELIVERY_TIMEOUT_MS = 5_000;

/** @throws ApplicationFailure `webhook_refused`, retryable, when the API does not answer 2xx */
export async function postSigned(
  deps: Pick<ActivityDeps, 'apiBaseUrl' | 'crash'>,
  path: string,
  bytes: Buffer,
  headers: Record<string, string>,
): Promise<void> {
  deps.crash?.('signed_post:before');
  const { statusCode, body } = await request(`${deps.apiBaseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: bytes,
    signal: AbortSignal.timeout(DELIVERY_TIMEOUT_MS),
  });
  await body.dump();
  deps.crash?.('signed_post:after');
  if (statusCode < 200 || statusCode > 299) {
    throw ApplicationFailure.create({
      message: `The webhook answered ${statusCode}. The event is sent again.`,
      type: 'webhook_refused',
    });
  }
}
