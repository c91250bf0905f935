/**
 * What Temporal stores of a settlement when encryption is switched on, or the key is changed, while the settlement
 * waits.
 */
import { randomBytes } from 'node:crypto';
import type { Payload } from '@temporalio/common';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import { expect, vi } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import type { NamedKey } from '../../config/environment.ts';
import type { Config } from '../../config/load.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { type Dispatcher, startDispatcher } from '../../process/dispatcher.ts';
import { dataConverterOf } from '../../process/payload-codec.ts';
import { describeRun } from '../../process/runs.ts';
import { connectTemporal, type TemporalClient } from '../../process/temporal.ts';
import { createWorker } from '../../worker/worker.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { activityDeps } from '../support/activity.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { historyText } from '../support/history.ts';
import { settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { BY_MANUAL_CARD } from '../support/settlement.ts';
import { devServer, replayFaults, testWorkflowBundle, workerConfig, workerConnection } from '../support/temporal.ts';

const newKey = (id: string): NamedKey => ({ id, key: randomBytes(32) });
const [OLD, NEW] = [newKey('key-1'), newKey('key-2')];
const PLANTED = 'stl_planted_0123456789abcdef';

/** Dispatcher and worker with one set of keys. */
type Service = { readonly temporal: TemporalClient; readonly dispatcher: Dispatcher; stop(): Promise<void> };
/** The service that runs now; the API nudges its dispatcher. */
let service: Service | undefined;

const test = withApi({ deps: { dispatcher: { nudge: () => service?.dispatcher.nudge() } } })
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('temporal', FILE, async ({}, { onCleanup }) => {
    const temporal = await devServer();
    onCleanup(async () => void (await temporal.close()));
    return temporal;
  })
  .extend('configOf', FILE, ({ temporal }) => (payloadKeys: Config['payloadKeys']) => ({
    ...workerConfig(temporal),
    payloadKeys,
  }))
  /** Restarts dispatcher and worker with these keys. */
  .extend('restart', FILE, ({ api, configOf }, { onCleanup }) => {
    onCleanup(async () => void (await service?.stop()));
    return async (payloadKeys: Config['payloadKeys']): Promise<TemporalClient> => {
      await service?.stop();
      const config = configOf(payloadKeys);
      const temporal = connectTemporal(config);
      const { client } = temporal;
      const dispatcher = startDispatcher({
        db: api.connection.db,
        client,
        log: { info: () => undefined, warn: () => undefined },
      });
      const activities = createActivities(activityDeps(api, 'http://127.0.0.1:1', dispatcher));
      const { connection, close } = await workerConnection();
      const bundle = await testWorkflowBundle();
      const worker = await createWorker({ config, activities, connection, bundle, debugMode: true });
      const ended = worker.run();
      const stop = async (): Promise<void> => {
        service = undefined;
        worker.shutdown();
        await ended;
        await dispatcher.stop();
        await Promise.all([close(), temporal.close()]);
      };
      service = { temporal, dispatcher, stop };
      return temporal;
    };
  })
  .extend('world', FILE, ({ api, partner, temporal }) => ({
    /** A settlement that waits for its money. */
    accept: async (): Promise<string> => {
      const id = await settle(api, partner, BY_MANUAL_CARD);
      await untilStatus(api, partner, id, 'awaiting_funds');
      return id;
    },
    /** Sends the money, and waits until the settlement has settled. */
    pay: async (settlementId: string): Promise<void> => {
      const answer = await sendCardproc(api, cardprocBody(settlementId));
      expect(answer.statusCode, answer.body).toBe(200);
      await untilStatus(api, partner, settlementId, 'settled');
    },
    /** The history as Temporal stores it, read by a client without keys, once the workflow has ended. */
    rawHistory: async (settlementId: string): Promise<History> => {
      const handle = temporal.client.workflow.getHandle(settlementWorkflowId(settlementId));
      const hasEnded = async (): Promise<boolean | undefined> => {
        const { events } = await handle.fetchHistory();
        return events?.some(({ workflowExecutionCompletedEventAttributes: end }) => end);
      };
      await expect.poll(hasEnded).toBe(true);
      return await handle.fetchHistory();
    },
  }));

/**
 * The key ids of a history's payloads; `none` for readable ones. Search attributes and the SDK's own data have no key.
 */
function keysOf(history: History): Set<string> {
  const keys = new Set<string>();
  const visit = (value: unknown, name: string): void => {
    if (
      value instanceof Uint8Array ||
      typeof value !== 'object' ||
      value === null ||
      name === 'searchAttributes' ||
      name === 'data' ||
      name === 'patch-data'
    )
      return;
    if (isPayload(value)) keys.add(Buffer.from(value.metadata['encryption-key-id'] ?? 'none').toString());
    else for (const [child, content] of Object.entries(value)) visit(content, child);
  };
  visit(history, '');
  return keys;
}

const isPayload = (value: object): value is Payload & { metadata: Record<string, Uint8Array> } =>
  'metadata' in value && typeof value.metadata === 'object' && value.metadata !== null && 'encoding' in value.metadata;

const replay = (history: History, keys: Config['payloadKeys']) =>
  testWorkflowBundle().then((workflowBundle) =>
    replayFaults({ workflowBundle, dataConverter: dataConverterOf({ payloadKeys: keys }) }, [
      { workflowId: 'recorded', history },
    ]),
  );

test('the bytes that Temporal stores contain no input, memo, summary or details of a workflow', async ({
  restart,
  temporal,
}) => {
  const { client } = await restart([OLD]);
  const handle = await client.workflow.start('settlement', {
    workflowId: 'planted',
    taskQueue: TASK_QUEUE,
    args: [{ settlementId: PLANTED, orgId: `org_${PLANTED}` }],
    memo: { requestId: `memo-${PLANTED}` },
    staticSummary: `Summary ${PLANTED}`,
    staticDetails: `Details ${PLANTED}`,
  });
  await expect(handle.result()).rejects.toThrow();
  const text = historyText(await temporal.client.workflow.getHandle('planted').fetchHistory());
  expect(text).toContain('binary/encrypted');
  expect(text).not.toContain(PLANTED);
  expect(text).not.toContain(Buffer.from(PLANTED).toString('base64').slice(0, 20));
  expect((await handle.describe()).memo).toEqual({ requestId: `memo-${PLANTED}` });
});

test('settlements that wait while encryption is switched on or its key changes settle, and replay with both keys', async ({
  restart,
  configOf,
  world,
}) => {
  await restart(undefined);
  const first = await world.accept();
  await restart([OLD]);
  await world.pay(first);
  const second = await world.accept();
  const { client } = await restart([NEW, OLD]);
  await world.pay(second);

  const [switchedOn, rotated] = [await world.rawHistory(first), await world.rawHistory(second)];
  expect([keysOf(switchedOn), keysOf(rotated)]).toEqual([new Set(['none', 'key-1']), new Set(['key-1', 'key-2'])]);
  expect(await client.workflow.getHandle(settlementWorkflowId(second)).result()).toEqual({
    status: 'settled',
    failure: null,
  });
  for (const history of [switchedOn, rotated]) expect(await replay(history, [NEW, OLD])).toEqual([]);

  const withoutOld = connectTemporal(configOf([NEW]));
  await expect(withoutOld.client.workflow.getHandle(settlementWorkflowId(second)).describe()).rejects.toThrow(
    'There is no payload key key-1 here.',
  );
  await withoutOld.close();
});

test('a run that continues as a new one after the key was changed no longer needs the old key', async ({
  restart,
  configOf,
  temporal,
  world,
}) => {
  await restart([OLD]);
  const workflowId = settlementWorkflowId(await world.accept());
  const { client } = await restart([NEW, OLD]);
  const handle = client.workflow.getHandle(workflowId);
  const { runId, memo } = await handle.describe();
  await vi.waitUntil(async () => {
    await handle.signal('redispatched');
    return (await handle.describe()).runId !== runId;
  }, WAIT);

  expect(keysOf(await temporal.client.workflow.getHandle(workflowId).fetchHistory())).toEqual(new Set(['key-2']));
  const withoutOld = connectTemporal(configOf([NEW]));
  expect((await withoutOld.client.workflow.getHandle(workflowId).describe()).memo).toEqual(memo);
  await withoutOld.close();
});

test('a settlement whose key the workers lack waits, its run names the key, and it settles once they have it', async ({
  restart,
  api,
  configOf,
  partner,
  world,
}) => {
  await restart([OLD]);
  const id = await world.accept();
  await restart([NEW]);
  await sendCardproc(api, cardprocBody(id));
  const { client, close } = connectTemporal(configOf([NEW, OLD]));
  const task = await vi.waitUntil(async () => (await describeRun(client, settlementWorkflowId(id)))?.failingTask, WAIT);
  expect(task).toEqual({
    attempt: expect.any(Number),
    cause: 'There is no payload key key-1 here.',
    isKeyMissing: true,
  });
  await close();
  await restart([NEW, OLD]);
  await untilStatus(api, partner, id, 'settled');
});
