/** What the database refuses whatever the code does: states outside the table, unbalanced books, changes to what is permanent. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Connection, connect } from '../../db/client.ts';
import { newId, settlementIdOf } from '../../db/id.ts';
import { organizations, recipients, settlements } from '../../db/schema/index.ts';
import { price } from '../../domain/pricing.ts';
import {
  acceptedSettlement,
  canMove,
  SETTLEMENT_STATUSES,
  type SettlementStatus,
  TRANSITIONS,
} from '../../domain/settlement.ts';
import { allLives } from '../support/arbitrary.ts';
import { createTestDatabase } from '../support/postgres.ts';

const CHECK_VIOLATION = '23514';
const RESTRICT_VIOLATION = '23001';
const AT = new Date('2026-11-21T08:00:00.000Z');

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let connection: Connection;
let orgId: string;
let recipientId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  connection = connect(database.databaseUrl, { poolSizeMax: 4, name: 'test', onIdleError: () => undefined });
  orgId = newId();
  await connection.db.insert(organizations).values({
    orgId,
    kind: 'partner',
    name: 'Acme',
    country: 'JM',
    contactEmail: 'dev@acme.example',
    environment: 'local sandbox',
    createdAt: AT,
  });
  recipientId = newId();
  await connection.db.insert(recipients).values({
    recipientId,
    orgId,
    kind: 'vendor',
    entityType: 'business',
    name: 'Blue Mountain Supplies',
    country: 'JM',
    metadata: {},
    isActive: true,
    verificationStatus: 'unverified',
    createdAt: AT,
    updatedAt: AT,
  });
});

afterAll(async () => {
  await connection.close();
  await database.drop();
});

/** A row that only its status may make wrong. */
function settlementRow() {
  const priced = price({ corridor: 'US-JM', amount: '250.00', paymentMethod: 'card' });
  if ('faults' in priced) throw new Error(JSON.stringify(priced.faults));
  return acceptedSettlement({
    ...priced.pricing,
    settlementId: settlementIdOf(orgId, newId()),
    orgId,
    origin: 'v2',
    recipientId,
    purpose: null,
    reference: null,
    metadata: {},
    environment: 'local sandbox',
    requestId: 'test-request',
    createdAt: AT,
  });
}

async function insertAccepted(): Promise<string> {
  const row = settlementRow();
  await connection.db.insert(settlements).values(row);
  return row.settlementId;
}

const move = (settlementId: string, to: SettlementStatus) =>
  connection.pool.query('UPDATE settlements SET status = $2 WHERE settlement_id = $1', [settlementId, to]);

/** A settlement in this state, brought there by the shortest way. */
async function insertIn(status: SettlementStatus): Promise<string> {
  const settlementId = await insertAccepted();
  const ways = allLives()
    .filter((life) => life.includes(status))
    .map((life) => life.slice(1, life.indexOf(status) + 1));
  for (const step of ways.sort((a, b) => a.length - b.length)[0] ?? []) await move(settlementId, step);
  return settlementId;
}

async function statusOf(settlementId: string): Promise<string | undefined> {
  const { rows } = await connection.pool.query<{ status: string }>(
    'SELECT status FROM settlements WHERE settlement_id = $1',
    [settlementId],
  );
  return rows[0]?.status;
}

describe('a settlement', () => {
  test.each(SETTLEMENT_STATUSES.filter((status) => status !== 'accepted'))('cannot begin as %s', async (status) => {
    const row = { ...settlementRow(), status };
    await expect(connection.db.insert(settlements).values(row)).rejects.toMatchObject({
      cause: { code: CHECK_VIOLATION },
    });
    expect(await statusOf(row.settlementId)).toBeUndefined();
  });

  const pairs = SETTLEMENT_STATUSES.flatMap((from) =>
    SETTLEMENT_STATUSES.filter((to) => to !== from).map((to) => [from, to] as const),
  );

  test.each(pairs.filter(([from, to]) => !canMove(from, to)))('cannot move from %s to %s', async (from, to) => {
    const settlementId = await insertIn(from);
    await expect(move(settlementId, to)).rejects.toMatchObject({ code: CHECK_VIOLATION });
    expect(await statusOf(settlementId)).toBe(from);
  });

  test.each(pairs.filter(([from, to]) => canMove(from, to)))('moves from %s to %s', async (from, to) => {
    const settlementId = await insertIn(from);
    await move(settlementId, to);
    expect(await statusOf(settlementId)).toBe(to);
  });

  test('knows the same table in the database as in the code', async () => {
    const { rows } = await connection.pool.query<{ rule: string }>(
      `SELECT from_status || ' → ' || to_status AS rule FROM settlement_transition_rules`,
    );
    const inCode = TRANSITIONS.filter(({ from }) => from !== null).map(({ from, to }) => `${from} → ${to}`);
    expect(new Set(rows.map(({ rule }) => rule))).toEqual(new Set(inCode));
    expect(rows).toHaveLength(inCode.length);
  });

  test.each([
    ['an amount of nothing', 'amount_minor = 0'],
    ['fees that do not add up', 'total_fees_minor = total_fees_minor + 1'],
    ['fees of the whole amount', 'amount_minor = total_fees_minor'],
    ['a destination below nothing', 'destination_amount_minor = -1'],
    ['less than nothing received', 'amount_received_minor = -1'],
    ['a clock that runs behind', 'clock_offset_ms = -1'],
  ])('cannot have %s', async (_name, change) => {
    const settlementId = await insertAccepted();
    await expect(
      connection.pool.query(`UPDATE settlements SET ${change} WHERE settlement_id = $1`, [settlementId]),
    ).rejects.toMatchObject({
      code: CHECK_VIOLATION,
    });
  });
});

describe('a posting set', () => {
  type Line = readonly [account: string, currency: string, amountMinor: number];

  async function post(settlementId: string, lines: readonly Line[]): Promise<void> {
    const rows = lines.map(
      ([account, currency, amountMinor], line) =>
        `('${settlementId}', 'funded', ${line}, '${account}', '${currency}', ${amountMinor}, now())`,
    );
    await connection.pool.query(
      `INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at) VALUES ${rows.join(', ')}`,
    );
  }

  async function linesOf(settlementId: string): Promise<number> {
    return (await connection.pool.query('SELECT 1 FROM postings WHERE settlement_id = $1', [settlementId])).rows.length;
  }

  test.each<[string, Line[]]>([
    ['with one line', [['settlement_funds', 'USD', 100]]],
    [
      'that is out by one minor unit',
      [
        ['settlement_funds', 'USD', 100],
        ['refund_due', 'USD', -99],
      ],
    ],
    [
      'that balances only across two currencies',
      [
        ['settlement_funds', 'USD', 100],
        ['payout_paid', 'JMD', -100],
      ],
    ],
    [
      'that balances in one of two currencies',
      [
        ['settlement_funds', 'USD', 5],
        ['refund_due', 'USD', -5],
        ['payout_paid', 'JMD', 1],
      ],
    ],
  ])('%s is refused whole', async (_name, lines) => {
    const settlementId = await insertAccepted();
    await expect(post(settlementId, lines)).rejects.toMatchObject({ code: CHECK_VIOLATION });
    expect(await linesOf(settlementId)).toBe(0);
  });

  test('that balances is written once, and not a second time for the same step', async () => {
    const settlementId = await insertAccepted();
    const lines: Line[] = [
      ['settlement_funds', 'USD', 100],
      ['refund_due', 'USD', -100],
    ];
    await post(settlementId, lines);
    await expect(post(settlementId, lines)).rejects.toMatchObject({ code: '23505' });
    expect(await linesOf(settlementId)).toBe(2);
  });

  test('is judged on its own in a statement that writes several', async () => {
    const [one, other] = [await insertAccepted(), await insertAccepted()];
    const statement = `INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at) VALUES ($1, 'funded', 0, 'settlement_funds', 'USD', 1, now()), ($2, 'funded', 0, 'refund_due', 'USD', -1, now())`;
    await expect(connection.pool.query(statement, [one, other])).rejects.toMatchObject({ code: CHECK_VIOLATION });
  });
});

describe('what is permanent', () => {
  const PERMANENT = {
    certificates: 'cert_id',
    events: 'event_id',
    idempotency_keys: 'key',
    postings: 'step',
    provider_events: 'event_id',
    settlement_transitions: 'sequence',
  };
  const attempts = Object.entries(PERMANENT).flatMap(([table, column]) => [
    [table, 'updated', `UPDATE ${table} SET ${column} = ${column}`],
    [table, 'deleted', `DELETE FROM ${table}`],
    [table, 'truncated', `TRUNCATE ${table} CASCADE`],
  ]);

  test.each(attempts)('%s cannot be %s', async (_table, _how, statement) => {
    await expect(connection.pool.query(statement)).rejects.toMatchObject({ code: RESTRICT_VIOLATION });
  });

  test('stays when its settlement is to be deleted', async () => {
    const settlementId = await insertAccepted();
    await connection.pool.query(
      `INSERT INTO settlement_transitions (settlement_id, sequence, to_status, at) VALUES ($1, 1, 'accepted', now())`,
      [settlementId],
    );
    await expect(
      connection.pool.query('DELETE FROM settlements WHERE settlement_id = $1', [settlementId]),
    ).rejects.toMatchObject({ code: '23503' });
  });
});
