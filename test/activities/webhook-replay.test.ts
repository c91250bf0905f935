/** The steps of a replay: ended in between, beside others, and what starts a lost one again. */
import { describe, expect } from 'vitest';
import { listDueSubscriptions, listPendingSubscriptions } from '../../db/queries/operator/pending-subscription.ts';
import { takeReplayStep } from '../../db/queries/webhook-replay.ts';
import { lookForRetries } from '../../db/queries/webhook-retry.ts';
import { REPLAY_STEP } from '../../domain/webhook.ts';
import { withApi } from '../support/fixture.ts';
import { createMissed } from '../support/replay.ts';
import { ping } from '../support/webhook.ts';

const test = withApi();

/** Dies at the given passage of a crash point. */
const dyingAt = (point: string, passage: number) => {
  let passed = 0;
  return (reached: string): void => {
    if (reached === point && ++passed === passage) throw new Error('killed');
  };
};

describe('a replay', () => {
  test.for([
    ['subscription.replay:before_commit', 0],
    ['subscription.replay:after_commit', 1],
  ] as const)(
    'begins one generation of each delivery and leaves none out, if it is killed at %s between two steps',
    async ([point, stepsMore], { api }) => {
      const missed = await createMissed(api, 2 * REPLAY_STEP + 1);
      const id = await missed.start();
      await expect(missed.round(dyingAt(point, 2))).rejects.toThrow('killed');
      expect(await missed.read(id)).toMatchObject({ status: 'running', sent: (1 + stepsMore) * REPLAY_STEP });
      const begun = (await missed.deliveries()).map(({ generation }) => generation);
      expect(begun.lastIndexOf(2)).toBe((1 + stepsMore) * REPLAY_STEP - 1);
      await missed.round();
      expect(await missed.read(id)).toMatchObject({ status: 'completed', sent: 2 * REPLAY_STEP + 1, skipped: 0 });
      const rows = await missed.deliveries();
      expect(new Set(rows.map(({ generation, status }) => `${status} ${generation}`))).toEqual(new Set(['pending 2']));
    },
  );

  test('takes a step for each 500 deliveries, and one that finds no more', async ({ api }) => {
    const missed = await createMissed(api, 4 * REPLAY_STEP);
    const id = await missed.start();
    let steps = 0;
    const count = (point: string): void => {
      if (point === 'subscription.replay:after_commit') steps += 1;
    };
    while ((await missed.read(id)).status === 'running') await missed.round(count);
    expect(await missed.read(id)).toMatchObject({ status: 'completed', sent: 4 * REPLAY_STEP, skipped: 0 });
    expect(steps).toBeLessThanOrEqual(6);
    const sent = await missed.rowsOf(
      `SELECT count(*)::int AS count, count(DISTINCT next_attempt_at)::int AS steps FROM webhook_deliveries
      WHERE webhook_id = $1 AND status = 'pending' AND generation = 2 AND lane_key IS NOT NULL`,
    );
    expect(sent).toEqual([{ count: 4 * REPLAY_STEP, steps: 4 }]);
  });

  test('lets no statement of another organization wait while a step is under way', async ({ api }) => {
    const [missed, other] = [await createMissed(api, REPLAY_STEP), await createMissed(api, 10)];
    await missed.start();
    await api.connection.db.transaction(async (tx) => {
      expect(await takeReplayStep(tx, missed.webhookId)).toBe('more');
      const theirs = await other.start();
      await other.round();
      expect(await other.read(theirs)).toMatchObject({ status: 'completed', sent: 10 });
      await ping(api, other.caller, other.webhookId);
      expect((await other.call('PATCH', '', { status: 'enabled' })).statusCode).toBe(200);
      // Its own organization's new events do not wait either.
      await ping(api, missed.caller, missed.webhookId);
    });
  });

  test('waits for no delivery that somebody else holds, and does not leave it out', async ({ api }) => {
    const missed = await createMissed(api, 10);
    const id = await missed.start();
    const held = (await missed.deliveries())[4]?.['delivery_id'];
    await api.connection.db.transaction(async (tx) => {
      await tx.execute(`SELECT 1 FROM webhook_deliveries WHERE delivery_id = '${held}' FOR UPDATE`);
      const { db } = api.connection;
      expect([await takeReplayStep(db, missed.webhookId), await takeReplayStep(db, missed.webhookId)]).toEqual([
        'more',
        'held',
      ]);
      expect(await missed.read(id)).toMatchObject({ status: 'running', sent: 4 });
    });
    await missed.round();
    expect(await missed.read(id)).toMatchObject({ status: 'completed', sent: 10 });
    expect(new Set((await missed.deliveries()).map(({ generation }) => generation))).toEqual(new Set([2]));
  });

  test('leaves out what was created after it', async ({ api }) => {
    const missed = await createMissed(api, 3);
    const id = await missed.start();
    await ping(api, missed.caller, missed.webhookId);
    await missed.round();
    expect(await missed.read(id)).toMatchObject({ status: 'completed', sent: 3 });
  });

  test('goes on in the next round if the time of one is over, so its workflow does not end', async ({ api }) => {
    const missed = await createMissed(api, 3);
    await missed.start();
    const { db } = api.connection;
    const look = await db.transaction((tx) => lookForRetries(tx, missed.webhookId));
    expect(Date.parse(look.nextAttemptAt ?? '')).toBeLessThanOrEqual(Date.now());
    await missed.round();
    expect(await db.transaction((tx) => lookForRetries(tx, missed.webhookId))).toMatchObject({ nextAttemptAt: null });
  });

  test('is started again by the sweep and by redispatch if its run was lost', async ({ api }) => {
    const missed = await createMissed(api, 3);
    await missed.start();
    const listed = async (list: typeof listDueSubscriptions) =>
      (await list(api.connection.db, { after: '', limit: 100 }, 'test')).map(({ message }) => message.objectId);
    expect(await listed(listDueSubscriptions)).toContain(missed.webhookId);
    expect(await listed(listPendingSubscriptions)).toContain(missed.webhookId);
    await missed.round();
    expect(await listed(listDueSubscriptions)).not.toContain(missed.webhookId);
    expect(await listed(listPendingSubscriptions)).not.toContain(missed.webhookId);
  });
});
