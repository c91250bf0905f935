/**
 * Open settlements and verifications whose run is lost: what restarts it. Real PostgreSQL and a real Temporal server.
 */
import type { Client } from '@temporalio/client';
import { describe, expect, vi } from 'vitest';
import { SWEEP_ID, settlementWorkflowId, verificationWorkflowId } from '../../domain/workflow-id.ts';
import { createRuns, describeRun, listRuns } from '../../process/runs.ts';
import { ensureSweepSchedule } from '../../process/sweep-schedule.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { losingOutboxRows } from '../support/database.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { temporalSilence } from '../support/ops.ts';
import { createRecipient, jsonOf, settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { BY_WIRE } from '../support/settlement.ts';
import { complete, openVerification } from '../support/verification.ts';

const test = withStack().extend('lost', FILE, ({ stack, api, partner }) => {
  const { pool } = api.connection;
  const { workflow } = stack.temporal;
  const run = (id: string) => workflow.getHandle(settlementWorkflowId(id));
  const waiting = async (): Promise<string> => {
    const id = await settle(api, partner, BY_WIRE);
    await untilStatus(api, partner, id, 'awaiting_funds');
    return id;
  };
  const terminated = async (): Promise<string> => {
    const id = await waiting();
    await run(id).terminate();
    return id;
  };
  return {
    run,
    waiting,
    terminated,
    /** Its outbox row was lost, as its run is when Temporal has lost its data. */
    neverStarted: async (): Promise<string> => {
      let id = '';
      await losingOutboxRows(api.owner.pool, async () => {
        id = await settle(api, partner, BY_WIRE);
      });
      return id;
    },
    /** Makes everything count as unchanged for 16 s. */
    age: async (): Promise<void> => {
      await pool.query('UPDATE settlements SET clock_offset_ms = 16000');
      await api.owner.pool.query(`UPDATE verifications SET created_at = created_at - interval '16 seconds'`);
    },
    /** Without the lanes, which nobody serves here. */
    sweep: async () => {
      const options = { workflowId: crypto.randomUUID(), taskQueue: TASK_QUEUE, args: [{ sweeps: 1 }] } as const;
      const { webhook_lane: _, ...restarted } = await workflow.execute('sweep', options);
      return restarted;
    },
    /** The settlement gets its money and settles. */
    pay: async (id: string): Promise<void> => {
      expect(jsonOf(await sendBankledger(api, bankledgerBody(id)))).toMatchObject({ matched: true });
      await untilStatus(api, partner, id, 'settled');
      expect(await run(id).result()).toEqual({ status: 'settled', failure: null });
    },
    cancel: (id: string) => api.call(partner, 'POST', `/v2/settle/${id}/cancel`),
  };
});
// Starts the servers in a hook: its timeout is longer than a test's.
test.beforeAll(({ lost: _ }) => undefined);

describe('a lost run and no sweep', () => {
  test("a provider's event starts a terminated run again, and the settlement settles", async ({ lost }) => {
    await lost.pay(await lost.terminated());
  });

  test('a cancel ends a settlement whose run was terminated, and no run is left', async ({ lost }) => {
    const id = await lost.terminated();
    expect((await lost.cancel(id)).statusCode).toBe(200);
    const canceled = { status: 'canceled', failure: null };
    await vi.waitFor(async () => expect(await lost.run(id).result()).toEqual(canceled), WAIT);
  });
});

describe('a sweep', () => {
  test.for(['terminated', 'neverStarted'] as const)('starts a run again: %s', async (how, { lost, api, partner }) => {
    const id = await lost[how]();
    // The signal of this evidence is lost, so only the new run can apply it.
    await losingOutboxRows(api.owner.pool, () => sendBankledger(api, bankledgerBody(id)));
    await lost.age();
    expect(await lost.sweep()).toEqual({ settlement: 1, verification: 0, webhook_subscription: 0 });
    await untilStatus(api, partner, id, 'settled');
    expect(await lost.sweep()).toEqual({ settlement: 0, verification: 0, webhook_subscription: 0 });
  });

  test('starts the run of an open verification again, and leaves the runs of others alone', async ({
    stack,
    api,
    partner,
    lost,
  }) => {
    const id = await lost.waiting();
    const recipientId = await createRecipient(api, partner);
    const { verification_id: verificationId } = await openVerification(api, partner, recipientId);
    const verification = stack.temporal.workflow.getHandle(verificationWorkflowId(verificationId));
    await vi.waitFor(() => verification.terminate(), WAIT);
    await lost.age();
    const { runId, historyLength } = await lost.run(id).describe();
    expect(await lost.sweep()).toEqual({ settlement: 0, verification: 1, webhook_subscription: 0 });
    await vi.waitUntil(async () => (await verification.describe()).status.name === 'RUNNING', WAIT);
    await complete(api, partner, verificationId, { status: 'verified' });
    expect(await verification.result()).toEqual({ status: 'verified' });
    expect(await lost.run(id).describe()).toMatchObject({ runId, historyLength });
    await lost.cancel(id);
  });

  test('leaves alone what changed within 15 seconds, and what the outbox has a row for', async ({ api, lost }) => {
    const { pool } = api.connection;
    const nothing = { settlement: 0, verification: 0, webhook_subscription: 0 };
    const id = await lost.terminated();
    // As if it had changed at this moment: the lines above may take long.
    await pool.query(`UPDATE settlements SET updated_at = now(), clock_offset_ms = 0 WHERE settlement_id = $1`, [id]);
    expect(await lost.sweep()).toEqual(nothing);
    await lost.age();
    await pool.query(
      `INSERT INTO outbox (kind, object_id, context, request_id, due_at)
         VALUES ('settlement', $1, '{}', 'test', now() + interval '1 hour')`,
      [id],
    );
    expect(await lost.sweep()).toEqual(nothing);
    await pool.query('DELETE FROM outbox WHERE object_id = $1', [id]);
    expect(await lost.sweep()).toEqual({ ...nothing, settlement: 1 });
    await lost.pay(id);
  });
});

test('a run that has ended is not found as running, also when a late list still has it', async ({ stack, lost }) => {
  const [ended, running] = [await lost.terminated(), await lost.waiting()].map(settlementWorkflowId);
  const late = async function* () {
    for (const workflowId of [ended, running]) yield { workflowId };
  };
  const list = vi.spyOn(stack.temporal.workflow, 'list').mockImplementation(late as never);
  const found = await createRuns(stack.temporal).findRunning([ended ?? '', running ?? '']);
  list.mockRestore();
  expect([...found]).toEqual([running]);
});

test('of many runs, only those that the list lacks are asked for one by one, and one that has ended is not found', async ({
  stack,
  lost,
}) => {
  const { workflow } = stack.temporal;
  const [ended = '', running = ''] = [await lost.terminated(), await lost.waiting()].map(settlementWorkflowId);
  await vi.waitUntil(async () => {
    const statuses = new Map<string, string>();
    for await (const { workflowId, status } of workflow.list({ query: `WorkflowId IN ("${ended}", "${running}")` }))
      statuses.set(workflowId, status.name);
    return statuses.get(ended) === 'TERMINATED' && statuses.get(running) === 'RUNNING';
  }, WAIT);
  const unknown = Array.from({ length: 7 }, (_, number) => settlementWorkflowId(`stl_none_${number}`));
  const asked = vi.spyOn(workflow, 'getHandle');
  const found = await createRuns(stack.temporal).findRunning([ended, running, ...unknown]);
  const askedFor = asked.mock.calls.map(([workflowId]) => workflowId);
  asked.mockRestore();
  expect([...found]).toEqual([running]);
  expect(new Set(askedFor)).toEqual(new Set([ended, ...unknown]));
});

/** A client that answers so. */
const answering = (workflow: object): Client =>
  ({ workflow, withDeadline: <T>(_at: number, call: () => T): T => call() }) as unknown as Client;

test('a run is not taken for lost while Temporal does not answer', async () => {
  const client = answering({ getHandle: () => ({ describe: () => Promise.reject(temporalSilence()) }) });
  await expect(createRuns(client).findRunning(['settlement:stl_1'])).rejects.toThrow('grpc');
  await expect(describeRun(client, 'settlement:stl_1')).rejects.toThrow('grpc');
});

test('every run that runs is listed, and one that has ended if it began since then', async ({ stack, lost }) => {
  const [ended, running] = [await lost.terminated(), await lost.waiting()];
  const listed = (sinceMs: number) => listRuns(stack.temporal, new Date(Date.now() + sinceMs));
  await expect
    .poll(() => listed(-600_000), WAIT)
    .toEqual(
      expect.arrayContaining([
        { objectId: ended, isRunning: false },
        { objectId: running, isRunning: true },
      ]),
    );
  const ids = (await listed(600_000)).map(({ objectId }) => objectId);
  expect([ids.includes(running), ids.includes(ended)]).toEqual([true, false]);
});

test('a settlement whose earlier run has ended counts as running, and a status is shown in words', async () => {
  const run = (name: string) => ({ workflowId: 'settlement:stl_1', status: { name } });
  const client = answering({
    list: async function* () {
      yield* [run('RUNNING'), run('TERMINATED')];
    },
    getHandle: () => ({
      describe: async () => ({ status: { name: 'TIMED_OUT' }, startTime: new Date(0), runId: 'run-1', raw: {} }),
    }),
  });
  expect(await listRuns(client, new Date(0))).toEqual([{ objectId: 'stl_1', isRunning: true }]);
  expect(await describeRun(client, 'settlement:stl_1')).toMatchObject({ status: 'timed out', activities: [] });
});

test('the schedule sweeps; a second worker changes nothing about it, and a pause stays', async ({ stack, lost }) => {
  const { schedule } = stack.temporal;
  await ensureSweepSchedule({ client: stack.temporal });
  const id = await lost.terminated();
  await lost.age();
  const handle = schedule.getHandle(SWEEP_ID);
  await handle.trigger();
  await lost.pay(id);
  const { spec, action, policies } = await handle.describe();
  expect(policies.overlap).toBe('SKIP');
  await handle.pause('maintenance');
  await ensureSweepSchedule({ client: stack.temporal });
  const again = await handle.describe();
  expect(again).toMatchObject({ spec, action, policies, state: { paused: true, note: 'maintenance' } });
  await handle.delete();
});
