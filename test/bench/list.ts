/**
 * Pages of a list of settlements in an organization with a million of them, compared with the same page in one
 * that has only these. Each filter is asked for its first page, for page 10 000 (or its middle) and for its last page.
 */
import { loadavg } from 'node:os';
import type pg from 'pg';
import { request } from 'undici';
import type { QueryOf } from '../../clients/typescript/operation.ts';
import { queryText } from '../../clients/typescript/transport.ts';
import { cursorText, PAGE } from '../../domain/page.ts';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import type { Printer } from '../../ops/command-line/program.ts';
import type { Partner } from '../../scripts/sandbox/partner.ts';
import { fillSettlements } from '../support/settlement-fill.ts';
import { type Cell, percentile, ratios, spreadOf, type Table } from './bench.ts';
import { createPayer } from './payer.ts';
import type { BenchStack } from './stack.ts';

const PAGE_WANTED = 10_000;
/** How often a page is read in a round. */
const CALLS = 11;
const RATIO_MAX = 1.5;
const HEAD = [
  ...['filter', 'matches', 'the page alone, ms', 'first page', `page ${PAGE_WANTED} or the middle`, 'last page'],
  'one row ÷ no row',
];
const FIRST_DAY = '2020-01-01T00:00:00.000Z';
const LAST_DAY = '2100-01-01T00:00:00.000Z';

/** Two of three rows have the first value, so that each filter selects more rows than page 10 000 needs. */
const oneOf = (common: string, ...others: string[]): string =>
  `(ARRAY[${[...others.flatMap(() => [common, common]), ...others].map((value) => `'${value}'`).join(', ')}])`;
const pick = (values: string, step: number): string => `${values}[1 + (n / ${step}) % array_length(${values}, 1)]`;

const STATUS = pick(oneOf('settled', 'awaiting_funds', 'canceled', 'failed'), 1);
const CORRIDOR = pick(oneOf('US-JM', 'CA-JM', 'US-TT'), 7);
const METHOD = pick(oneOf('card', 'wire', 'ach'), 11);

type Query = QueryOf<'/v1/caribbean/settlements'>;
/** Query parameters of a filter, and the same as a condition of SQL. */
type Filter = { readonly query: Query; readonly sql: string };

const filtersOf = (recipientId: string): Record<string, Filter> => {
  const status: Filter = { query: { status: ['settled'] }, sql: `status = 'settled'` };
  const recipient: Filter = { query: { recipient_id: recipientId }, sql: `recipient_id = '${recipientId}'` };
  const reference: Filter = { query: { reference: 'invoice 0' }, sql: `reference = 'invoice 0'` };
  const label: Filter = { query: { metadata: { team: 'a' } }, sql: `metadata->>'team' = 'a'` };
  const open: Filter = {
    query: { status: ['awaiting_funds', 'settled'] },
    sql: `status IN ('awaiting_funds', 'settled')`,
  };
  const chosen = { corridor: 'US-JM', payment_method: 'card' } as const;
  const isChosen = `corridor = 'US-JM' AND payment_method = 'card'`;
  const both = (...filters: readonly Filter[]): Filter => ({
    query: Object.assign({}, ...filters.map(({ query }) => query)),
    sql: filters.map(({ sql }) => sql).join(' AND '),
  });
  return {
    none: { query: {}, sql: 'true' },
    status,
    'two statuses, one of them open': open,
    corridor: { query: { corridor: 'US-JM' }, sql: `corridor = 'US-JM'` },
    'payment method': { query: { payment_method: 'card' }, sql: `payment_method = 'card'` },
    'status, corridor, payment method': both(status, { query: chosen, sql: isChosen }),
    recipient,
    'recipient, two statuses': both(recipient, open),
    reference,
    'reference, recipient, status': both(reference, recipient, status),
    metadata: label,
    'metadata, two statuses, corridor': both(label, open, { query: { corridor: 'US-JM' }, sql: `corridor = 'US-JM'` }),
    'metadata, recipient': both(label, recipient),
    dates: { query: { created_from: FIRST_DAY, created_to: LAST_DAY }, sql: 'true' },
    'dates, status': both(status, { query: { created_from: FIRST_DAY }, sql: 'true' }),
  };
};

export type Organizations = Readonly<Record<'large' | 'small' | 'empty', Partner>>;

/** Each filter in turn. @param of the recipient of most of the settlements, and how often each page is measured */
export async function measureLists(
  { warn }: Printer,
  stack: BenchStack,
  organizations: Organizations,
  { recipientId, rounds }: { readonly recipientId: string; readonly rounds: number },
): Promise<{ readonly table: Table; readonly areFast: boolean }> {
  const measured: Measured[] = [];
  for (const [name, filter] of Object.entries(filtersOf(recipientId))) {
    measured.push(await measure(stack, organizations, { name, filter, rounds, calls: CALLS }));
    warn(`${name}, load ${loadavg()[0]?.toFixed(1)}`);
  }
  return {
    table: { head: HEAD, rows: measured.map(({ row }) => row) },
    areFast: measured.every(({ isFast }) => isFast),
  };
}

/**
 * @param columns SQL for a column of copy number `n` of the large organization, in place of that of the benchmark
 * @returns the recipient of most of the settlements
 */
export async function fill(
  stack: BenchStack,
  { large, small }: Organizations,
  settlements: number,
  columns: Readonly<Record<string, string>> = {},
): Promise<string> {
  const payer = await createPayer(stack, SANDBOX_NAMES.screeningHit);
  const templateId = await payer.settle();
  const { rows } = await stack.database.query('SELECT recipient_id AS id FROM settlements');
  const recipientId = String(rows[0]?.id);
  await fillSettlements(stack.database, stack.sealer, {
    orgId: large.orgId,
    templateId,
    settlements,
    columns: {
      status: STATUS,
      corridor: CORRIDOR,
      payment_method: METHOD,
      recipient_id: `CASE WHEN n % 3 = 0 THEN 'other ' || n % 1000 ELSE '${recipientId}' END`,
      reference: `'invoice ' || CASE WHEN n % 5 < 2 THEN n ELSE 0 END`,
      metadata: `jsonb_build_object('team', CASE WHEN n % 7 < 2 THEN 'b' ELSE 'a' END)`,
      ...columns,
    },
  });
  await fillSettlements(stack.database, stack.sealer, {
    orgId: small.orgId,
    templateId,
    settlements: PAGE.limitDefault,
    columns: {
      ...{ status: `'settled'`, corridor: `'US-JM'`, payment_method: `'card'`, recipient_id: `'${recipientId}'` },
      ...{ reference: `'invoice 0'`, metadata: `'{"team": "a"}'::jsonb` },
    },
  });
  await stack.database.query('VACUUM (ANALYZE)');
  return recipientId;
}

/** A page in the large organization, and the one that it is compared with. */
type Place = { readonly url: string; readonly reference: readonly [url: string, of: Partner] };
type Measured = { readonly row: readonly Cell[]; readonly isFast: boolean };

async function measure(
  stack: BenchStack,
  { large, small, empty }: Organizations,
  { name, filter, rounds, calls }: { name: string; filter: Filter; rounds: number; calls: number },
): Promise<Measured> {
  const where = `org_id = '${large.orgId}' AND ${filter.sql}`;
  const { rows } = await stack.database.query(`SELECT count(*)::int AS matches FROM settlements WHERE ${where}`);
  const matches = Number(rows[0]?.matches);
  const pages = Math.ceil(matches / PAGE.limitDefault);
  const url = (page: Query): string =>
    `${stack.apiUrl}/v1/caribbean/settlements${queryText({ ...filter.query, ...page })}`;
  const after = async (page: number): Promise<string> =>
    url({ after: await cursorBefore(stack.database, where, (page - 1) * PAGE.limitDefault) });
  const [first, one] = [url({}), url({ limit: 1 })];
  const places: readonly Place[] = [
    { url: first, reference: [first, small] },
    { url: await after(Math.min(PAGE_WANTED, Math.ceil(pages / 2))), reference: [first, small] },
    { url: await after(pages), reference: [first, small] },
    { url: one, reference: [one, empty] },
  ];
  const alone: number[] = [];
  const ofPlaces: number[][] = [];
  for (const { url: page, reference } of places) {
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round <= rounds; round += 1) {
      const times = [await medianMs(page, large, calls), await medianMs(...reference, calls)] as const;
      // The first round warms up.
      if (round === 0) continue;
      ours.push(times[0]);
      theirs.push(times[1]);
    }
    if (ofPlaces.length === 0) alone.push(...theirs);
    ofPlaces.push(ratios(ours, theirs));
  }
  const isFast = ofPlaces.every((values) => spreadOf(values).median <= RATIO_MAX);
  return { row: [name, String(matches), alone, ...ofPlaces], isFast };
}

/** The cursor of the row that has this many rows before it and itself. */
async function cursorBefore(database: pg.Pool, where: string, rank: number): Promise<string> {
  const { rows } = await database.query<{ at: Date; id: string }>(
    `SELECT created_at AS at, settlement_id AS id FROM settlements WHERE ${where}
     ORDER BY created_at DESC, settlement_id DESC OFFSET ${rank - 1} LIMIT 1`,
  );
  const [row] = rows;
  if (!row) throw new Error(`No row has rank ${rank} WHERE ${where}.`);
  return cursorText(row);
}

/**
 * Without the TypeScript client: it needs 0.4 ms for each page (measured), which would be in both times of a ratio and
 * move it towards 1.
 */
async function medianMs(url: string, { apiKey }: Partner, calls: number): Promise<number> {
  const times: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const askedMs = performance.now();
    const answer = await request(url, { headers: { 'x-api-key': apiKey } });
    await answer.body.dump();
    if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.statusCode}`);
    times.push(performance.now() - askedMs);
  }
  return percentile(times, 0.5);
}
