/** `redispatch`, `cancel` and `resolve` without Temporal: each change is one transaction with its audit entry. */
import { Client, Connection, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { expect, onTestFinished } from 'vitest';
import { temporalFault } from '../../domain/temporal-health.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { whileWritesFail } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, createRemoteOps, listAudit } from '../support/ops.ts';
import { readSettlement } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { IN_REVIEW, moveToProduction, openSettlement } from '../support/settlement.ts';
import { devServer } from '../support/temporal.ts';

const AUDIT_ARGS = ['--operator', 'Ana', '--note', 'the partner asked by phone', '--yes'];

/** Gives up after a second what a command waits half a minute for. */
class ImpatientClient extends Client {
  override withDeadline<T>(_deadline: number | Date, call: () => Promise<T>): Promise<T> {
    return super.withDeadline(Date.now() + 1_000, call);
  }
}

const test = withApi()
  .extend('ops', FILE, ({ api }) => createOps(api.connection.db))
  .extend('accepted', FILE, ({ api, partner }) => openSettlement(api, partner))
  .extend('funded', FILE, ({ api, partner }) => openSettlement(api, partner, ['awaiting_funds', 'funded']))
  .extend('ended', FILE, ({ api, partner }) => openSettlement(api, partner, ['canceled']));

type Ids = { readonly accepted: string; readonly funded: string; readonly ended: string };

test.for<[string, number, (ids: Ids) => string[]]>([
  ['cancel without a settlement', 2, () => ['cancel', ...AUDIT_ARGS]],
  ['cancel of an unknown settlement', 1, () => ['cancel', 'stl_none', ...AUDIT_ARGS]],
  ['cancel past awaiting_funds', 1, ({ funded }) => ['cancel', funded, ...AUDIT_ARGS]],
  ['redispatch without a settlement', 2, () => ['redispatch', ...AUDIT_ARGS]],
  ['redispatch of an unknown settlement', 1, () => ['redispatch', 'stl_none', ...AUDIT_ARGS]],
  ['redispatch of a settlement that has ended', 1, ({ ended }) => ['redispatch', ended, ...AUDIT_ARGS]],
  ['redispatch of two settlements', 2, ({ accepted, funded }) => ['redispatch', accepted, funded, ...AUDIT_ARGS]],
  ['redispatch --all with a settlement', 2, ({ accepted }) => ['redispatch', accepted, '--all', ...AUDIT_ARGS]],
  ['resolve with an unknown outcome', 2, ({ accepted }) => ['resolve', accepted, 'maybe', ...AUDIT_ARGS]],
  ['resolve of an unknown settlement', 1, () => ['resolve', 'stl_none', 'paid', ...AUDIT_ARGS]],
  ['resolve of a settlement that is not in review', 1, ({ funded }) => ['resolve', funded, 'paid', ...AUDIT_ARGS]],
])('%s exits with %i, and writes nothing', async ([, exitCode, argsOf], { api, ops, accepted, funded, ended }) => {
  await expectUnchanged(api.connection.pool, async () => {
    expect(await ops(...argsOf({ accepted, funded, ended }))).toMatchObject({ exitCode, printed: [] });
  });
});

test('cancel, redispatch and resolve do not find a settlement of another environment', async ({
  api,
  partner,
  ops,
}) => {
  const [waits, reviewed] = [await openSettlement(api, partner), await openSettlement(api, partner, IN_REVIEW)];
  await moveToProduction(api, waits, reviewed);
  await expectUnchanged(api.connection.pool, async () => {
    for (const args of [
      ['cancel', waits],
      ['redispatch', waits],
      ['resolve', reviewed, 'paid'],
    ])
      expect(await ops(...args, ...AUDIT_ARGS)).toMatchObject({ exitCode: 1, printed: [] });
  });
});

test('cancel shows the operator in the timeline and in one audit entry, and signals the workflow', async ({
  api,
  partner,
  ops,
}) => {
  const settlementId = await openSettlement(api, partner, ['awaiting_funds']);
  expect(await ops('cancel', settlementId, ...AUDIT_ARGS)).toMatchObject({
    exitCode: 0,
    printed: [`${settlementId} is canceled.`],
  });
  const { status, timeline } = await readSettlement(api, partner, settlementId);
  expect([status, timeline.at(-1).reason]).toEqual(['canceled', 'canceled_by_operator']);
  expect(await listAudit(api.connection.db, settlementId)).toEqual([
    { orgId: partner.orgId, action: 'settlement_cancel', operator: 'ana', note: AUDIT_ARGS[3] },
  ]);
  const { rows } = await api.connection.pool.query(
    'SELECT signal FROM outbox WHERE object_id = $1 ORDER BY outbox_id',
    [settlementId],
  );
  expect(rows.map(({ signal }) => signal)).toEqual([null, 'canceled']);
});

test('cancel of a canceled settlement says that it was canceled already, and writes nothing', async ({
  api,
  ops,
  ended,
}) => {
  await expectUnchanged(api.connection.pool, async () => {
    expect(await ops('cancel', ended, ...AUDIT_ARGS)).toEqual({
      exitCode: 0,
      printed: [`${ended} was canceled already.`],
      warned: [],
    });
  });
});

test('cancel changes nothing when its audit entry cannot be written, and exits with 70', async ({
  api,
  partner,
  ops,
  accepted,
}) => {
  const canceled = await whileWritesFail(api.owner.pool, 'audit_entries', () => ops('cancel', accepted, ...AUDIT_ARGS));
  expect(canceled.exitCode).toBe(70);
  expect((await readSettlement(api, partner, accepted)).status).toBe('accepted');
});

test('waiting says that 250 open settlements are more than it lists, and redispatch --all writes a row and an entry for each', async ({
  api,
  ops,
  accepted,
}) => {
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
  expect((await ops('waiting')).printed).toContain(
    'More settlements are open than these 200: npm run ops -- list settlements',
  );
  const { exitCode, printed } = await ops('redispatch', '--all', ...AUDIT_ARGS, '--json');
  expect(exitCode).toBe(0);
  expect(printed.map((line) => JSON.parse(line))).toEqual([
    { settlements: open.length, verifications: 0, subscriptions: 0 },
  ]);
  const { rows: queued } = await pool.query(
    `SELECT object_id AS settlement_id FROM outbox WHERE kind = 'settlement' ORDER BY object_id`,
  );
  expect(queued).toEqual(open);
  const { rows: audited } = await pool.query(
    `SELECT count(*)::int AS n FROM audit_entries
       WHERE action = 'settlement_redispatch' AND object_id LIKE 'stl_copy_%'`,
  );
  expect(audited).toEqual([{ n: 250 }]);
  await pool.query(`DELETE FROM outbox`);
  await api.owner.pool.query(`DELETE FROM settlements WHERE settlement_id LIKE 'stl_copy_%'`);
});

/** A run that answers the update so. */
const answering = (executeUpdate: (update: unknown, options: { updateId: string }) => Promise<unknown>): Client => {
  const workflow = { getHandle: () => ({ executeUpdate }) };
  return { workflow, withDeadline: <T>(_at: number, call: () => T): T => call() } as unknown as Client;
};

const NOT_IN_TIME = 'Temporal, or the worker, did not answer in time.';

test.for<[string, string, (workflowId: string) => Promise<Client>]>([
  [
    'Temporal does not answer',
    NOT_IN_TIME,
    async () => new ImpatientClient({ connection: Connection.lazy({ address: '127.0.0.1:1' }) }),
  ],
  [
    'its run, which was started again, has not read that it is in review',
    'Its run has not reviewed the settlement yet.',
    async () =>
      answering(async () => {
        const cause = ApplicationFailure.nonRetryable('The settlement is not in review.', 'state_conflict');
        throw new WorkflowUpdateFailedError('Workflow Update failed', cause);
      }),
  ],
  [
    'Temporal refuses the credential',
    temporalFault('credentials_refused', 'no').sentence,
    async () =>
      answering(() => Promise.reject(Object.assign(new Error('grpc'), { code: 16, details: 'no', metadata: {} }))),
  ],
  [
    'it has no run',
    'It has no run: a sweep starts one within a minute.',
    async (workflowId) =>
      answering(async () => {
        throw new WorkflowNotFoundError('workflow not found', workflowId, undefined);
      }),
  ],
  [
    'no worker runs',
    NOT_IN_TIME,
    async (workflowId) => {
      const { client, namespace, close } = await devServer();
      onTestFinished(close);
      await client.workflow.start('settlement', { workflowId, taskQueue: 'nobody' });
      return new ImpatientClient({ connection: client.connection, namespace });
    },
  ],
])(
  'resolve is exit 69 while %s, and everything then shows that the outcome is agreed',
  async ([, cause, clientOf], { api, partner }) => {
    const settlementId = await openSettlement(api, partner, IN_REVIEW);
    const client = await clientOf(settlementWorkflowId(settlementId));
    const ops = createOps(api.connection.db, { client: () => client });
    const resolve = (outcome: string, ...more: string[]) =>
      ops('resolve', settlementId, outcome, '--operator', 'ana', '--note', 'asked the rail', ...more);
    expect(await resolve('paid', '--yes')).toEqual({
      exitCode: 69,
      printed: [],
      warned: [`The outcome paid is agreed and was not carried out yet: repeat this command. ${cause}`],
    });
    const agreed = 'agreed: paid, by ana, and not carried out';
    const other = `Not resolved: it is ${agreed}. To carry it out: npm run ops -- resolve ${settlementId} paid`;
    expect(await resolve('refused')).toMatchObject({ exitCode: 1, printed: [], warned: [other] });
    expect(await resolve('refused', '--yes')).toMatchObject({ exitCode: 1, printed: [], warned: [other] });
    expect((await resolve('paid')).printed).toEqual([
      `Preview: ${settlementId} is settled.`,
      `Preview: It is ${agreed}.`,
    ]);
    expect((await ops('waiting')).printed.find((line) => line.includes(settlementId))).toContain(
      `waits for an operator: repeat resolve (${agreed})`,
    );
    const { review, next } = JSON.parse((await ops('show', settlementId, '--json')).printed.join(''));
    expect([review, next[0].say]).toEqual([agreed, `It is ${agreed}. To carry it out:`]);
    expect(next[0].command).toContain(`resolve ${settlementId} paid `);
    expect((await listAudit(api.connection.db, settlementId)).map(({ action }) => action)).toEqual([
      'resolve_review_paid',
    ]);
  },
);

test('resolve says how the settlement ended, when its run carried it out and ended before the command asked it', async ({
  api,
  steps,
}) => {
  const settlementId = await steps.inReview();
  const client = answering(async () => {
    await steps.activities.reviewSettlement(steps.step(settlementId));
    throw new WorkflowNotFoundError('workflow execution already completed', settlementId, undefined);
  });
  const resolve = createOps(api.connection.db, { client: () => client });
  expect(await resolve('resolve', settlementId, 'refused', ...AUDIT_ARGS)).toEqual({
    exitCode: 0,
    printed: [`${settlementId} is failed.`],
    warned: [],
  });
});

test('resolve exits with 1 when its run answers that the settlement has ended otherwise', async ({ api, partner }) => {
  const settlementId = await openSettlement(api, partner, IN_REVIEW);
  const client = answering(async () => ({ status: 'failed' }));
  const ops = createOps(api.connection.db, { client: () => client });
  expect(await ops('resolve', settlementId, 'paid', ...AUDIT_ARGS)).toEqual({
    exitCode: 1,
    printed: [],
    warned: [`Not resolved: ${settlementId} is failed: the rail's own evidence, or an earlier decision, decided.`],
  });
});

test('resolve asks its run by the same update when it is repeated, and by another one for another agreement', async ({
  api,
  partner,
  clock,
}) => {
  const settlementId = await openSettlement(api, partner, IN_REVIEW);
  const updateIds: string[] = [];
  const client = answering(async (_update, { updateId }) => {
    updateIds.push(updateId);
    throw new WorkflowNotFoundError('workflow not found', settlementId, undefined);
  });
  const ops = createOps(api.connection.db, { client: () => client, now: clock.now });
  const resolve = async () => (await ops('resolve', settlementId, 'paid', ...AUDIT_ARGS)).exitCode;
  expect([await resolve(), await resolve()]).toEqual([69, 69]);
  // A failover lost it.
  await api.owner.pool.query('DELETE FROM review_requests WHERE settlement_id = $1', [settlementId]);
  clock.advance(1_000);
  expect(await resolve()).toBe(69);
  const [first, repeated, other] = updateIds;
  expect([repeated === first, other === first]).toEqual([true, false]);
});

test('a requested outcome is shown until it is a day old, and who requests another one reads whose it replaces', async ({
  api,
  partner,
}) => {
  const settlementId = await openSettlement(api, partner, IN_REVIEW);
  await moveToProduction(api, settlementId);
  const at = new Date();
  const clock = { now: at };
  const ops = await createRemoteOps(api.connection.db, { runtime: 'production', now: () => clock.now }, ['ana', 'bo']);
  const resolve = (operator: string, outcome: string, ...more: string[]) =>
    ops('resolve', settlementId, outcome, '--operator', operator, '--note', 'asked the rail', ...more);
  const shown = async () => {
    const { review, next } = JSON.parse((await ops('show', settlementId, '--json')).printed.join(''));
    const waiting = (await ops('waiting')).printed.find((line) => line.includes(settlementId));
    return { review, say: next[0].say, waiting };
  };
  const ask = `Ask the payout rail whether ${settlementId} was paid. Then:`;
  await resolve('ana', 'paid', '--yes');
  const byAna = `requested: paid, by ana at ${at.toISOString()}, and not confirmed`;
  expect(await shown()).toEqual({
    review: byAna,
    say: `It is ${byAna}. ${ask}`,
    waiting: expect.stringContaining(`waits for another operator: ${byAna};`),
  });
  expect((await resolve('bo', 'paid')).printed).toEqual([
    `Preview: ${settlementId} is settled.`,
    `Preview: It is ${byAna}.`,
  ]);
  expect((await resolve('bo', 'refused', '--yes')).printed).toEqual([
    `Requested: ${settlementId} was refused. Another operator confirms it by the same command.`,
    "It replaces ana's request: paid.",
  ]);
  expect((await listAudit(api.connection.db, settlementId)).map(({ operator, note }) => [operator, note])).toEqual([
    ['ana', 'paid: asked the rail'],
    ['bo', 'refused: asked the rail'],
  ]);
  clock.now = new Date(at.getTime() + 24 * 3_600_000);
  expect(await shown()).toEqual({
    review: null,
    say: ask,
    waiting: expect.stringContaining('waits for an operator: resolve it as paid or refused;'),
  });
});
