/**
 * Says of a delivery whether it verifies and, when it does not, which of the three usual reasons it is. A signature that
 * matches under another time is a clock; bytes that are not as we make them were changed on the way; bytes that are, but
 * do not match, were signed with another secret, unless this secret has matched before.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isSignedBy } from '../../activities/webhook-signature.ts';

export type Diagnosis = 'verified' | 'headers_missing' | 'clock' | 'changed_body' | 'wrong_secret';

export type ReceivedDelivery = { readonly headers: IncomingHttpHeaders; readonly body: Buffer };

const TOLERANCE_SECONDS = 300;

/**
 * @param secret as it was shown: `whsec_` and base64
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
  if (isSignedBy(key, signature, { id, timestamp: Number(timestamp), body })) {
    return Math.abs(at.now.getTime() / 1_000 - Number(timestamp)) <= TOLERANCE_SECONDS ? 'verified' : 'clock';
  }
  return at.secretIsGood || !isAsWeSendIt(body, id) ? 'changed_body' : 'wrong_secret';
}

/** One line of compact JSON whose id is that of the header: what the service makes, once, for every attempt. */
function isAsWeSendIt(body: Buffer, id: string): boolean {
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
  verified: 'The signature is right.',
  headers_missing:
    'The headers webhook-id, webhook-timestamp and webhook-signature did not arrive. This is no delivery of ours, or something in between dropped them.',
  clock: `The signature is right, but its time is more than ${TOLERANCE_SECONDS / 60} minutes from this machine's. Set the clock; if the request was kept somewhere, it is too old.`,
  changed_body:
    'The body is not what was signed. Verify the raw bytes before anything parses them; look for a proxy or a framework that rewrites JSON.',
  wrong_secret:
    'The body is as it was sent, but this secret did not sign it. Take the secret of this very subscription, with its whsec_, and the latest one after a rotation.',
};
