import { setTimeout as delay } from 'node:timers/promises';
import {
  Client,
  Connection,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowSignalWithStartInput,
  type WorkflowStartInput,
} from '@temporalio/client';
import { count } from 'drizzle-orm';
import pg from 'pg';
import { expect, vi } from 'vitest';
import { outbox } from '../../db/schema/index.ts';
import { startDispatcher } from '../../process/dispatcher.ts';
import { withDatabase } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';

const ROWS = 40;
const CALL_MS = 5;

const test = withDatabase(4);

test('a slow Temporal gets at most eight calls at once, and each row is dispatched once', async ({ connection }) => {
  const { db } = connection;
  const context = { orgId: 'org', corridor: 'US-JM', paymentMethod: 'card' } as const;
  await db.insert(outbox).values(
    Array.from({ length: ROWS }, (_, index) => ({
      kind: 'settlement' as const,
      objectId: `stl_${index}`,
      context,
      requestId: 'req',
    })),
  );
  let atOnce = 0;
  let mostAtOnce = 0;
  const started: string[] = [];
  // Answers instead of Temporal: the client never connects.
  const start = async ({ options }: { options: { workflowId: string } }): Promise<string> => {
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    await delay(CALL_MS);
    started.push(options.workflowId);
    atOnce -= 1;
    return 'run';
  };
  const client = new Client({ connection: Connection.lazy(), interceptors: { workflow: [{ start }] } });
  const dispatcher = startDispatcher({ db, client, log: { info: () => undefined, warn: () => undefined } });
  const rowsLeft = async () => (await db.select({ count: count() }).from(outbox))[0]?.count;
  await vi.waitUntil(async () => (await rowsLeft()) === 0, WAIT);
  await dispatcher.stop();
  expect(mostAtOnce).toBe(8);
  expect(new Set(started).size).toBe(ROWS);
  expect(started).toHaveLength(ROWS);
});

test('rows of a kind that only a later version knows wait, and hold up no others', async ({ connection, owner }) => {
  const { db } = connection;
  const later = Array.from({ length: 40 }, (_, index) => `later_${index}`);
  await owner.pool.query(
    `INSERT INTO outbox (kind, object_id, context, request_id) SELECT 'refund', unnest($1::text[]), '{}', 'req'`,
    [later],
  );
  const context = { orgId: 'org', corridor: 'US-JM', paymentMethod: 'card' } as const;
  await db.insert(outbox).values({ kind: 'settlement', objectId: 'stl_1', context, requestId: 'req' });
  const started: string[] = [];
  const start = async ({ options }: { options: { workflowId: string } }): Promise<string> => {
    started.push(options.workflowId);
    return 'run';
  };
  const client = new Client({ connection: Connection.lazy(), interceptors: { workflow: [{ start }] } });
  const dispatcher = startDispatcher({ db, client, log: { info: () => undefined, warn: () => undefined } });
  await vi.waitUntil(() => started.length === 1, WAIT);
  await dispatcher.stop();
  expect(started).toEqual(['settlement:stl_1']);
  const { rows } = await owner.pool.query('SELECT DISTINCT kind, last_error FROM outbox');
  await owner.pool.query('DELETE FROM outbox');
  expect(rows).toEqual([{ kind: 'refund', last_error: 'unknown_kind' }]);
});

test('a new settlement whose workflow has a run makes that run read it again', async ({ connection }) => {
  const { db } = connection;
  const context = { orgId: 'org', corridor: 'US-JM', paymentMethod: 'card' } as const;
  await db.insert(outbox).values({ kind: 'settlement', objectId: 'stl_1', context, requestId: 'req' });
  const start = async ({ options: { workflowId }, workflowType }: WorkflowStartInput): Promise<string> => {
    throw new WorkflowExecutionAlreadyStartedError('started', workflowId, workflowType);
  };
  const signals: unknown[] = [];
  const signalWithStart = async ({ signalName, options }: WorkflowSignalWithStartInput): Promise<string> => {
    signals.push([signalName, options.workflowId, options.workflowIdReusePolicy]);
    return 'run';
  };
  const client = new Client({
    connection: Connection.lazy(),
    interceptors: { workflow: [{ start, signalWithStart }] },
  });
  const dispatcher = startDispatcher({ db, client, log: { info: () => undefined, warn: () => undefined } });
  const rowsLeft = async () => (await db.select({ count: count() }).from(outbox))[0]?.count;
  await vi.waitUntil(async () => (await rowsLeft()) === 0, WAIT);
  await dispatcher.stop();
  expect(signals).toEqual([['redispatched', 'settlement:stl_1', 'ALLOW_DUPLICATE']]);
});

test('commits in quick succession share their claims', async ({ connection }) => {
  const claims = vi.spyOn(pg.Client.prototype, 'query');
  const claimed = () => claims.mock.calls.filter(([query]) => JSON.stringify(query).includes('claim_outbox')).length;
  const client = new Client({ connection: Connection.lazy() });
  const dispatcher = startDispatcher({
    db: connection.db,
    client,
    log: { info: () => undefined, warn: () => undefined },
  });
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
  claims.mockRestore();
});

test('four claims a second at most follow from commits in quick succession while Temporal refuses all calls', async ({
  connection,
}) => {
  const { db } = connection;
  const context = { orgId: 'org', corridor: 'US-JM', paymentMethod: 'card' } as const;
  const commit = async (index: number): Promise<void> => {
    await db.insert(outbox).values({ kind: 'settlement', objectId: `stl_${index}`, context, requestId: 'req' });
  };
  const refuse = async (): Promise<string> => {
    throw new Error('unavailable');
  };
  const claims = vi.spyOn(pg.Client.prototype, 'query');
  const claimed = () => claims.mock.calls.filter(([query]) => JSON.stringify(query).includes('claim_outbox')).length;
  const client = new Client({ connection: Connection.lazy(), interceptors: { workflow: [{ start: refuse }] } });
  const dispatcher = startDispatcher({ db, client, log: { info: () => undefined, warn: () => undefined } });
  await vi.waitUntil(() => claimed() === 1, WAIT);
  const startedMs = performance.now();
  for (let index = 0; index < 200; index += 1) {
    await commit(index);
    dispatcher.nudge();
    await delay(5);
  }
  await dispatcher.stop();
  const tookMs = performance.now() - startedMs;
  // The first refusal comes after a claim or two.
  expect(claimed()).toBeGreaterThan(1);
  expect(claimed()).toBeLessThanOrEqual(3 + Math.ceil(tookMs / 250));
  claims.mockRestore();
});
