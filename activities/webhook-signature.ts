/**
 * Standard Webhooks signatures (contract §11): HMAC-SHA256 over `<id>.<timestamp>.<body>` with the secret's bytes.
 * There is one `v1,<base64>` for each active secret.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** `timestamp` in seconds since the epoch; `body` exactly as it is sent. */
export type SignedContent = { readonly id: string; readonly timestamp: number; readonly body: Buffer };

const signature = (secret: Buffer, { id, timestamp, body }: SignedContent): string =>
  `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;

/** The value of the header `webhook-signature`: the signature of the current secret comes first. */
export const signWebhook = (secrets: readonly Buffer[], content: SignedContent): string =>
  secrets.map((secret) => signature(secret, content)).join(' ');

/** Whether one of the signatures in the header was made with this secret. */
export function isSignedBy(secret: Buffer, header: string, content: SignedContent): boolean {
  const expected = Buffer.from(signature(secret, content));
  return header
    .split(' ')
    .map((given) => Buffer.from(given))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
}
