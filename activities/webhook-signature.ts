/**
 * Standard Webhooks signatures (contract §11): HMAC-SHA256 over `<id>.<timestamp>.<body>` with the secret's bytes, one
 * `v1,<base64>` for each secret that is active.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** `timestamp` in whole seconds; `body` as it is sent. */
export type SignedContent = { readonly id: string; readonly timestamp: number; readonly body: Buffer };

const signature = (secret: Buffer, { id, timestamp, body }: SignedContent): string =>
  `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;

/** The value of `webhook-signature`; the current secret's first. */
export const signWebhook = (secrets: readonly Buffer[], content: SignedContent): string =>
  secrets.map((secret) => signature(secret, content)).join(' ');

/** Whether one of the space-separated signatures is this secret's. */
export function isSignedBy(secret: Buffer, header: string, content: SignedContent): boolean {
  const expected = Buffer.from(signature(secret, content));
  return header
    .split(' ')
    .map((given) => Buffer.from(given))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
}
