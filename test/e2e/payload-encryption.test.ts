/** What Temporal keeps of a settlement when encryption is switched on while it waits, and when the key changes while it waits. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Payload } from '@temporalio/common';
import { type History, payloadToJSON } from '@temporalio/common/lib/proto-utils.js';
import { Worker } from '@temporalio/worker';
import Stripe from 'stripe';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import type { Config, NamedKey } from '../../config.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { buildCodec } from '../../ops/codec.ts';
import { type Dispatcher, startDispatcher } from '../../process/dispatcher.ts';
import { createPayloadCodec, dataConverterOf } from '../../process/payload-codec.ts';
import { connectTemporal, type TemporalClient } from '../../process/temporal.ts';
import { createWorker } from '../../worker/worker.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { historyText } from '../support/history.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';
import { devServer, testWorkflowBundle, workerConfig } from '../support/temporal.ts';

const newKey = (id: string): NamedKey => ({ id, key: randomBytes(32) });
const [OLD, NEW] = [newKey('key-1'), newKey('key-2')];
const PLANTED = 'stl_planted_0123456789abcdef';
const UI = 'http://127.0.0.1:8080';

let temporal: Awaited<ReturnType<typeof devServer>>;
let api: TestApi;
let caller: Caller;
let service: { readonly temporal: TemporalClient; readonly dispatcher: Dispatcher; stop(): Promise<void> } | undefined;

beforeAll(async () => {
  temporal = await devServer();
  api = await createTestApi({ deps: { dispatcher: { nudge: () => service?.dispatcher.nudge() } } });
  caller = await api.createCaller();
});
afterAll(async () => {
  await service?.stop();
  await api.close();
  await temporal.close();
});

const configOf = (payloadKeys: Config['payloadKeys']) => ({ ...workerConfig(temporal), payloadKeys });

/** Dispatcher and worker, restarted with these keys. */
async function restart(payloadKeys: Config['payloadKeys']): Promise<TemporalClient> {
  await service?.stop();
  const client = connectTemporal(configOf(payloadKeys));
  const dispatcher = startDispatcher({ db: api.connection.db, client: client.client, log: { warn: () => undefined } });
  const activities = createActivities(activityDeps(api, 'http://127.0.0.1:1', dispatcher));
  const worker = await createWorker({
    config: configOf(payloadKeys),
    activities,
    bundle: await testWorkflowBundle(),
  });
  const ended = worker.run();
  service = {
    temporal: client,
    dispatcher,
    stop: async () => {
      service = undefined;
      worker.shutdown();
      await ended;
      await dispatcher.stop();
      await Promise.all([worker.close(), client.close()]);
    },
  };
  return client;
}

async function acceptUntilItWaits(): Promise<string> {
  const body = settleBody(await createRecipient({ api }, caller), { card_token: 'tok_manual' });
  const { settlement_id: id } = jsonOf(
    await api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': randomUUID() }),
  );
  await untilStatus({ api }, caller, id, 'awaiting_funds');
  return id;
}

async function pay(settlementId: string): Promise<void> {
  const object = {
    object: 'payment_intent',
    amount_received: 25_000,
    currency: 'usd',
    metadata: { settlement_id: settlementId },
  };
  const created = Math.floor(Date.now() / 1_000);
  const payload = JSON.stringify({
    id: `evt_${randomUUID()}`,
    object: 'event',
    type: 'payment_intent.succeeded',
    created,
    livemode: false,
    data: { object },
  });
  const header = Stripe.webhooks.generateTestHeaderString({ payload, secret: TEST_SECRETS.cardproc });
  expect(
    (await api.call(null, 'POST', '/v2/webhooks/cardproc', payload, { 'cardproc-signature': header })).statusCode,
  ).toBe(200);
  await untilStatus({ api }, caller, settlementId, 'settled');
}

/** As Temporal keeps it: read by a client that has no keys. */
async function rawHistory(workflowId: string): Promise<History> {
  const handle = temporal.client.workflow.getHandle(workflowId);
  await expect
    .poll(async () =>
      (await handle.fetchHistory()).events?.some(({ workflowExecutionCompletedEventAttributes: end }) => end),
    )
    .toBe(true);
  return await handle.fetchHistory();
}

/** The keys of a history's payloads; `none` for what is readable. Search attributes and the SDK's own notes are always so. */
function keysOf(history: History): Set<string> {
  const keys = new Set<string>();
  const visit = (value: unknown, name: string): void => {
    if (
      value instanceof Uint8Array ||
      typeof value !== 'object' ||
      value === null ||
      name === 'searchAttributes' ||
      name === 'data'
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
    Worker.runReplayHistory({ workflowBundle, dataConverter: dataConverterOf({ payloadKeys: keys }) }, history),
  );

test('nothing of what a workflow is told can be read from the bytes that Temporal keeps', {
  timeout: 60_000,
}, async () => {
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

test('settlements that wait while encryption is switched on and while its key is changed settle, and read and replay with both keys', {
  timeout: 120_000,
}, async () => {
  await restart(undefined);
  const first = await acceptUntilItWaits();
  await restart([OLD]);
  await pay(first);
  const second = await acceptUntilItWaits();
  const { client } = await restart([NEW, OLD]);
  await pay(second);

  const [fromPlain, rotated] = [
    await rawHistory(settlementWorkflowId(first)),
    await rawHistory(settlementWorkflowId(second)),
  ];
  expect([keysOf(fromPlain), keysOf(rotated)]).toEqual([new Set(['none', 'key-1']), new Set(['key-1', 'key-2'])]);
  expect(await client.workflow.getHandle(settlementWorkflowId(second)).result()).toEqual({
    status: 'settled',
    failure: null,
  });
  for (const history of [fromPlain, rotated]) await expect(replay(history, [NEW, OLD])).resolves.toBeUndefined();

  const withoutOld = connectTemporal(configOf([NEW]));
  await expect(withoutOld.client.workflow.getHandle(settlementWorkflowId(second)).describe()).rejects.toThrow(
    'There is no payload key key-1 here.',
  );
  await withoutOld.close();

  const input =
    rotated.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0] ?? expect.fail('no input');
  const server = buildCodec({
    codec: createPayloadCodec([NEW, OLD]),
    namespace: temporal.namespace,
    origins: [UI],
    token: undefined,
  });
  const headers = { origin: UI, 'x-namespace': temporal.namespace };
  const answer = await server.inject({
    method: 'POST',
    url: '/decode',
    headers,
    payload: { payloads: [payloadToJSON(input)] },
  });
  const opened = Buffer.from(answer.json().payloads[0].data, 'base64').toString();
  expect(JSON.parse(opened)).toEqual({ settlementId: second, orgId: caller.orgId });
});
