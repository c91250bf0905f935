/**
 * Why a webhook delivery does not verify. If the signature is valid and only its time is wrong, a clock is wrong. If
 * the bytes are not in the form that the service makes, the body was changed. Otherwise another secret signed them,
 * unless this secret has verified a delivery before: then the body was changed as well.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { signWebhook } from '../../activities/webhook-signature.ts';

export type Diagnosis = 'verified' | 'headers_missing' | 'clock' | 'changed_body' | 'wrong_secret';

export type ReceivedDelivery = { readonly headers: IncomingHttpHeaders; readonly body: Buffer };

const TOLERANCE_SECONDS = 300;

/**
 * @param secret as the service showed it: `whsec_` and base64
 * @param secretIsGood whether it has verified a delivery before
 */
export function diagnose(
  { headers, body }: ReceivedDelivery,
  secret: string,
  at: { readonly now: Date; readonly secretIsGood: boolean },
): Diagnosis {
  const [id, timestamp, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => headers[name],
  );
  if (
    typeof id !== 'string' ||
    typeof timestamp !== 'string' ||
    typeof signature !== 'string' ||
    !/^[0-9]{1,12}$/.test(timestamp)
  )
    return 'headers_missing';
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (signature.split(' ').includes(signWebhook([key], { id, timestamp: Number(timestamp), body }))) {
    return Math.abs(at.now.getTime() / 1_000 - Number(timestamp)) <= TOLERANCE_SECONDS ? 'verified' : 'clock';
  }
  return at.secretIsGood || !isUnchanged(body, id) ? 'changed_body' : 'wrong_secret';
}

/** The service makes the body once, for all attempts: compact JSON on one line, with the id of the header. */
function isUnchanged(body: Buffer, id: string): boolean {
  try {
    const event: unknown = JSON.parse(body.toString());
    return (
      body.equals(Buffer.from(JSON.stringify(event))) &&
      typeof event === 'object' &&
      event !== null &&
      'id' in event &&
      event.id === id
    );
  } catch {
    return false;
  }
}

export const ADVICE: Record<Diagnosis, string> = {
  verified: 'The signature is valid.',
  headers_missing: [
    'The headers webhook-id, webhook-timestamp and webhook-signature are missing.',
    'The service did not send this, or a proxy removed them.',
  ].join(' '),
  clock: [
    `The signature is valid, but its time differs from this machine's clock by more than ${TOLERANCE_SECONDS / 60} minutes.`,
    'Set the clock. If the request was stored and sent again, it is too old.',
  ].join(' '),
  changed_body: [
    'The body is not the one that was signed. Verify the raw bytes before anything parses them.',
    'Look for a proxy or a framework that rewrites JSON, or for another subscription that sends here too.',
  ].join(' '),
  wrong_secret: [
    'The body is unchanged, but another secret signed it.',
    'Use the secret of this subscription, with its whsec_ prefix; after a rotation, use the new one.',
  ].join(' '),
};
