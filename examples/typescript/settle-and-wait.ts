/** Settles 250 US dollars, waits for the end, and checks the certificate without the service. */
import { writeFile } from 'node:fs/promises';
import { certificates, createClient } from '../../clients/typescript/index.ts';
import { connection } from './connection.ts';

const client = createClient(connection());

const recipient = await client.recipients.create({
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'Example Bank of Jamaica', account_number: '004512378', currency: 'JMD' },
});

// The intent is stored before it is sent. If this program dies now, the stored intent settles once and not twice.
const intent = client.settlements.prepare({
  corridor: 'US-JM',
  amount: '250.00',
  recipient_id: recipient.recipient_id,
  payment_method: 'card',
  payout_rail: 'bank_transfer',
  card_token: 'tok_visa',
  reference: 'INV-1001',
});
await writeFile(process.env['INTENT_FILE'] ?? '/dev/null', JSON.stringify(intent), { mode: 0o600 });

const accepted = await client.settlements.create(intent);
console.log(`accepted: ${accepted.amount} ${accepted.source_currency} by card for ${recipient.name}`);

const ended = await client.settlements.wait(accepted.settlement_id);
if (ended.status !== 'settled') throw new Error(`${ended.status}: ${ended.failure?.message}`);
console.log(`settled: ${ended.destination_amount} ${ended.destination_currency}, simulated`);

const certId = ended.certificate_id ?? '';
const [download, keys] = await Promise.all([client.certificates.download(certId), client.certificates.keys()]);
const { valid } = certificates.verify(download, keys, { certId, settlementId: ended.settlement_id });
console.log(`certificate ${certId}: ${valid ? 'valid' : 'NOT valid'}, checked offline`);

const again = await client.settlements.create(intent);
console.log(`sent again: ${again.settlement_id === accepted.settlement_id ? 'the same' : 'ANOTHER'} settlement`);
