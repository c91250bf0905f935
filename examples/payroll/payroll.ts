/**
 * Pays what is in payroll.csv, each line once, however often this program is killed and run again. Then it compares the
 * file with what the service has. Its folder keeps an intent for each line, and a certificate for each paid one.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  certificates,
  createClient,
  isCorridor,
  isCurrency,
  isPaymentMethod,
  isPayoutRail,
  type Settlement,
  TERMINAL_STATUSES,
} from '../../clients/typescript/index.ts';
import { connection } from '../typescript/connection.ts';

/** Names this payroll in its keys. The next month has another one. */
const BATCH = 'payroll-2026-11';
const AT_ONCE = 5;
/** A line that takes longer is still open when this program ends. Run it again later. */
const WAIT = { timeoutMs: Number(process.env['WAIT_S'] ?? 60) * 1_000 };
const [folder = BATCH, file = path.join(import.meta.dirname, 'payroll.csv')] = process.argv.slice(2);
const client = createClient(connection());

const rows = readFileSync(file, 'utf8').trim().split(/\r?\n/).slice(1).map(rowOf);
type Row = ReturnType<typeof rowOf>;
const references = new Set<string | null>();
for (const { reference } of rows) {
  // The keys are made of it: of two lines with the same one, only the first would be paid.
  if (references.has(reference)) throw new Error(`${reference}: two lines have this reference`);
  references.add(reference);
}

function rowOf(line: string) {
  const [reference = '', name = '', corridor = '', rail = '', account = '', currency = '', amount = '', method = ''] =
    line.split(',');
  if (!isCorridor(corridor) || !isPayoutRail(rail) || !isCurrency(currency) || !isPaymentMethod(method))
    throw new Error(`${reference}: unknown corridor, rail, currency or payment method`);
  if (!/^\d+(\.\d\d?)?$/.test(amount)) throw new Error(`${reference}: the amount must be as 310, 310.5 or 310.50`);
  return { reference, name, corridor, rail, account, currency, amount: textOf(minorOf(amount)), method };
}

/** In minor units, without a float: 31050n for `310.5` and for `310.50`. */
function minorOf(amount: string): bigint {
  const [major = '', minor = ''] = amount.split('.');
  return BigInt(major + minor.padEnd(2, '0'));
}

function textOf(minor: bigint): string {
  return `${minor / 100n}.${String(minor % 100n).padStart(2, '0')}`;
}

/** Writes a file completely or not at all, whenever the program dies. */
function save(target: string, content: string | Uint8Array): void {
  writeFileSync(`${target}.part`, content, { mode: 0o600 });
  renameSync(`${target}.part`, target);
}

mkdirSync(folder, { recursive: true, mode: 0o700 });
// The account that the payroll is paid from. A linking widget gives the public token to your server.
const { access_token } = await client.banklink.exchange({ public_token: 'public-sandbox-checking' });

type Stored = { readonly row: Row; readonly intent: SettleIntent };
type SettleIntent = ReturnType<typeof client.settlements.prepare>;

const intentFile = ({ reference }: Row) => path.join(folder, `${reference}.intent.json`);
const storedOf = (row: Row): Stored | undefined =>
  existsSync(intentFile(row)) ? JSON.parse(readFileSync(intentFile(row), 'utf8')) : undefined;

/** Which cells of a line were another thing when its intent was prepared. Empty: none. */
function preparedAs(row: Row, stored: Stored | undefined): string {
  const now = new Map(Object.entries(row));
  const was = Object.entries(stored?.row ?? {}).filter(([name, cell]) => cell !== now.get(name));
  return was.map(([name, cell]) => `${name} ${cell}`).join(', ');
}

/**
 * The stored intent of a line, or a new one, which is stored before it is sent. A corrected line takes the place of one
 * of which nothing was accepted. Both have the same key, so that only one of them can ever be accepted, also if a
 * request of the first one is still on its way.
 */
async function intentOf(row: Row): Promise<SettleIntent> {
  const { reference, name, corridor, rail, account, currency, amount, method } = row;
  const stored = storedOf(row);
  const wasAccepted = async () =>
    (await client.settlements.list({ reference, metadata: { batch: BATCH } }).first(1)).length > 0;
  if (stored && (preparedAs(row, stored) === '' || (await wasAccepted()))) return stored.intent;
  const person = {
    kind: 'contractor',
    entity_type: 'individual',
    name,
    country: corridor.slice(-2),
    ...(account.startsWith('+')
      ? { mobile_details: { provider: 'Example Mobile', phone_number: account } }
      : { bank_details: { bank_name: 'Example Bank', account_number: account, currency } }),
  } as const;
  // A corrected recipient is another one.
  const digest = createHash('sha256').update(JSON.stringify(person)).digest('hex').slice(0, 16);
  const options = { idempotencyKey: `${BATCH}.${reference}.recipient.${digest}` };
  const recipient = await client.recipients.create(person, options);
  const intent = client.settlements.prepare(
    {
      ...{ corridor, amount, recipient_id: recipient.recipient_id, payment_method: method, payout_rail: rail },
      ...(method === 'ach' && { banklink_account_token: access_token }),
      ...(method === 'card' && { card_token: 'tok_visa' }),
      ...{ purpose: 'payroll', reference, metadata: { batch: BATCH } },
    },
    { idempotencyKey: `${BATCH}.${reference}` },
  );
  save(intentFile(row), JSON.stringify({ row, intent } satisfies Stored));
  return intent;
}

const keys = await client.certificates.keys();
const certificateOf = ({ reference }: Row) => path.join(folder, `${reference}.certificate.json`);

async function finish(row: Row, settlementId: string): Promise<void> {
  const held = await client.settlements.wait(settlementId, { ...WAIT, until: ['compliance_hold'] });
  if (held.status === 'compliance_hold') {
    // 1 000.00 or more: its recipient must be verified. Here this program decides; elsewhere the identity provider
    // does.
    const options = { idempotencyKey: `${BATCH}.${row.reference}.verification` };
    const { verification_id: id } = await client.verifications.start({ recipient_id: held.recipient_id }, options);
    await client.verifications.complete(id, { status: 'verified' });
  }
  const { certificate_id: certId } = await client.settlements.wait(settlementId, WAIT);
  if (certId === null || existsSync(certificateOf(row))) return;
  const signed = await client.certificates.downloadSigned(certId);
  if (!certificates.verify(signed, keys, { certId, settlementId }).valid) throw new Error('its certificate is forged');
  save(certificateOf(row), signed.file);
}

/** Five lines at a time: each lane takes the next line when its last one has ended. A fault of one stops no other. */
async function forEachLine(work: (row: Row) => Promise<void>): Promise<void> {
  const next = rows.values();
  const lane = async (): Promise<void> => {
    for (const row of next) await work(row).catch(({ message }) => console.error(`${row.reference}: ${message}`));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

// All are sent before any is waited for, so that a slow one delays no other.
const sent = new Map<Row, string>();
await forEachLine(async (row) => {
  sent.set(row, (await client.settlements.create(await intentOf(row))).settlement_id);
});
await forEachLine(async (row) => {
  const settlementId = sent.get(row);
  if (settlementId !== undefined) await finish(row, settlementId);
});

/** Why somebody must look at a line; undefined for one that is paid as the file says. */
function differenceOf(row: Row, one: Settlement | undefined): string | undefined {
  if (one === undefined) return 'NOT PAID, unknown to the service';
  const stored = storedOf(row);
  const was = preparedAs(row, stored);
  const prepared = was && `, prepared as ${was}`;
  if (!TERMINAL_STATUSES.some((status) => status === one.status)) return `STILL OPEN, ${one.status}${prepared}`;
  if (one.status !== 'settled') return `NOT PAID, ${one.status} (${one.failure?.code ?? ''})${prepared}`;
  if (was) return `paid, but prepared as ${was}`;
  const { corridor, rail, currency, amount, method } = row;
  const wanted = [corridor, rail, currency, amount, method];
  const given = [one.corridor, one.payout_rail, one.destination_currency, one.amount, one.payment_method];
  const at = wanted.findIndex((cell, index) => cell !== given[index]);
  if (at >= 0) return `paid, but ${given[at]} instead of ${wanted[at]}`;
  if (stored && JSON.parse(stored.intent.body).recipient_id !== one.recipient_id)
    return 'paid, but to another recipient';
  return existsSync(certificateOf(row)) ? undefined : 'paid, but its certificate is not kept';
}

const listed = await client.settlements.list({ metadata: { batch: BATCH } }).first(Number.POSITIVE_INFINITY);
const found = new Map(listed.map((one) => [one.reference, one]));
const surplus = listed.filter((one) => !references.has(one.reference) || found.get(one.reference) !== one);
const paid = new Map<string, bigint>();
let differences = surplus.length;
for (const row of rows) {
  const one = found.get(row.reference);
  const difference = differenceOf(row, one);
  if (difference !== undefined) differences += 1;
  const received = `${one?.amount} ${one?.source_currency}, ${one?.destination_amount} ${one?.destination_currency}`;
  console.log(`${row.reference} ${row.name}: ${difference ?? received}`);
  if (one?.status === 'settled')
    paid.set(one.source_currency, (paid.get(one.source_currency) ?? 0n) + minorOf(one.amount));
}
for (const one of surplus) console.log(`${one.reference} ${one.settlement_id}: SURPLUS, ${one.status}`);
for (const [currency, minor] of [...paid].sort()) console.log(`paid ${textOf(minor)} ${currency}`);
console.log(`${rows.length} lines, ${listed.length} settlements, ${differences} to look at`);
