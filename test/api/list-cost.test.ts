/**
 * What a page of a long list costs PostgreSQL, in rows and in blocks: both are the same on every machine. The
 * statements of each request are explained as they were sent.
 */
import type pg from 'pg';
import { describe, expect } from 'vitest';
import { createSealer } from '../../db/seal.ts';
import { COUNTED_MAX, cursorText } from '../../domain/page.ts';
import { type Caller, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { openSettlement } from '../support/settlement.ts';
import { fillSettlements } from '../support/settlement-fill.ts';
import { recordQueries, type SentQuery } from '../support/statement-count.ts';

const SETTLEMENTS = 3 * COUNTED_MAX;
const LIMIT = 20;
/** The status, corridor and payment method of each settlement here make 16 combinations, each read for one page. */
const RANGES_MAX = 40;
/** With a second named filter, each entry's settlement is read too. */
const COUNTED_ROWS_MAX = 2 * COUNTED_MAX + 1_000;
const PAGE_ROWS_MAX = RANGES_MAX * (LIMIT + 3);
/** With the history of each row of the page, and two or three blocks of the index for each combination. */
const PAGE_BLOCKS_MAX = 2_000;
/** A row that is looked up by its key takes up to four blocks. */
const COUNT_BLOCKS_MAX = 5 * COUNTED_MAX;
const STATUSES = `(ARRAY['settled', 'settled', 'settled', 'awaiting_funds', 'canceled'])[1 + n % 5]`;

type Node = {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Node[];
};

const test = withApi()
  .extend('recipientId', FILE, async ({ api, partner }) => {
    const templateId = await openSettlement(api, partner);
    const { rows } = await api.owner.pool.query('SELECT recipient_id AS id FROM settlements');
    await fillSettlements(api.owner.pool, createSealer([TEST_SECRETS.encryption]), {
      ...{ orgId: partner.orgId, templateId, settlements: SETTLEMENTS },
      columns: {
        status: STATUSES,
        corridor: `(ARRAY['US-JM', 'CA-JM'])[1 + n % 2]`,
        payment_method: `(ARRAY['card', 'wire', 'card'])[1 + n % 3]`,
        // None of the canceled ones is the recipient's.
        recipient_id: `CASE WHEN n % 5 = 4 THEN 'other' ELSE '${rows[0]?.id}' END`,
        reference: `'invoice'`,
        metadata: `'{"team": "a"}'::jsonb`,
      },
    });
    await expect.poll(() => vacuum(api.owner.pool)).toBe(true);
    return String(rows[0]?.id);
  })
  .extend(
    'plansOf',
    FILE,
    ({ api, partner, recipientId }) =>
      (query: string) =>
        explainPage(api, partner, query.replace('RECIPIENT', recipientId)),
  );

/**
 * As PostgreSQL does by itself for a table of any age. Somebody's snapshot may keep it from marking rows as visible to
 * all; with so few rows, it would then read the table instead of an index.
 *
 * @returns whether nearly every row is marked
 */
async function vacuum(pool: pg.Pool): Promise<boolean> {
  await pool.query('VACUUM (ANALYZE) settlements, settlement_metadata, settlement_transitions');
  const { rows } = await pool.query(
    `SELECT bool_and(relallvisible > 0.95 * relpages) AS marked FROM pg_class
     WHERE relname IN ('settlements', 'settlement_metadata')`,
  );
  return rows[0]?.marked;
}

type Plans = { readonly page: Node; readonly count: Node | undefined };

async function explainPage(api: TestApi, caller: Caller, query: string): Promise<Plans> {
  const recorded = recordQueries(api.connection.pool);
  const answer = await api.call(caller, 'GET', `/v2/settlements?limit=${LIMIT}&${query}`);
  const sent = recorded().filter(({ text }) => /\bsettlement(s|_metadata)\b/.test(text));
  expect([answer.statusCode, jsonOf(answer).length]).toEqual([200, /rejected/.test(query) ? 0 : LIMIT]);
  const [count, page] = [true, false].map((isCount) => sent.find(({ text }) => /count\(/.test(text) === isCount));
  if (!page) throw new Error('no statement read the page');
  return { page: await explain(api.owner.pool, page), count: count && (await explain(api.owner.pool, count)) };
}

async function explain(pool: pg.Pool, { text, values }: SentQuery): Promise<Node> {
  const { rows } = await pool.query(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${text}`, values);
  return rows[0]['QUERY PLAN'][0].Plan;
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** The rows that were read of the settlements and of their metadata. */
const rowsRead = (plan: Node): number =>
  nodesOf(plan)
    .filter(
      (node) => node['Node Type'].includes('Scan') && /^settlement(s|_metadata)$/.test(node['Relation Name'] ?? ''),
    )
    .reduce(
      (sum, node) => sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    );

const blocksRead = (plan: Node): number => plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];

const AFTER = `after=${cursorText({ at: new Date(Date.now() - (SETTLEMENTS / 2) * 1_000), id: 'stl_a' })}`;

describe('a page of 30 000 settlements reads few rows, and counts no more than it must', () => {
  test.for([
    '',
    AFTER,
    'status=settled',
    'status=settled&status=awaiting_funds',
    'status=rejected',
    `status=settled&${AFTER}`,
    'corridor=CA-JM',
    'payment_method=wire',
    'corridor=CA-JM&payment_method=card&status=settled',
    'created_from=2020-01-01T00:00:00Z',
    'created_to=2100-01-01T00:00:00Z&status=settled',
    'recipient_id=RECIPIENT',
    'recipient_id=RECIPIENT&status=awaiting_funds',
    'recipient_id=RECIPIENT&status=rejected',
    'reference=invoice',
    'reference=invoice&corridor=CA-JM',
    'reference=invoice&status=rejected',
    `created_from=2020-01-01T00:00:00Z&created_to=2100-01-01T00:00:00Z&${AFTER}`,
    'metadata[team]=a',
    'metadata[team]=a&recipient_id=RECIPIENT',
    'metadata[team]=a&recipient_id=RECIPIENT&status=awaiting_funds',
    'reference=invoice&recipient_id=RECIPIENT&status=settled',
    'metadata[team]=a&reference=invoice&status=settled',
    'metadata[team]=a&status=awaiting_funds',
    'metadata[team]=a&status=rejected',
    `metadata[team]=a&payment_method=wire&${AFTER}`,
  ])('bounded reads with ?%s', async (query, { plansOf }) => {
    const { page, count } = await plansOf(query);
    expect(rowsRead(page)).toBeLessThan(PAGE_ROWS_MAX);
    expect(blocksRead(page)).toBeLessThan(PAGE_BLOCKS_MAX);
    // Absent where a list that is known to be long was asked for before.
    expect(count ? rowsRead(count) : 0).toBeLessThan(COUNTED_ROWS_MAX);
    expect(count ? blocksRead(count) : 0).toBeLessThan(COUNT_BLOCKS_MAX);
  });
});

describe('a list that is longer than is counted', () => {
  test('is counted once, if it cannot become shorter', async ({ plansOf }) => {
    for (const query of [
      'recipient_id=RECIPIENT&created_from=2020-01-02T00:00:00Z',
      'status=settled&status=canceled',
    ]) {
      expect((await plansOf(query)).count).toBeDefined();
      expect((await plansOf(query)).count).toBeUndefined();
      expect((await plansOf(`${query}&${AFTER}`)).count).toBeUndefined();
    }
  });

  test('is counted each time, if settlements can leave it, and shows its total once it is short enough', async ({
    api,
    partner,
    plansOf,
  }) => {
    const query = 'status=accepted&status=canceled&status=awaiting_funds';
    for (let time = 0; time < 2; time += 1) expect((await plansOf(query)).count).toBeDefined();
    const total = async () =>
      (await api.call(partner, 'GET', `/v2/settlements?status=awaiting_funds&status=accepted`)).headers[
        'x-total-count'
      ];
    expect(await total()).toBe(String(SETTLEMENTS / 5 + 1));
  });

  test('is counted once, if those alone that cannot leave it are as many', async ({ plansOf }) => {
    const query = 'status=awaiting_funds&status=settled&created_from=2020-01-03T00:00:00Z';
    expect((await plansOf(query)).count).toBeDefined();
    expect((await plansOf(query)).count).toBeUndefined();
  });

  test('says nothing about the same list of another organization', async ({ api, plansOf }) => {
    await plansOf('status=settled');
    const other = await api.createCaller('read');
    expect((await api.call(other, 'GET', '/v2/settlements?status=settled')).headers['x-total-count']).toBe('0');
  });
});
