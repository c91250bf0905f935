/** Sends the card processor's events to the API of a test. */
import { TEST_SECRETS, type TestApi } from './api.ts';
import { cardprocSignature } from './provider-event.ts';

export { cardprocBody } from './provider-event.ts';

export const signCardproc = (bytes: Buffer, secret: string = TEST_SECRETS.cardproc): Record<string, string> =>
  cardprocSignature(bytes, secret);

/** Sends an event as the processor does. */
export function sendCardproc(api: TestApi, event: object | Buffer) {
  const bytes = Buffer.isBuffer(event) ? event : Buffer.from(JSON.stringify(event));
  return api.call(null, 'POST', '/v2/webhooks/cardproc', bytes, signCardproc(bytes));
}
