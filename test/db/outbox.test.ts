/** The dispatcher's statements, as the database sees them. */
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import type { Queryable } from '../../db/client.ts';
import { claimOutbox, deleteOutbox, enqueue, postponeOutbox } from '../../db/queries/outbox.ts';
import { type OutboxMessage, otpMessage, subscriptionMessage } from '../../domain/outbox.ts';
import { withDatabase } from '../support/fixture.ts';

const test = withDatabase(1);

const durability = async (db: Queryable): Promise<unknown> =>
  (await db.execute(sql`SHOW synchronous_commit`)).rows[0]?.['synchronous_commit'];

test('a claim and a delete do not wait for the disk, and the next transaction of their connection does', async ({
  connection: { db },
}) => {
  // The tests' server runs without it. The pool has one connection, so this lasts.
  await db.execute(sql`SET synchronous_commit = on`);
  await db.transaction((tx) => enqueue(tx, otpMessage('claimed', 'request-1')));
  const claimed = await db.transaction(async (tx) => {
    const rows = await claimOutbox(tx, 10);
    expect(await durability(tx)).toBe('off');
    return rows;
  });
  expect(await durability(db)).toBe('on');
  expect(claimed).toMatchObject([{ kind: 'otp', objectId: 'claimed', requestId: 'request-1', attempts: 1 }]);
  await db.transaction(async (tx) => {
    await deleteOutbox(
      tx,
      claimed.map(({ outboxId }) => outboxId),
    );
    expect(await durability(tx)).toBe('off');
  });
  expect(await durability(db)).toBe('on');
  expect(await db.$count(sql`outbox`)).toBe(0);
});

test('a claim takes as many rows as it is asked for, those of subscriptions among them', async ({
  connection: { db },
}) => {
  const messages = (kind: string, make: (id: string, requestId: string) => OutboxMessage) =>
    Array.from({ length: 8 }, (_, n) => make(`${kind}-${n}`, 'request-1'));
  const ofSubscription = (webhookId: string, requestId: string) =>
    subscriptionMessage({ webhookId, orgId: 'org' }, requestId);
  await db.transaction((tx) => enqueue(tx, ...messages('otp', otpMessage), ...messages('webhook', ofSubscription)));
  const claims: string[][] = [];
  for (let n = 0; n < 3; n += 1) claims.push((await claimOutbox(db, 6)).map(({ kind }) => kind));
  await db.execute(sql`DELETE FROM outbox`);
  await db.transaction((tx) => enqueue(tx, ...messages('otp', otpMessage), ofSubscription('one', 'request-1')));
  const withOne = await claimOutbox(db, 6);
  await db.execute(sql`DELETE FROM outbox`);
  const [few, most] = [Array(4).fill('webhook_subscription'), Array(2).fill('otp')];
  expect(claims).toEqual([[...most, ...few], [...most, ...few], Array(4).fill('otp')]);
  expect(withOne).toHaveLength(6);
});

test('two claims at once take different rows, what is due for longest first, and neither waits for the other', async ({
  connection,
  owner,
}) => {
  const ids = ['one', 'two'];
  for (const id of ids) await connection.db.transaction((tx) => enqueue(tx, otpMessage(id, 'request-1')));
  const claimed = await connection.db.transaction(async (tx) => [
    ...(await claimOutbox(tx, 1)),
    ...(await claimOutbox(owner.db, 2)),
  ]);
  expect(claimed.map(({ objectId }) => objectId)).toEqual(ids);
  await connection.db.execute(sql`DELETE FROM outbox`);
});

test('a row whose dispatch fails again and again stays as it was, and comes again within five seconds', async ({
  connection: { db },
}) => {
  await db.transaction((tx) => enqueue(tx, subscriptionMessage({ webhookId: 'failing', orgId: 'org' }, 'request-1')));
  await db.execute(sql`UPDATE outbox SET attempts = 50, created_at = now() - interval '1 hour', traceparent = 'trace'`);
  const columns = sql`kind, object_id, signal, context, request_id, traceparent, created_at, attempts`;
  const { rows: before } = await db.execute(sql`SELECT ${columns} FROM outbox`);
  const [row] = await claimOutbox(db, 4);
  await postponeOutbox(db, [row?.outboxId ?? 0], 'test');
  const { rows } = await db.execute(sql`
    DELETE FROM outbox RETURNING ${columns}, last_error, extract(epoch FROM due_at - now())::float8 AS seconds`);
  expect(rows).toEqual([{ ...before[0], attempts: 51, last_error: 'test', seconds: expect.closeTo(5, 0) }]);
});

test('a dispatched row is deleted, and not the row that has its number after a failover that lost it', async ({
  connection: { db },
}) => {
  await db.transaction((tx) => enqueue(tx, otpMessage('lost', 'request-1')));
  const [row] = await claimOutbox(db, 1);
  const ids = [row?.outboxId ?? 0];
  await db.execute(sql`DELETE FROM outbox`);
  await db.execute(sql`
    INSERT INTO outbox (outbox_id, kind, object_id, context, request_id) VALUES (${ids[0]}, 'otp', 'next', '{}', 'request-2')`);
  await deleteOutbox(db, ids);
  const claimed = await claimOutbox(db, 1);
  expect(claimed).toMatchObject([{ objectId: 'next' }]);
  await deleteOutbox(db, ids);
  expect(await db.$count(sql`outbox`)).toBe(0);
});
