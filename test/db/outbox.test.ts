/** The dispatcher's statements, as the database sees them. */
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import type { Queryable } from '../../db/client.ts';
import { claimOutbox, deleteOutbox, enqueue } from '../../db/queries/outbox.ts';
import { otpMessage } from '../../domain/outbox.ts';
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
