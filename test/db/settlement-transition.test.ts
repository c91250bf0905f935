/**
 * What the database refuses, even if the code is wrong: states outside the table, unbalanced journals, and changes of
 * permanent rows.
 */
import { describe, expect } from 'vitest';
import type { Connection } from '../../db/client.ts';
import { newId, settlementIdOf } from '../../db/id.ts';
import { recipients, settlements } from '../../db/schema/index.ts';
import {
  SETTLEMENT_STATUSES,
  type Settlement,
  type SettlementStatus,
  TRANSITIONS,
} from '../../domain/settlement/state.ts';
import { allLives } from '../support/arbitrary.ts';
import { certificateFacts } from '../support/certificate.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { insertTestOrganization } from '../support/organization.ts';

const CHECK_VIOLATION = '23514';
const FOREIGN_KEY_VIOLATION = '23503';
const RESTRICT_VIOLATION = '23001';
const UNIQUE_VIOLATION = '23505';
const AT = new Date('2026-11-21T08:00:00.000Z');

/** `rows`: settlements of one organization, written without the code of the service. */
const test = withDatabase(4).extend('rows', FILE, ({ connection }) => createRows(connection));

async function createRows({ db, pool }: Connection) {
  const { orgId } = await insertTestOrganization(db);
  const recipientId = newId();
  await db.insert(recipients).values({
    recipientId,
    orgId,
    kind: 'vendor',
    entityType: 'business',
    country: 'JM',
    metadata: {},
    dataKeySealed: 'none',
    personalDataSealed: 'none',
    isActive: true,
    verificationStatus: 'unverified',
    createdAt: AT,
    updatedAt: AT,
  });
  const insertAccepted = async (): Promise<string> => {
    const row = acceptedRow(orgId, recipientId);
    await db.insert(settlements).values(row);
    return row.settlementId;
  };
  const move = (settlementId: string, to: SettlementStatus) =>
    pool.query(
      `WITH before AS (SELECT status FROM settlements WHERE settlement_id = $1), moved AS (
        UPDATE settlements SET status = $2, version = version + 1 WHERE settlement_id = $1 RETURNING version
      ) INSERT INTO settlement_transitions (settlement_id, sequence, from_status, to_status, at)
      SELECT $1, moved.version, before.status, $2, now() FROM before, moved`,
      [settlementId, to],
    );
  return {
    /** A valid row, for a test to change. */
    accepted: () => acceptedRow(orgId, recipientId),
    insertAccepted,
    move,
    /** A settlement that entered this state on the shortest path. */
    insertIn: async (status: SettlementStatus): Promise<string> => {
      const settlementId = await insertAccepted();
      for (const step of shortestPathTo(status)) await move(settlementId, step);
      return settlementId;
    },
    statusOf: async (settlementId: string): Promise<string | undefined> => {
      const { rows } = await pool.query<{ status: string }>('SELECT status FROM settlements WHERE settlement_id = $1', [
        settlementId,
      ]);
      return rows[0]?.status;
    },
  };
}

const acceptedRow = (orgId: string, recipientId: string): Settlement => ({
  ...certificateFacts().settlement,
  settlementId: settlementIdOf(orgId, newId()),
  orgId,
  recipientId,
  status: 'accepted',
  version: 1,
  eventSequence: 1,
  amountReceivedMinor: 0n,
});

const LIVES = allLives();

/** The states after `accepted` up to this one. */
function shortestPathTo(status: SettlementStatus): readonly SettlementStatus[] {
  const paths = LIVES.filter((life) => life.includes(status)).map((life) => life.slice(1, life.indexOf(status) + 1));
  return paths.sort((a, b) => a.length - b.length)[0] ?? [];
}

describe('a settlement', () => {
  test.for(SETTLEMENT_STATUSES.filter((status) => status !== 'accepted'))(
    'cannot begin as %s',
    async (status, { connection, rows }) => {
      const row = { ...rows.accepted(), status };
      await expect(connection.db.insert(settlements).values(row)).rejects.toMatchObject({
        cause: { code: CHECK_VIOLATION },
      });
      expect(await rows.statusOf(row.settlementId)).toBeUndefined();
    },
  );

  test('changes no status without the transition in its history', async ({ connection, rows }) => {
    const settlementId = await rows.insertAccepted();
    const bare = `UPDATE settlements SET status = 'awaiting_funds', version = version + 1 WHERE settlement_id = $1`;
    await expect(connection.pool.query(bare, [settlementId])).rejects.toMatchObject({ code: CHECK_VIOLATION });
    const jump = `WITH moved AS (
        UPDATE settlements SET status = 'funded', version = version + 1 WHERE settlement_id = $1 RETURNING version
      ) INSERT INTO settlement_transitions (settlement_id, sequence, from_status, to_status, at)
      SELECT $1, version, 'awaiting_funds', 'funded', now() FROM moved`;
    await expect(connection.pool.query(jump, [settlementId])).rejects.toMatchObject({ code: CHECK_VIOLATION });
    expect(await rows.statusOf(settlementId)).toBe('accepted');
  });

  // The trigger reads the table of transitions, which is compared with the code below.
  test.for([
    ['accepted', 'funded'],
    ['awaiting_funds', 'settled'],
    ['settled', 'failed'],
  ] as const)('cannot move from %s to %s', async ([from, to], { rows }) => {
    const settlementId = await rows.insertIn(from);
    // A state that it was in before is refused by its history already.
    const refused = expect.stringMatching(`^(${CHECK_VIOLATION}|${UNIQUE_VIOLATION})$`);
    await expect(rows.move(settlementId, to)).rejects.toMatchObject({ code: refused });
    expect(await rows.statusOf(settlementId)).toBe(from);
  });

  test('moves as the table allows', async ({ rows }) => {
    const settlementId = await rows.insertIn('accepted');
    await rows.move(settlementId, 'awaiting_funds');
    expect(await rows.statusOf(settlementId)).toBe('awaiting_funds');
  });

  test('has the same transitions in the database as in the code', async ({ connection }) => {
    const { rows: rules } = await connection.pool.query<{ rule: string }>(
      `SELECT from_status || ' → ' || to_status AS rule FROM settlement_transition_rules`,
    );
    const inCode = TRANSITIONS.filter(({ from }) => from !== null).map(({ from, to }) => `${from} → ${to}`);
    expect(new Set(rules.map(({ rule }) => rule))).toEqual(new Set(inCode));
    expect(rules).toHaveLength(inCode.length);
  });

  test.for([
    ['an amount of zero', 'amount_minor = 0'],
    ['fees that do not sum up to the total', 'total_fees_minor = total_fees_minor + 1'],
    ['fees as high as the amount', 'amount_minor = total_fees_minor'],
    ['a negative destination amount', 'destination_amount_minor = -1'],
    ['a negative received amount', 'amount_received_minor = -1'],
    ['more taken back than came in', 'taken_back_minor = amount_received_minor + 1'],
    ['a clock behind real time', 'clock_offset_ms = -1'],
  ] as const)('cannot have %s', async ([_name, change], { owner, rows }) => {
    const settlementId = await rows.insertAccepted();
    const client = await owner.pool.connect();
    try {
      // The terms are permanent, which would be refused first.
      await client.query('BEGIN; ALTER TABLE settlements DISABLE TRIGGER settlements_terms_permanent');
      await expect(
        client.query(`UPDATE settlements SET ${change} WHERE settlement_id = $1`, [settlementId]),
      ).rejects.toMatchObject({ code: CHECK_VIOLATION });
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });
});

test('more than the amount can be taken back, where more came in and was given back', async ({ owner, rows }) => {
  const settlementId = await rows.insertAccepted();
  const { rowCount } = await owner.pool.query(
    `UPDATE settlements SET amount_received_minor = 2 * amount_minor, amount_refunded_minor = amount_minor,
      taken_back_minor = 2 * amount_minor WHERE settlement_id = $1`,
    [settlementId],
  );
  expect(rowCount).toBe(1);
});

describe('a posting set', () => {
  type Line = readonly [account: string, currency: string, amountMinor: number];

  async function post({ pool }: Connection, settlementId: string, lines: readonly Line[]): Promise<void> {
    const values = lines.map(
      ([account, currency, amountMinor], line) =>
        `('${settlementId}', 'funded', ${line}, '${account}', '${currency}', ${amountMinor}, now())`,
    );
    await pool.query(
      `INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at) VALUES ${values.join(', ')}`,
    );
  }

  async function countLines({ pool }: Connection, settlementId: string): Promise<number> {
    return (await pool.query('SELECT 1 FROM postings WHERE settlement_id = $1', [settlementId])).rows.length;
  }

  test.for<[string, Line[]]>([
    ['with one line', [['settlement_funds', 'USD', 100]]],
    [
      'whose sum is one minor unit',
      [
        ['settlement_funds', 'USD', 100],
        ['refund_due', 'USD', -99],
      ],
    ],
    [
      'that sums to zero only across two currencies',
      [
        ['settlement_funds', 'USD', 100],
        ['payout_paid', 'JMD', -100],
      ],
    ],
    [
      'that sums to zero in one of two currencies',
      [
        ['settlement_funds', 'USD', 5],
        ['refund_due', 'USD', -5],
        ['payout_paid', 'JMD', 1],
      ],
    ],
  ])('%s is refused, and no line of it is written', async ([_name, lines], { connection, rows }) => {
    const settlementId = await rows.insertAccepted();
    await expect(post(connection, settlementId, lines)).rejects.toMatchObject({ code: CHECK_VIOLATION });
    expect(await countLines(connection, settlementId)).toBe(0);
  });

  test('is written once if it sums to zero, and not a second time for the same step', async ({ connection, rows }) => {
    const settlementId = await rows.insertAccepted();
    const lines: Line[] = [
      ['settlement_funds', 'USD', 100],
      ['refund_due', 'USD', -100],
    ];
    await post(connection, settlementId, lines);
    await expect(post(connection, settlementId, lines)).rejects.toMatchObject({ code: UNIQUE_VIOLATION });
    expect(await countLines(connection, settlementId)).toBe(2);
  });

  test('must sum to zero by itself in a statement that writes several sets', async ({ connection, rows }) => {
    const [one, other] = [await rows.insertAccepted(), await rows.insertAccepted()];
    const statement = `INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at)
      VALUES ($1, 'funded', 0, 'settlement_funds', 'USD', 1, now()), ($2, 'funded', 0, 'refund_due', 'USD', -1, now())`;
    await expect(connection.pool.query(statement, [one, other])).rejects.toMatchObject({ code: CHECK_VIOLATION });
  });
});

describe('a permanent row', () => {
  const PERMANENT = {
    audit_entries: 'note',
    certificates: 'cert_id',
    events: 'event_id',
    idempotency_keys: 'key',
    launch_gate_approvals: 'operator',
    postings: 'step',
    provider_events: 'event_id',
    quotes: 'amount_minor',
    settlement_transitions: 'sequence',
    wallets: 'threshold',
  };
  const attempts = Object.entries(PERMANENT).flatMap(([table, column]) => [
    [table, 'updated', `UPDATE ${table} SET ${column} = ${column}`],
    [table, 'deleted', `DELETE FROM ${table}`],
    [table, 'truncated', `TRUNCATE ${table} CASCADE`],
  ]);

  test.for(attempts)('a row of %s cannot be %s', async ([_table, _how, statement = ''], { owner }) => {
    await expect(owner.pool.query(statement)).rejects.toMatchObject({ code: RESTRICT_VIOLATION });
  });

  test('prevents that its settlement is deleted', async ({ connection, owner, rows }) => {
    const settlementId = await rows.insertAccepted();
    await connection.pool.query(
      `INSERT INTO settlement_transitions (settlement_id, sequence, to_status, at) VALUES ($1, 1, 'accepted', now())`,
      [settlementId],
    );
    await expect(
      owner.pool.query('DELETE FROM settlements WHERE settlement_id = $1', [settlementId]),
    ).rejects.toMatchObject({ code: FOREIGN_KEY_VIOLATION });
  });
});
