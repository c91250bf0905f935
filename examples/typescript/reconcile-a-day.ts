/** Compares the settlements of a day with your own book, and explains each difference. */
import { randomUUID } from 'node:crypto';
import { createClient, type Settlement } from '../../clients/typescript/index.ts';
import { connection } from './connection.ts';

const client = createClient(connection());
/** Keeps this run apart from others of the same day. */
const batch = randomUUID();

type Entry = { readonly reference: string; readonly status: Settlement['status']; readonly amount: string };

/** What the partner believes. */
const book: readonly Entry[] = ['INV-1001', 'INV-1002', 'INV-1003', 'INV-1005'].map((reference) => ({
  reference,
  status: 'settled',
  amount: reference === 'INV-1003' ? '300.00' : '250.00',
}));

const DAY_MS = 24 * 60 * 60_000;
const midnight = (at: string | undefined, afterMs = 0): string =>
  `${new Date(Date.parse(at ?? '') + afterMs).toISOString().slice(0, 10)}T00:00:00Z`;

// The day is that of the settlements, by the service's clock, and not that of the moment in which this runs.
const created = (await settleADay()).sort((a, b) => (a < b ? -1 : 1));
const day = {
  created_from: midnight(created.at(0)),
  created_to: midnight(created.at(-1), DAY_MS),
  metadata: { batch },
};

const byReference = new Map<string, Settlement>();
for await (const found of client.settlements.list(day)) byReference.set(found.reference ?? '', found);

for (const reference of [...new Set([...book.map((entry) => entry.reference), ...byReference.keys()])].sort()) {
  const booked = book.find((entry) => entry.reference === reference);
  console.log(`${reference} ${explain(booked, byReference.get(reference))}`);
}
let settled = 0;
for await (const _ of client.settlements.list({ ...day, status: ['settled'] })) settled += 1;
console.log(`${byReference.size} settlements today, ${settled} of them settled`);

function explain(booked: Entry | undefined, found: Settlement | undefined): string {
  if (found === undefined) return 'is missing at the service: nothing was accepted, so its intent can be sent again';
  const { status, amount, source_currency: currency, failure } = found;
  if (booked === undefined) return `is missing in the book: ${status}, ${amount} ${currency}`;
  if (booked.status !== status) return `differs: booked as ${booked.status}, but ${status} (${failure?.code})`;
  if (booked.amount !== amount)
    return `differs: booked with ${booked.amount} ${currency}, ${status} with ${amount} ${currency}`;
  return `agrees: ${status}, ${amount} ${currency}`;
}

/** Four settlements, one of which fails. A real day has them already. @returns when they were created */
async function settleADay(): Promise<string[]> {
  const { recipient_id } = await client.recipients.create({
    kind: 'contractor',
    entity_type: 'individual',
    name: 'Marcia Brown',
    country: 'JM',
    bank_details: { bank_name: 'Example Bank of Jamaica', account_number: '004512378', currency: 'JMD' },
  });
  const settle = async (reference: string): Promise<string> => {
    const accepted = await client.settlements.create({
      corridor: 'US-JM',
      amount: '250.00',
      recipient_id,
      payment_method: 'card',
      payout_rail: 'bank_transfer',
      card_token: reference === 'INV-1002' ? 'tok_declined' : 'tok_visa',
      reference,
      metadata: { batch },
    });
    return (await client.settlements.wait(accepted.settlement_id)).created_at;
  };
  return await Promise.all(['INV-1001', 'INV-1002', 'INV-1003', 'INV-1004'].map(settle));
}
