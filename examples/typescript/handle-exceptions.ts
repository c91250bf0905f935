/** A hold, a decline, a partial payment and a dispute: what each looks like, and what you do about it. */
import { createClient } from '../../clients/typescript/index.ts';
import { connection } from './connection.ts';

const client = createClient(connection());

const recipient = await client.recipients.create({
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'Example Bank of Jamaica', account_number: '004512378', currency: 'JMD' },
});

const settle = async (cardToken: string, amount = '250.00'): Promise<string> => {
  const accepted = await client.settlements.create({
    corridor: 'US-JM',
    amount,
    recipient_id: recipient.recipient_id,
    payment_method: 'card',
    payout_rail: 'bank_transfer',
    card_token: cardToken,
  });
  return accepted.settlement_id;
};

/** From 1 000.00, the recipient must be verified. The decision about it releases every settlement that waits for it. */
async function hold(): Promise<void> {
  const id = await settle('tok_visa', '1500.00');
  const held = await client.settlements.wait(id, { until: ['compliance_hold'] });
  console.log(`hold: ${held.status}, because ${held.amount} ${held.source_currency} need a verified recipient`);
  const verification = await client.verifications.start({ recipient_id: recipient.recipient_id });
  await client.verifications.complete(verification.verification_id, { status: 'verified' });
  const ended = await client.settlements.wait(id);
  console.log(`hold: ${ended.status} after the verification`);
}

/** A settlement that failed never settles. The payer tries again: that is another settlement, with a key of its own. */
async function decline(): Promise<void> {
  const ended = await client.settlements.wait(await settle('tok_declined'));
  console.log(`decline: ${ended.status} (${ended.failure?.code})`);
  const second = await client.settlements.wait(await settle('tok_visa'));
  console.log(`decline: ${second.status} with another card`);
}

/** Parts add up. Until they cover the amount, the settlement waits; if they never do, what came is due back. */
async function partialPayment(): Promise<void> {
  const id = await settle('tok_manual');
  await client.settlements.wait(id, { until: ['awaiting_funds'] });
  await client.sandbox.sendEvent(id, { event: 'collection_partial', amount: '100.00' });
  const part = await client.settlements.wait(id, { until: ({ amount_received }) => amount_received !== '0.00' });
  console.log(`partial: ${part.amount_received} of ${part.amount} ${part.source_currency} received`);
  await client.sandbox.sendEvent(id, { event: 'collection_succeeded' });
  const ended = await client.settlements.wait(id);
  console.log(`partial: ${ended.status} after the rest`);
}

/** A dispute can come after the end, and changes no status: read `exceptions`, or receive `settlement.exception`. */
async function dispute(): Promise<void> {
  const id = await settle('tok_dispute');
  const ended = await client.settlements.wait(id);
  console.log(`dispute: ${ended.status}`);
  const disputed = await client.settlements.wait(id, { until: ({ exceptions }) => exceptions.length > 0 });
  console.log(`dispute: ${disputed.exceptions[0]?.type}; the status stays ${disputed.status}`);
}

await hold();
await decline();
await partialPayment();
await dispute();
