/** A consumer signs in with a one-time code, sends money, and keeps the certificate. */
import { randomUUID } from 'node:crypto';
import { certificates, createClient, createConsumerClient, isApiError } from '../../clients/typescript/index.ts';
import { baseUrl } from './connection.ts';

const consumer = createConsumerClient({ baseUrl });

// Outside the local sandbox the code comes by email, and the answer does not have it.
const { challenge_id, sandbox_code } = await consumer.requestOtp({ email: `${randomUUID()}@example.com` });
await consumer.verifyOtp({ challenge_id, code: sandbox_code ?? '' });
console.log('signed in');

const recipient = await consumer.recipients.create({
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'Example Bank of Jamaica', account_number: '004512378', currency: 'JMD' },
});

const quote = await consumer.quotes.create({ corridor: 'US-JM', amount: '250.00', payment_method: 'card' });
const { amount, source_currency, destination_amount, destination_currency } = quote;
console.log(`quote: ${amount} ${source_currency} become ${destination_amount} ${destination_currency}`);

const started = await consumer.transfers.create({
  quote_id: quote.quote_id,
  recipient_id: recipient.recipient_id,
  card_token: 'tok_visa',
});
const ended = await consumer.transfers.wait(started.transfer_id);
console.log(`transfer: ${ended.status}`);

const certId = ended.certificate_id ?? '';
const download = await consumer.transfers.certificate(ended.transfer_id);
// The keys are public, so this needs no API key.
const keys = await createClient({ baseUrl }).certificates.keys();
const { valid } = certificates.verify(download, keys, { certId, settlementId: ended.settlement_id });
console.log(`certificate ${certId}: ${valid ? 'valid' : 'NOT valid'}, checked offline`);

await consumer.logout();
const refusal = await consumer.me().catch((error: unknown) => error);
console.log(`signed out: ${isApiError(refusal) ? refusal.code : refusal}`);
