import { setTimeout as delay } from 'node:timers/promises';
import {
  Client,
  Connection,
  type WorkflowClientInterceptor,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/client';
import { count } from 'drizzle-orm';
import pg from 'pg';
import { expect, vi } from 'vitest';
import type { Database } from '../../db/client.ts';
import { enqueue } from '../../db/queries/outbox.ts';
import { outbox } from '../../db/schema/index.ts';
import { subscriptionMessage } from '../../domain/outbox.ts';
import { startDispatcher } from '../../process/dispatcher.ts';
import { withDatabase } from '../support/fixture.ts';
import { temporalSilence } from '../support/ops.ts';
import { WAIT } from '../support/patience.ts';

const ROWS = 40;
const CALL_MS = 5;

const test = withDatabase(4);

/** A dispatcher whose calls are answered in place of Temporal: its client never connects. */
const dispatch = (db: Database, answers: WorkflowClientInterceptor = {}, warn = vi.fn()) =>
  startDispatcher({
    db,
    client: new Client({ connection: Connection.lazy(), interceptors: { workflow: [answers] } }),
    log: { info: () => undefined, warn },
  });

const settlementRow = (objectId: string) =>
  ({
    kind: 'settlement',
    objectId,
    requestId: 'req',
    context: { orgId: 'org', corridor: 'US-JM', paymentMethod: 'card' },
  }) as const;

const untilEmpty = (db: Database) =>
  vi.waitUntil(async () => (await db.select({ count: count() }).from(outbox))[0]?.count === 0, WAIT);

/** How many claims were sent to PostgreSQL since this was called. */
function countClaims(onTestFinished: (end: () => void) => void): () => number {
  const queries = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => queries.mockRestore());
  const isClaim = (sent: unknown) => (sent as { readonly name?: string }).name === 'claim_outbox';
  return () => queries.mock.calls.filter(([sent]) => isClaim(sent)).length;
}

test('a slow Temporal gets at most eight calls at once, and each row is dispatched once', async ({ connection }) => {
  const { db } = connection;
  await db.insert(outbox).values(Array.from({ length: ROWS }, (_, index) => settlementRow(`stl_${index}`)));
  let atOnce = 0;
  let mostAtOnce = 0;
  const started: string[] = [];
  const dispatcher = dispatch(db, {
    start: async ({ options }) => {
      atOnce += 1;
      mostAtOnce = Math.max(mostAtOnce, atOnce);
      await delay(CALL_MS);
      started.push(options.workflowId);
      atOnce -= 1;
      return 'run';
    },
  });
  await untilEmpty(db);
  await dispatcher.stop();
  expect(mostAtOnce).toBe(8);
  expect(new Set(started).size).toBe(ROWS);
  expect(started).toHaveLength(ROWS);
});

test('rows beyond one claim wait for no commit and no poll, and a stop waits for the calls under way', async ({
  connection: { db },
}) => {
  await db.insert(outbox).values(Array.from({ length: ROWS }, (_, index) => settlementRow(`stl_${index}`)));
  await db.transaction((tx) => enqueue(tx, subscriptionMessage({ webhookId: 'whk_1', orgId: 'org' }, 'req')));
  let calls = 0;
  let answer = (): void => undefined;
  const last = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const poll = vi.spyOn(globalThis, 'setInterval').mockImplementationOnce(() => setTimeout(() => undefined));
  const dispatcher = dispatch(db, {
    start: async () => {
      calls += 1;
      if (calls === ROWS) await last;
      return 'run';
    },
    signalWithStart: async () => 'run',
  });
  poll.mockRestore();
  await vi.waitUntil(() => calls === ROWS, WAIT);
  const left = dispatcher.stop().then(async () => await db.$count(outbox));
  setTimeout(answer, 50);
  expect(await left).toBe(0);
});

test('rows of a kind that only a later version knows wait, and hold up no others', async ({ connection, owner }) => {
  const { db } = connection;
  const later = Array.from({ length: 40 }, (_, index) => `later_${index}`);
  await owner.pool.query(
    `INSERT INTO outbox (kind, object_id, context, request_id) SELECT 'refund', unnest($1::text[]), '{}', 'req'`,
    [later],
  );
  await db.insert(outbox).values(settlementRow('stl_1'));
  const started: string[] = [];
  const dispatcher = dispatch(db, {
    start: async ({ options }) => {
      started.push(options.workflowId);
      return 'run';
    },
  });
  await vi.waitUntil(() => started.length === 1, WAIT);
  await dispatcher.stop();
  expect(started).toEqual(['settlement:stl_1']);
  const { rows } = await owner.pool.query('SELECT DISTINCT kind, last_error FROM outbox');
  await owner.pool.query('DELETE FROM outbox');
  expect(rows).toEqual([{ kind: 'refund', last_error: 'unknown_kind' }]);
});

test('a new settlement whose workflow has a run makes that run read it again', async ({ connection }) => {
  const { db } = connection;
  await db.insert(outbox).values(settlementRow('stl_1'));
  const signals: unknown[] = [];
  const dispatcher = dispatch(db, {
    start: async ({ options: { workflowId }, workflowType }) => {
      throw new WorkflowExecutionAlreadyStartedError('started', workflowId, workflowType);
    },
    signalWithStart: async ({ signalName, options }) => {
      signals.push([signalName, options.workflowId, options.workflowIdReusePolicy]);
      return 'run';
    },
  });
  await untilEmpty(db);
  await dispatcher.stop();
  expect(signals).toEqual([['redispatched', 'settlement:stl_1', 'ALLOW_DUPLICATE']]);
});

test('a row that was not dispatched has its own reason, whatever became of the others', async ({
  connection,
  owner,
}) => {
  const { db } = connection;
  await owner.pool.query(
    `INSERT INTO outbox (kind, object_id, context, request_id) VALUES ('refund', 'later_1', '{}', 'req')`,
  );
  await db.insert(outbox).values(settlementRow('stl_1'));
  const start = vi.fn(() => Promise.reject(temporalSilence()));
  const dispatcher = dispatch(db, { start });
  await vi.waitUntil(() => start.mock.calls.length > 0, WAIT);
  await dispatcher.stop();
  const { rows } = await owner.pool.query('DELETE FROM outbox RETURNING object_id, last_error');
  expect(new Map(rows.map((row) => [row.object_id, row.last_error]))).toEqual(
    new Map([
      ['later_1', 'unknown_kind'],
      ['stl_1', 'not_answering'],
    ]),
  );
});

test('an outbox that cannot be read is logged, and its rows are dispatched once it can', async ({
  connection: { db },
  owner,
}) => {
  await db.insert(outbox).values(settlementRow('stl_1'));
  await owner.pool.query('ALTER TABLE outbox RENAME TO outbox_away');
  const warn = vi.fn();
  const dispatcher = dispatch(db, { start: async () => 'run' }, warn);
  await vi.waitUntil(() => warn.mock.calls.length > 0, WAIT);
  await owner.pool.query('ALTER TABLE outbox_away RENAME TO outbox');
  await untilEmpty(db);
  await dispatcher.stop();
  expect(warn.mock.calls[0]).toEqual([{ err: expect.any(Error) }, 'the outbox could not be read']);
});

test('a row that Temporal refuses does not slow down the others', async ({ connection: { db } }) => {
  const started = new Set<string>();
  const dispatcher = dispatch(db, {
    start: async ({ options: { workflowId } }) => {
      if (workflowId.endsWith('refused')) throw new Error('refused');
      started.add(workflowId);
      return 'run';
    },
  });
  let index = 0;
  const dispatchedAfterMs = async (): Promise<number> => {
    index += 1;
    await db.insert(outbox).values([settlementRow(`stl_${index}_refused`), settlementRow(`stl_${index}`)]);
    const writtenMs = performance.now();
    dispatcher.nudge();
    await vi.waitUntil(() => started.has(`settlement:stl_${index}`), { ...WAIT, interval: 5 });
    return performance.now() - writtenMs;
  };
  await dispatchedAfterMs();
  // While Temporal accepts nothing, the pause is a quarter of a second. On a busy machine only some rounds are quick.
  await vi.waitUntil(async () => (await dispatchedAfterMs()) < 125, { ...WAIT, interval: 1 });
  await dispatcher.stop();
  await db.delete(outbox);
});

test('commits in quick succession share their claims', async ({ connection, onTestFinished }) => {
  const claimed = countClaims(onTestFinished);
  const dispatcher = dispatch(connection.db);
  await vi.waitUntil(() => claimed() === 1, WAIT);
  const startedMs = performance.now();
  for (let commit = 0; commit < 100; commit += 1) {
    dispatcher.nudge();
    await delay(1);
  }
  await dispatcher.stop();
  const tookMs = performance.now() - startedMs;
  expect(claimed()).toBeGreaterThan(1);
  expect(claimed()).toBeLessThanOrEqual(2 + Math.ceil(tookMs / 10));
});

test('four claims a second at most follow from commits in quick succession while Temporal refuses all calls', async ({
  connection,
  onTestFinished,
}) => {
  const { db } = connection;
  const claimed = countClaims(onTestFinished);
  const dispatcher = dispatch(db, { start: () => Promise.reject(new Error('unavailable')) });
  await vi.waitUntil(() => claimed() === 1, WAIT);
  const startedMs = performance.now();
  for (let index = 0; index < 200; index += 1) {
    await db.insert(outbox).values(settlementRow(`stl_${index}`));
    dispatcher.nudge();
    await delay(5);
  }
  await dispatcher.stop();
  const tookMs = performance.now() - startedMs;
  // The first refusal comes after a claim or two.
  expect(claimed()).toBeGreaterThan(1);
  expect(claimed()).toBeLessThanOrEqual(3 + Math.ceil(tookMs / 250));
});
