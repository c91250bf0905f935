/** Settlements by an operator's hand: under the same rules as the partner's, each with its audit entry or not at all. */
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { auditEntries } from '../../db/schema/index.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { runOps } from '../../ops/main.ts';
import { startDispatcher } from '../../process/dispatcher.ts';
import { type Caller, createTestApi, TEST_KEYS, type TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { createRecipient, jsonOf, readSettlement, settleBody, untilStatus } from '../support/partner.ts';
import { openSettlement } from '../support/settlement.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { devServer } from '../support/temporal.ts';

let printed: string[];
beforeEach(() => {
  printed = [];
});

const ACT = ['--operator', 'Ana', '--note', 'the partner asked by phone'];
const opsOn = (api: TestApi, client: () => TestStack['temporal'], args: readonly string[]) =>
  runOps(
    {
      runtime: 'local-sandbox',
      db: api.connection.db,
      keys: TEST_KEYS,
      client,
      now: () => new Date(),
      print: (line) => printed.push(line),
    },
    args,
  );
const auditOf = async (api: TestApi, objectId: string) => {
  const rows = await api.connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, objectId));
  return rows.map(({ orgId, action, operator, note }) => ({ orgId, action, operator, note }));
};

describe('without Temporal', () => {
  let api: TestApi;
  let caller: Caller;
  let accepted = '';
  let funded = '';
  let ended = '';
  beforeAll(async () => {
    api = await createTestApi();
    caller = await api.createCaller();
    accepted = await openSettlement(api, caller);
    funded = await openSettlement(api, caller, ['awaiting_funds', 'funded']);
    ended = await openSettlement(api, caller, ['canceled']);
  });
  afterAll(() => api.close());

  const noTemporal = () => {
    throw new Error('this must work while Temporal is down');
  };
  const ops = (...args: string[]) => opsOn(api, noTemporal, args);

  test.each([
    ['cancel of nothing', ['cancel', ...ACT]],
    ['cancel of what is not there', ['cancel', 'stl_none', ...ACT]],
    ['cancel by nobody', () => ['cancel', accepted, '--note', 'why']],
    ['cancel without a reason', () => ['cancel', accepted, '--operator', 'ana']],
    ['cancel past awaiting_funds', () => ['cancel', funded, ...ACT]],
    ['redispatch of what is not there', ['redispatch', 'stl_none', ...ACT]],
    ['redispatch of what has ended', () => ['redispatch', ended, ...ACT]],
    ['redispatch of two', () => ['redispatch', accepted, funded, ...ACT]],
    ['redispatch of all by nobody', ['redispatch', '--all', '--note', 'why']],
    ['redispatch of all without a reason', ['redispatch', '--all', '--operator', 'ana']],
    ['redispatch of all and of one', () => ['redispatch', accepted, '--all', ...ACT]],
    ['resolve as something else', () => ['resolve', accepted, 'maybe', ...ACT]],
    ['resolve without a reason', () => ['resolve', accepted, 'paid', '--operator', 'ana']],
  ] as const)('%s is refused with 1, and nothing is written', async (_what, args) => {
    const before = await digestTables(api.connection.pool);
    expect(await ops(...(typeof args === 'function' ? args() : args))).toBe(1);
    expect(await digestTables(api.connection.pool)).toEqual(before);
  });
  test('a canceled settlement says by whom in its timeline and in one audit entry, and its workflow is rung', async () => {
    const settlementId = await openSettlement(api, caller, ['awaiting_funds']);
    expect(await ops('cancel', settlementId, ...ACT)).toBe(0);
    const { status, timeline } = await readSettlement({ api }, caller, settlementId);
    expect([status, timeline.at(-1).reason]).toEqual(['canceled', 'canceled_by_operator']);
    expect(await auditOf(api, settlementId)).toEqual([
      { orgId: caller.orgId, action: 'settlement_cancel', operator: 'ana', note: ACT[3] },
    ]);
    const { rows } = await api.connection.pool.query(
      'SELECT signal FROM outbox WHERE object_id = $1 ORDER BY outbox_id',
      [settlementId],
    );
    expect(rows.map(({ signal }) => signal)).toEqual([null, 'canceled']);
  });

  test('a cancellation whose audit entry cannot be written is none', async () => {
    await api.connection.pool.query('ALTER TABLE audit_entries RENAME TO audit_entries_away');
    try {
      await expect(ops('cancel', accepted, ...ACT)).rejects.toThrow();
    } finally {
      await api.connection.pool.query('ALTER TABLE audit_entries_away RENAME TO audit_entries');
    }
    expect((await readSettlement({ api }, caller, accepted)).status).toBe('accepted');
  });

  test('redispatch of all asks once for everything that is open, however much there is, each with its audit entry', async () => {
    const { pool } = api.connection;
    await pool.query(
      `INSERT INTO settlements SELECT (jsonb_populate_record(s, jsonb_build_object('settlement_id', 'stl_copy_' || n))).*
       FROM settlements s, generate_series(1, 250) n WHERE settlement_id = $1`,
      [accepted],
    );
    await pool.query('DELETE FROM outbox');
    const isOpen = `status NOT IN ('settled', 'rejected', 'expired', 'failed', 'canceled')`;
    const { rows: open } = await pool.query(
      `SELECT settlement_id FROM settlements WHERE ${isOpen} ORDER BY settlement_id`,
    );
    expect(await ops('redispatch', '--all', ...ACT)).toBe(0);
    expect(printed).toContain(`settlements: ${open.length} will be started or rung again.`);
    const { rows: asked } = await pool.query(
      `SELECT object_id AS settlement_id FROM outbox WHERE kind = 'settlement' ORDER BY object_id`,
    );
    expect(asked).toEqual(open);
    const { rows: audited } = await pool.query(
      `SELECT count(*)::int AS n FROM audit_entries WHERE action = 'settlement_redispatch' AND object_id LIKE 'stl_copy_%'`,
    );
    expect(audited).toEqual([{ n: 250 }]);
    await pool.query(`DELETE FROM outbox`);
    await pool.query(`DELETE FROM settlements WHERE settlement_id LIKE 'stl_copy_%'`);
  });

  test('a settlement whose start was lost is started by redispatch', async () => {
    const temporal = await devServer();
    const settlementId = await openSettlement(api, caller);
    await api.connection.pool.query('DELETE FROM outbox');
    const handle = temporal.client.workflow.getHandle(settlementWorkflowId(settlementId));
    expect(await ops('redispatch', settlementId, ...ACT)).toBe(0);
    const dispatcher = startDispatcher({
      db: api.connection.db,
      client: temporal.client,
      log: { warn: () => undefined },
    });
    await expect
      .poll(
        () =>
          handle.describe().then(
            ({ status }) => status.name,
            () => 'none',
          ),
        { timeout: 10_000 },
      )
      .toBe('RUNNING');
    await dispatcher.stop();
    await handle.terminate();
    await temporal.close();
    expect(await auditOf(api, settlementId)).toMatchObject([{ action: 'settlement_redispatch', operator: 'ana' }]);
  });
});

describe('with the whole service', () => {
  let stack: TestStack;
  let caller: Caller;
  beforeAll(async () => {
    stack = await startStack();
    caller = await stack.api.createCaller();
  });
  afterAll(() => stack.close());

  const ops = (...args: string[]) => opsOn(stack.api, () => stack.temporal, args);
  async function settle(name: string): Promise<string> {
    const recipientId = await createRecipient(stack, caller, { name });
    const answer = await stack.api.call(caller, 'POST', '/v2/settle', settleBody(recipientId), {
      'idempotency-key': crypto.randomUUID(),
    });
    return jsonOf(answer).settlement_id;
  }

  test('a payout of unknown outcome is refused a second word once it is resolved, and one audit entry says who', async () => {
    const settlementId = await settle('PAYOUT PENDING');
    await untilStatus(stack, caller, settlementId, 'paying_out');
    expect(await ops('resolve', settlementId, 'paid', ...ACT)).toBe(1);
    expect(printed.at(-1)).toContain('not in review');
    await stack.api.call(caller, 'POST', `/v2/test-helpers/settlements/${settlementId}/advance`, {});
    await untilStatus(stack, caller, settlementId, 'needs_review');
    expect(await ops('resolve', settlementId, 'paid', ...ACT)).toBe(0);
    expect((await untilStatus(stack, caller, settlementId, 'settled')).certificate_id).not.toBeNull();
    expect(await ops('resolve', settlementId, 'refused', ...ACT)).toBe(1);
    expect(await auditOf(stack.api, settlementId)).toEqual([
      { orgId: caller.orgId, action: 'resolve_review_paid', operator: 'ana', note: ACT[3] },
    ]);
  });

  test('redispatch of a settlement that runs rings it and changes nothing', async () => {
    const recipientId = await createRecipient(stack, caller);
    const answer = await stack.api.call(
      caller,
      'POST',
      '/v2/settle',
      settleBody(recipientId, { card_token: 'tok_manual' }),
      {
        'idempotency-key': crypto.randomUUID(),
      },
    );
    const settlementId = jsonOf(answer).settlement_id;
    const before = await untilStatus(stack, caller, settlementId, 'awaiting_funds');
    expect(await ops('redispatch', settlementId, ...ACT)).toBe(0);
    const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(settlementId));
    const signals = async () =>
      (await handle.fetchHistory()).events?.filter(({ workflowExecutionSignaledEventAttributes: signal }) => signal)
        .length;
    await expect.poll(signals, { timeout: 10_000 }).toBe(1);
    expect(await readSettlement(stack, caller, settlementId)).toEqual(before);
  });
});
