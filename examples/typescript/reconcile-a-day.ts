/** Compares the settlements of a day with your own book, and explains each difference. */
import { randomUUID } from 'node:crypto';
import { createClient, type Settlement } from '../../clients/typescript/index.ts';
import { connection } from './connection.ts';

const client = createClient(connection());
/** Keeps this run apart from others of the same day. */
const batch = randomUUID();

type Entry = { readonly reference: string; readonly status: Settlement['status']; readonly amount: string };

/** What the partner believes. */
const book: readonly Entry[] = [1, 2, 3, 5, 6, 7].map((number) => ({
  reference: `INV-100${number}`,
  status: 'settled',
  amount: number === 3 ? '300.00' : '250.00',
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

/** Several may have one reference: an order that was declined and sent again, or one that was paid twice. */
const byReference = new Map<string, Settlement[]>();
for await (const one of client.settlements.list(day)) {
  const reference = one.reference ?? '';
  byReference.set(reference, [...(byReference.get(reference) ?? []), one]);
}

for (const reference of [...new Set([...book.map((entry) => entry.reference), ...byReference.keys()])].sort()) {
  const booked = book.find((entry) => entry.reference === reference);
  console.log(`${reference} ${explain(booked, byReference.get(reference) ?? [])}`);
}
const all = [...byReference.values()].flat();
let settled = 0;
for await (const _ of client.settlements.list({ ...day, status: ['settled'] })) settled += 1;
console.log(`${all.length} settlements today, ${settled} of them settled`);

function textOf({ status, amount, source_currency: currency, failure }: Settlement): string {
  return failure ? `${status} (${failure.code})` : `${status}, ${amount} ${currency}`;
}

/** @param found the newest first */
function explain(booked: Entry | undefined, found: readonly Settlement[]): string {
  const notPaid = found.filter(({ status }) => ['rejected', 'expired', 'failed', 'canceled'].includes(status));
  const paid = found.filter((one) => !notPaid.includes(one));
  if (paid.length > 1) return `differs: paid or being paid ${paid.length} times: ${paid.map(textOf).join('; ')}`;
  const [one = notPaid.shift()] = paid;
  if (one === undefined) return 'is missing at the service: nothing was accepted, so its intent can be sent again';
  const beside = notPaid.map((other) => `; beside it ${textOf(other)}`).join('');
  const { status, amount, source_currency: currency } = one;
  if (booked === undefined) return `is missing in the book: ${textOf(one)}${beside}`;
  if (booked.status !== status) return `differs: booked as ${booked.status}, but ${textOf(one)}${beside}`;
  if (booked.amount !== amount)
    return `differs: booked with ${booked.amount} ${currency}, ${status} with ${amount} ${currency}${beside}`;
  return `agrees: ${textOf(one)}${beside}`;
}

/** Some settlements, of which two fail. A real day has them already. @returns when they were created */
async function settleADay(): Promise<string[]> {
  const { recipient_id } = await client.recipients.create({
    kind: 'contractor',
    entity_type: 'individual',
    name: 'Marcia Brown',
    country: 'JM',
    bank_details: { bank_name: 'Example Bank of Jamaica', account_number: '004512378', currency: 'JMD' },
  });
  const settle = async (reference: string, card_token = 'tok_visa'): Promise<string> => {
    const accepted = await client.settlements.create({
      corridor: 'US-JM',
      amount: '250.00',
      recipient_id,
      payment_method: 'card',
      payout_rail: 'bank_transfer',
      card_token,
      reference,
      metadata: { batch },
    });
    return (await client.settlements.wait(accepted.settlement_id)).created_at;
  };
  return await Promise.all([
    ...['INV-1001', 'INV-1003', 'INV-1004', 'INV-1006', 'INV-1007', 'INV-1007'].map((one) => settle(one)),
    ...['INV-1002', 'INV-1006'].map((one) => settle(one, 'tok_declined')),
  ]);
}
