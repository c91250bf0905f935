import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { count } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Connection as DatabaseConnection } from '../../db/client.ts';
import { outbox } from '../../db/schema/index.ts';
import { startDispatcher } from '../../process/dispatcher.ts';
import { createTestDatabase } from '../support/postgres.ts';

const ROWS = 40;
const TURN_MS = 5;

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let connection: DatabaseConnection;

beforeAll(async () => {
  database = await createTestDatabase();
  connection = connect(database.databaseUrl, { poolSizeMax: 4, name: 'test', onIdleError: () => undefined });
});
afterAll(async () => {
  await connection.close();
  await database.drop();
});

test('a Temporal that is slow has at most eight calls under way, and each row is dispatched once', async () => {
  const context = { orgId: 'org', corridor: 'US-JM', paymentMethod: 'card' } as const;
  await connection.db.insert(outbox).values(
    Array.from({ length: ROWS }, (_, index) => ({
      kind: 'settlement' as const,
      objectId: `stl_${index}`,
      context,
      requestId: 'req',
    })),
  );
  let underWay = 0;
  let mostUnderWay = 0;
  const started: string[] = [];
  // Answers in Temporal's stead; nothing listens where it would connect to.
  const start = async ({ options }: { options: { workflowId: string } }): Promise<string> => {
    underWay += 1;
    mostUnderWay = Math.max(mostUnderWay, underWay);
    await delay(TURN_MS);
    started.push(options.workflowId);
    underWay -= 1;
    return 'run';
  };
  const client = new Client({ connection: Connection.lazy(), interceptors: { workflow: [{ start }] } });
  const dispatcher = startDispatcher({ db: connection.db, client, log: { warn: () => undefined } });
  const left = async () => (await connection.db.select({ count: count() }).from(outbox))[0]?.count;
  await expect.poll(left, { timeout: 10_000 }).toBe(0);
  await dispatcher.stop();
  expect(mostUnderWay).toBe(8);
  expect(new Set(started).size).toBe(ROWS);
  expect(started).toHaveLength(ROWS);
});
