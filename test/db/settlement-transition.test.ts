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

  test('has the same transitions in the database as in the code', async ({ connection }) => {
    const { rows: rules } = await connection.pool.query<{ rule: string }>(
      `SELECT from_status || ' → ' || to_status AS rule FROM settlement_transition_rules`,
    );
    const inCode = TRANSITIONS.filter(({ from }) => from !== null).map(({ from, to }) => `${from} → ${to}`);
    expect(new Set(rules.map(({ rule }) => rule))).toEqual(new Set(inCode));
    expect(rules).toHaveLength(inCode.length);
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

describe('a settlement ends only with a closed journal: not while', () => {
  const held = (account: string): string =>
    `INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at)
     VALUES ($1, 'test', 0, 'card_clearing', 'USD', 100, now()), ($1, 'test', 1, '${account}', 'USD', -100, now())`;
  const received = 'UPDATE settlements SET amount_received_minor = 100 WHERE settlement_id = $1';
  const evidence = `INSERT INTO evidence
    (evidence_id, settlement_id, provider, event_id, kind, sha256, pending, reversed_minor, received_at)
    VALUES ($1, $1, 'cardproc', $1, 'collection_failed', '', true, 0, now())`;

  test.for<[string, string[]]>([
    ['money is held for it', [held('settlement_funds'), received]],
    ['money is held for it, as a payout in transit', [held('payout_in_transit'), received]],
    ['money that came in is not booked', [received]],
    ['evidence is pending', [evidence]],
  ])('%s', async ([rule, statements], { connection, rows }) => {
    const settlementId = await rows.insertAccepted();
    for (const statement of statements) await connection.pool.query(statement, [settlementId]);
    const message = expect.stringContaining(`cannot end while ${rule.replace(/,.*/, '')}`);
    await expect(rows.move(settlementId, 'canceled')).rejects.toMatchObject({ code: CHECK_VIOLATION, message });
    expect(await rows.statusOf(settlementId)).toBe('accepted');
  });
});

test('the terms of a settlement are permanent', async ({ owner, rows }) => {
  const settlementId = await rows.insertAccepted();
  const parties = ['org_id', 'recipient_id', 'payee_sealed', 'payee_sha256'];
  const route = ['corridor', 'payment_method', 'payout_rail', 'source_currency', 'destination_currency'];
  const amounts = ['amount', 'destination_amount', 'input_fee', 'platform_fee', 'total_fees'];
  const changes = [
    ...[...parties, ...route].map((column) => `${column} = 'other'`),
    ...amounts.map((name) => `${name}_minor = ${name}_minor + 1`),
    'payee_sealed = NULL',
  ];
  for (const change of changes)
    await expect(
      owner.pool.query(`UPDATE settlements SET ${change} WHERE settlement_id = $1`, [settlementId]),
      change,
    ).rejects.toMatchObject({ code: RESTRICT_VIOLATION });
});

/** For each check of the database: rows that it refuses, by the columns that matter. */
const REFUSED: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
  audit_entries_chain: [{ sequence: 0 }, { previous_hash: '\\x00' }, { hash: '\\x00' }],
  consumers_channel: [{ channel: 'letter' }],
  idempotency_keys_exchange: [
    { recipient_id: 'r' },
    { request_hash: '\\x00', field_digests: {} },
    { recipient_id: 'r', exchange_sealed: 's', response_body: '\\x00' },
  ],
  key_reissues_two_operators: [{ confirmed_by: 'bo' }, { requested_by: 'ana', confirmed_by: 'ana', key_id: 'k' }],
  launch_gate_approvals_operator: [{ operator: 'Ana' }, { operator: ' ana' }, { operator: '' }],
  launch_gate_evidence_revocation: [{ revoked_at: AT }, { revoked_by: 'ana' }],
  launch_gate_evidence_times: [
    { recorded_at: AT, expires_at: AT },
    { recorded_at: AT, expires_at: new Date(0) },
  ],
  operators_name_spelling: [{ name: 'Ana' }, { name: ' ana' }, { name: '' }],
  operators_revocation: [{ revoked_at: AT }, { revoked_by: 'ana' }],
  otp_challenges_attempts: [{ attempts: -1 }, { attempts: 6 }],
  otp_challenges_channel: [{ channel: 'letter' }],
  recipient_erasures_two_operators: [{ requested_by: 'ana', confirmed_by: 'ana' }],
  recipients_erased: [
    { data_key_sealed: 's' },
    { personal_data_sealed: 's' },
    { erased_at: AT, data_key_sealed: 's' },
    { erased_at: AT, personal_data_sealed: 's' },
  ],
  recipients_erased_inactive: [{ erased_at: AT, is_active: true }],
  review_requests_two_operators: [{ requested_by: 'ana', confirmed_by: 'ana' }],
  settlement_transitions_first: [
    { to_status: 'funded', sequence: 1 },
    { to_status: 'accepted', sequence: 2 },
  ],
  settlements_clock: [{ clock_offset_ms: -1 }],
  settlements_money: [
    { amount_minor: 0 },
    { destination_amount_minor: 0 },
    { destination_amount_minor: -1 },
    { total_fees_minor: 3, input_fee_minor: 1, platform_fee_minor: 1 },
    { total_fees_minor: 5, amount_minor: 5 },
    { amount_received_minor: -1, amount_refunded_minor: 0 },
    { amount_refunded_minor: -1 },
    { amount_received_minor: 1, amount_refunded_minor: 2 },
    { taken_back_minor: -1 },
    { taken_back_minor: 2, amount_received_minor: 1 },
  ],
  verifications_decided: [{ status: 'verified' }, { status: 'pending', decided_at: AT }],
  verifications_name: [{ verified_name_sealed: 's' }],
  verifications_reason: [{ rejection_reason: 'r' }],
  verifications_window: [{ created_at: AT, expires_at: AT }],
  wallets_threshold: [
    { threshold: 0, signers: [1] },
    { threshold: 2, signers: [1] },
  ],
  webhook_deliveries_claim: [{ claimed_by: 0, claimed_at: AT }, { claimed_by: 1 }],
  webhook_deliveries_generation: [{ generation: 0 }, { prior_attempts: -1 }, { prior_attempts: 2, attempt_count: 1 }],
  webhook_deliveries_lane: [{ lane_key: 0, status: 'succeeded' }],
  webhook_deliveries_next: [{ status: 'pending' }, { status: 'succeeded', next_attempt_at: AT }],
  webhook_deliveries_redelivered: [{ redelivered_at: Array(6).fill(AT) }],
  webhook_deliveries_status: [{ status: 'other' }],
  webhook_replays_counts: [{ sent: -1 }, { skipped: -1 }],
  webhook_replays_finished: [{ status: 'running', finished_at: AT }, { status: 'completed' }],
  webhook_replays_status: [{ status: 'other' }],
  webhooks_event_types: [{ event_types: [] }],
  webhooks_lane_key: [{ lane_key: -1 }, { lane_key: 256 }],
  webhooks_secret: [{}, { secret_sealed: 's', deleted_at: AT }],
  webhooks_status: [{ status: 'other' }, { status: 'disabled' }, { status: 'enabled', disabled_reason: 'gone' }],
};

test('every check refuses each kind of row that breaks it', async ({ owner }) => {
  const { rows: checks } = await owner.pool.query<{ name: string; table: string; condition: string }>(
    `SELECT conname AS name, conrelid::regclass::text AS table, pg_get_expr(conbin, conrelid) AS condition
     FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace ORDER BY conname COLLATE "C"`,
  );
  expect(checks.map(({ name }) => name)).toEqual(Object.keys(REFUSED));
  for (const { name, table, condition } of checks)
    for (const row of REFUSED[name] ?? []) {
      const asked = `SELECT ${condition} AS holds FROM jsonb_populate_record(NULL::${table}, $1) AS ${table}`;
      const { rows } = await owner.pool.query(asked, [JSON.stringify(row)]);
      expect(rows, `${name}: ${JSON.stringify(row)}`).toEqual([{ holds: false }]);
    }
});
