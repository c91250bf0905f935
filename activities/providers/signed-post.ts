/** How the simulated providers deliver: a POST to our own API, repeated by the orchestrator until it is taken. */
import { ApplicationFailure } from '@temporalio/common';
import { request } from 'undici';
import type { ActivityDeps } from '../deps.ts';

const DELIVERY_TIMEOUT_MS = 5_000;

/** @throws ApplicationFailure, retryable, unless the API answered 2xx */
export async function postSigned(
  deps: Pick<ActivityDeps, 'apiBaseUrl'>,
  path: string,
  bytes: Buffer,
  headers: Record<string, string>,
): Promise<void> {
  const { statusCode, body } = await request(`${deps.apiBaseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: bytes,
    signal: AbortSignal.timeout(DELIVERY_TIMEOUT_MS),
  });
  await body.dump();
  if (statusCode < 200 || statusCode > 299) {
    throw ApplicationFailure.create({
      message: `The webhook answered ${statusCode}; the event is sent again.`,
      type: 'webhook_refused',
    });
  }
}
