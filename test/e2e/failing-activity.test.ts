/** Workflows whose local activities fail leave the worker to the others. */
import type { Client } from '@temporalio/client';
import { expect, vi } from 'vitest';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { describeRun } from '../../process/runs.ts';
import { withStack } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';
import { createRecipient, settle, untilStatus } from '../support/partner.ts';
import { stretched, WAIT } from '../support/patience.ts';

/** As many as the worker has slots for workflow tasks. */
const FAILING = 40;

/** Every transition of such a settlement fails in the database, as on a full disk. */
const POISON = 'poisoned';
const POISON_TRIGGER = `
  CREATE FUNCTION refuse_poisoned() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN RAISE EXCEPTION 'poisoned' USING ERRCODE = 'disk_full'; END $$;
  CREATE TRIGGER poisoned BEFORE UPDATE ON settlements FOR EACH ROW
    WHEN (OLD.reference = '${POISON}') EXECUTE FUNCTION refuse_poisoned()`;

const test = withStack({ worker: false });

test('forty settlements that fail at every retry do not keep another one from settling, and ops show says why each fails', async ({
  stack,
  api,
  partner,
}) => {
  await api.owner.pool.query(POISON_TRIGGER);
  const recipientId = await createRecipient(api, partner);
  const failing: string[] = [];
  for (let count = 0; count < FAILING; count += 1)
    failing.push(await settle(api, partner, { recipient_id: recipientId, reference: POISON }));
  await stack.startWorker();
  const startedAt = Date.now();
  await untilStatus(api, partner, await settle(api, partner), 'settled');
  // With the SDK's default for local retries it took over 40 s.
  expect(Date.now() - startedAt).toBeLessThan(stretched(30_000));
  const describe = (id: string) => describeRun(stack.temporal, id);
  const [poisoned = ''] = failing;
  // Temporal lists no local activity as pending.
  const activities = await vi.waitUntil(async () => {
    const run = await describe(settlementWorkflowId(poisoned));
    return run !== undefined && run.activities.length > 0 && run.activities;
  }, WAIT);
  expect(activities).toEqual([
    { name: 'admitSettlement', attempt: expect.any(Number), lastFailure: 'dependency:53100' },
  ]);
  const ops = createOps(api.connection.db, { describeRun: describe });
  const [next] = JSON.parse((await ops('show', poisoned, '--json')).printed.join('')).next;
  expect(next.say).toMatch(
    /^The step admitSettlement fails and is repeated: dependency:53100\. The worker's log says where/,
  );
});

test('a failing step is shown with its failures since it last worked, and a failing task with the first line of its reason', async () => {
  const marker = (markerName: string, failure: object | null) => ({
    markerRecordedEventAttributes: {
      markerName,
      failure,
      details: { data: { payloads: [{ data: Buffer.from('{"activity_type":"reviewSettlement"}') }] } },
    },
  });
  const step = (failure: object | null) => marker('core_local_activity', failure);
  const failure = { message: 'failed', cause: { applicationFailureInfo: { type: 'dependency:53100' } } };
  const taskFailed = (message: string) => ({ workflowTaskFailedEventAttributes: { failure: { message } } });
  const described = async (attempt: number, events: readonly object[]) => {
    const raw = { pendingWorkflowTask: { attempt } };
    const client = {
      options: { namespace: 'any' },
      withDeadline: <T>(_at: number, call: () => T): T => call(),
      workflow: {
        getHandle: () => ({
          describe: async () => ({ status: { name: 'RUNNING' }, startTime: new Date(0), runId: 'run-1', raw }),
        }),
      },
      workflowService: { getWorkflowExecutionHistoryReverse: async () => ({ history: { events } }) },
    } as unknown as Client;
    return await describeRun(client, 'settlement:stl_1');
  };
  const completed = { workflowTaskCompletedEventAttributes: {} };
  const patched = marker('core_patch', null);
  const failing = [
    patched,
    step(failure),
    step(failure),
    step(null),
    step(failure),
    taskFailed(`${'x'.repeat(400)}\nat`),
  ];
  expect(await described(3, [...failing, completed])).toMatchObject({
    activities: [{ name: 'reviewSettlement', attempt: 2, lastFailure: 'dependency:53100' }],
    failingTask: { attempt: 3, cause: 'x'.repeat(300), isKeyMissing: false },
  });
  const worked = [step(null), step(failure), completed, taskFailed('of an earlier task')];
  expect(await described(2, worked)).toMatchObject({ activities: [], failingTask: { attempt: 2, cause: null } });
  expect(await described(1, worked)).toMatchObject({ failingTask: undefined });
});
