/**
 * Pays what is in payroll.csv, each line once, however often this program is killed and run again. Then it compares the
 * file with what the service has. Its folder keeps an intent for each line, and a certificate for each paid one.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  certificates,
  createClient,
  isCorridor,
  isCurrency,
  isPaymentMethod,
  isPayoutRail,
} from '../../clients/typescript/index.ts';
import { connection } from '../typescript/connection.ts';

/** Names this payroll in its keys. The next month has another one. */
const BATCH = 'payroll-2026-11';
const AT_ONCE = 5;
const folder = process.argv[2] ?? BATCH;
const client = createClient(connection());

const rows = readFileSync(path.join(import.meta.dirname, 'payroll.csv'), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map(rowOf);
type Row = ReturnType<typeof rowOf>;

function rowOf(line: string) {
  const [reference = '', name = '', corridor = '', rail = '', account = '', currency = '', amount = '', method = ''] =
    line.split(',');
  if (!isCorridor(corridor) || !isPayoutRail(rail) || !isCurrency(currency) || !isPaymentMethod(method))
    throw new Error(`${reference}: unknown corridor, rail, currency or payment method`);
  return { reference, name, corridor, rail, account, currency, amount, method };
}

/** Writes a file completely or not at all, whenever the program dies. */
function save(file: string, content: string | Uint8Array): void {
  writeFileSync(`${file}.part`, content, { mode: 0o600 });
  renameSync(`${file}.part`, file);
}

mkdirSync(folder, { recursive: true, mode: 0o700 });
// The account that the payroll is paid from. A linking widget gives the public token to your server.
const { access_token } = await client.banklink.exchange({ public_token: 'public-sandbox-checking' });

/** The stored intent of a line, or a new one, which is stored before it is sent. */
async function intentOf({ reference, name, corridor, rail, account, currency, amount, method }: Row) {
  const file = path.join(folder, `${reference}.intent.json`);
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8'));
  const recipient = await client.recipients.create(
    {
      kind: 'contractor',
      entity_type: 'individual',
      name,
      country: corridor.slice(-2),
      ...(account.startsWith('+')
        ? { mobile_details: { provider: 'Example Mobile', phone_number: account } }
        : { bank_details: { bank_name: 'Example Bank', account_number: account, currency } }),
    },
    { idempotencyKey: `${BATCH}.${reference}.recipient` },
  );
  const intent = client.settlements.prepare(
    {
      ...{ corridor, amount, recipient_id: recipient.recipient_id, payment_method: method, payout_rail: rail },
      ...(method === 'ach' ? { banklink_account_token: access_token } : { card_token: 'tok_visa' }),
      ...{ purpose: 'payroll', reference, metadata: { batch: BATCH } },
    },
    { idempotencyKey: `${BATCH}.${reference}` },
  );
  save(file, JSON.stringify(intent));
  return intent;
}

const keys = await client.certificates.keys();

async function pay(row: Row): Promise<void> {
  const { settlement_id: settlementId } = await client.settlements.create(await intentOf(row));
  const held = await client.settlements.wait(settlementId, { until: ['compliance_hold'] });
  if (held.status === 'compliance_hold') {
    // 1 000.00 or more: its recipient must be verified. Here this program decides; elsewhere the identity provider does.
    const options = { idempotencyKey: `${BATCH}.${row.reference}.verification` };
    const { verification_id: id } = await client.verifications.start({ recipient_id: held.recipient_id }, options);
    await client.verifications.complete(id, { status: 'verified' });
  }
  const { certificate_id: certId } = await client.settlements.wait(settlementId);
  const file = path.join(folder, `${row.reference}.certificate.json`);
  if (certId === null || existsSync(file)) return;
  const signed = await client.certificates.downloadSigned(certId);
  if (!certificates.verify(signed, keys, { certId, settlementId }).valid) throw new Error(`${row.reference}: forged`);
  save(file, signed.file);
}

// Five lines at a time: each lane takes the next line when its last one has ended.
const next = rows.values();
const lane = async (): Promise<void> => {
  for (const row of next) await pay(row);
};
await Promise.all(Array.from({ length: AT_ONCE }, lane));

const listed = await client.settlements.list({ metadata: { batch: BATCH } }).first(2 * rows.length);
const found = new Map(listed.map((one) => [one.reference, one]));
const paid = new Map<string, bigint>();
let differences = listed.length - rows.length;
for (const { reference, name, amount } of rows) {
  const one = found.get(reference);
  if (one?.status === 'settled' && one.amount === amount) {
    const { source_currency: source, destination_amount: received, destination_currency: currency } = one;
    paid.set(source, (paid.get(source) ?? 0n) + BigInt(amount.replace('.', '')));
    console.log(`${reference} ${name}: ${amount} ${source}, ${received} ${currency}`);
  } else {
    differences += 1;
    console.log(`${reference} ${name}: NOT PAID, ${one?.status ?? 'unknown'} (${one?.failure?.code ?? ''})`);
  }
}
for (const [currency, minor] of [...paid].sort())
  console.log(`paid ${minor / 100n}.${String(minor % 100n).padStart(2, '0')} ${currency}`);
console.log(`${rows.length} lines, ${listed.length} settlements, ${differences} to look at`);
