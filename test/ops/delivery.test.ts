/** `retry-delivery`, and late deliveries in `stuck`. */
import { eq, inArray } from 'drizzle-orm';
import { expect } from 'vitest';
import { webhookDeliveries } from '../../db/schema/index.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { WAIT } from '../support/patience.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { ping, subscribe } from '../support/webhook.ts';

const AUDIT_ARGS = ['--operator', 'ana', '--note', 'their endpoint is back', '--yes'];

const WAITING = `SELECT count(*)::int AS count FROM pg_stat_activity
  WHERE wait_event_type = 'Lock' AND datname = current_database()`;

const test = withApi()
  .extend('ops', FILE, ({ api, clock }) => createOps(api.connection.db, { now: clock.now }))
  .extend('createDelivery', FILE, async ({ api, partner }) => {
    const subscription = { url: 'http://127.0.0.1:9999/', event_types: ['*'] };
    const { webhook_id: webhookId } = (await api.call(partner, 'POST', '/v1/webhooks', subscription)).json();
    return async (): Promise<string> =>
      (await api.call(partner, 'POST', `/v1/webhooks/${webhookId}/test`)).json().delivery_id;
  })
  .extend('rowOf', FILE, ({ api }) => async (deliveryId: string) => {
    const { rows } = await api.connection.pool.query(
      `SELECT generation, next_attempt_at <= now() AND lane_key IS NOT NULL AS due FROM webhook_deliveries
       WHERE delivery_id = $1`,
      [deliveryId],
    );
    return rows;
  });

test.for<[string, string[], number]>([
  ['2 without a delivery', [], 2],
  ['1 for an unknown delivery', ['no-such-delivery', ...AUDIT_ARGS], 1],
  ['2 without an operator', ['no-such-delivery', '--note', 'why'], 2],
])('retry-delivery exits with %s, and writes nothing', async ([, args, exitCode], { api, ops }) => {
  await expectUnchanged(api.connection.pool, async () => {
    expect(await ops('retry-delivery', ...args)).toMatchObject({ exitCode, printed: [] });
  });
});

test('the next attempt of a pending delivery is due now by its lane, with an audit entry', async ({
  api,
  partner,
  ops,
  createDelivery,
  rowOf,
}) => {
  const deliveryId = await createDelivery();
  const later = new Date(Date.now() + 3_600_000);
  await api.connection.db
    .update(webhookDeliveries)
    .set({ nextAttemptAt: later, laneKey: null })
    .where(eq(webhookDeliveries.deliveryId, deliveryId));
  expect((await ops('retry-delivery', deliveryId, ...AUDIT_ARGS)).exitCode).toBe(0);
  expect(await rowOf(deliveryId)).toEqual([{ generation: 1, due: true }]);
  expect(await listAudit(api.connection.db, deliveryId)).toEqual([
    { orgId: partner.orgId, action: 'delivery_retry', operator: 'ana', note: AUDIT_ARGS[3] },
  ]);
});

test('an exhausted delivery begins a new generation', async ({ api, ops, createDelivery, rowOf }) => {
  const deliveryId = await createDelivery();
  await api.connection.db
    .update(webhookDeliveries)
    .set({ status: 'exhausted', nextAttemptAt: null, laneKey: null })
    .where(eq(webhookDeliveries.deliveryId, deliveryId));
  expect((await ops('retry-delivery', deliveryId, ...AUDIT_ARGS)).exitCode).toBe(0);
  expect(await rowOf(deliveryId)).toEqual([{ generation: 2, due: true }]);
});

test('stuck lists a late delivery, and none of a subscription that has an attempt under way', async ({
  api,
  ops,
  clock,
  createDelivery,
}) => {
  const deliveryId = await createDelivery();
  clock.advance(600_000);
  const lines = async (): Promise<number> => {
    const { exitCode, printed } = await ops('stuck');
    expect(exitCode).toBe(0);
    return printed.filter((line) => line.includes(deliveryId)).length;
  };
  expect(await lines()).toBe(1);
  await api.connection.pool.query(
    'UPDATE webhook_deliveries SET claimed_by = 1, claimed_at = now() WHERE delivery_id = $1',
    [deliveryId],
  );
  expect(await lines()).toBe(0);
});

test('retry-deliveries previews the exhausted deliveries of a subscription, and sends them again with --yes', async ({
  api,
  partner,
  ops,
  createDelivery,
}) => {
  const deliveryIds = [await createDelivery(), await createDelivery(), await createDelivery()];
  const statusOf = async (id: string) =>
    (await api.connection.pool.query('SELECT status, webhook_id FROM webhook_deliveries WHERE delivery_id = $1', [id]))
      .rows[0];
  await api.connection.db
    .update(webhookDeliveries)
    .set({ status: 'exhausted', nextAttemptAt: null, laneKey: null })
    .where(inArray(webhookDeliveries.deliveryId, deliveryIds.slice(0, 2)));
  const { webhook_id: webhookId } = await statusOf(deliveryIds[0] ?? '');
  const args = ['retry-deliveries', '--webhook', webhookId, ...AUDIT_ARGS.filter((word) => word !== '--yes')];
  await expectUnchanged(api.connection.pool, async () => {
    const preview = await ops(...args);
    expect(preview).toMatchObject({
      exitCode: 3,
      printed: ['Preview: 2 deliveries will be attempted again.', expect.stringMatching(/^ {2}2 to webhook /)],
    });
  });
  expect(await ops(...args, '--yes')).toMatchObject({
    exitCode: 0,
    printed: ['2 deliveries will be attempted again.'],
  });
  for (const deliveryId of deliveryIds.slice(0, 2)) {
    expect((await statusOf(deliveryId)).status).toBe('pending');
    expect(await listAudit(api.connection.db, deliveryId)).toMatchObject([
      { action: 'delivery_retry', orgId: partner.orgId },
    ]);
  }
  expect(await listAudit(api.connection.db, deliveryIds[2] ?? '')).toEqual([]);
  expect((await ops(...args, '--yes')).printed).toEqual(['0 deliveries will be attempted again.']);
});

test('retry-deliveries counts no deliveries of a deleted subscription, however many are older', async ({
  api,
  ops,
}) => {
  const caller = await api.createCaller();
  const exhaust = async (): Promise<string> => {
    const { webhook_id: webhookId } = await subscribe(api, caller, 'http://127.0.0.1:9999/');
    const { delivery_id: deliveryId } = await ping(api, caller, webhookId);
    await api.connection.db
      .update(webhookDeliveries)
      .set({ status: 'exhausted', nextAttemptAt: null, laneKey: null })
      .where(eq(webhookDeliveries.deliveryId, deliveryId));
    return webhookId;
  };
  await api.call(caller, 'DELETE', `/v1/webhooks/${await exhaust()}`);
  await exhaust();
  expect(await ops('retry-deliveries', '--org', caller.orgId, '--limit', '1', ...AUDIT_ARGS)).toEqual({
    exitCode: 0,
    printed: ['1 deliveries will be attempted again.'],
    warned: [],
  });
});

test('retry-deliveries says at its limit that more remain, and ends when it is run again', async ({
  api,
  ops,
  createDelivery,
}) => {
  const deliveryIds = [await createDelivery(), await createDelivery(), await createDelivery()];
  await api.connection.db
    .update(webhookDeliveries)
    .set({ status: 'skipped', nextAttemptAt: null, laneKey: null })
    .where(inArray(webhookDeliveries.deliveryId, deliveryIds));
  const { rows } = await api.connection.pool.query('SELECT webhook_id FROM webhook_deliveries WHERE delivery_id = $1', [
    deliveryIds[0],
  ]);
  const args = ['retry-deliveries', '--webhook', rows[0].webhook_id, '--status', 'skipped', '--limit', '2'];
  const more = 'More remain: run the command again. --limit takes up to 1000 at once.';
  expect((await ops(...args, ...AUDIT_ARGS.filter((word) => word !== '--yes'))).printed).toEqual([
    'Preview: 2 deliveries will be attempted again.',
    expect.stringMatching(/^ {2}2 to webhook /),
    `Preview: ${more}`,
  ]);
  expect((await ops(...args, ...AUDIT_ARGS)).printed).toEqual(['2 deliveries will be attempted again.', more]);
  expect((await ops(...args, ...AUDIT_ARGS)).printed).toEqual(['1 deliveries will be attempted again.']);
});

test('retry-deliveries of two operators at once sends each delivery again once', async ({
  api,
  ops,
  createDelivery,
}) => {
  const deliveryIds = [await createDelivery(), await createDelivery()];
  await api.connection.db
    .update(webhookDeliveries)
    .set({ status: 'exhausted', nextAttemptAt: null, laneKey: null })
    .where(inArray(webhookDeliveries.deliveryId, deliveryIds));
  const { rows } = await api.connection.pool.query('SELECT webhook_id FROM webhook_deliveries WHERE delivery_id = $1', [
    deliveryIds[0],
  ]);
  const webhookId = rows[0].webhook_id;
  const holder = await api.owner.pool.connect();
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM webhooks WHERE webhook_id = $1 FOR UPDATE', [webhookId]);
  const both = [1, 2].map(() => ops('retry-deliveries', '--webhook', webhookId, ...AUDIT_ARGS));
  // Both have listed what is exhausted, and wait for the first delivery.
  await expect.poll(async () => (await holder.query(WAITING)).rows[0].count, WAIT).toBe(2);
  await holder.query('COMMIT');
  holder.release();
  const results = await Promise.all(both);
  const retried = results.map(({ printed }) => Number.parseInt(printed[0] ?? '', 10));
  expect((retried[0] ?? 0) + (retried[1] ?? 0)).toBe(2);
  const warned = results.flatMap((result) => result.warned);
  expect(new Set(warned)).toEqual(new Set(deliveryIds.map((id) => `${id} is left out: it is pending by now.`)));
  for (const id of deliveryIds) expect(await listAudit(api.connection.db, id)).toHaveLength(1);
});

test('retry-deliveries of everything is refused', async ({ ops }) => {
  expect(await ops('retry-deliveries', ...AUDIT_ARGS)).toMatchObject({
    exitCode: 2,
    warned: ['Give --webhook or --org.', expect.anything()],
  });
});
