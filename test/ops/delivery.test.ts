/** `retry-delivery` and `retry-deliveries`, and late deliveries in `stuck`. */
import type pg from 'pg';
import { expect } from 'vitest';
import { raceBehind } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { changeEnvironment } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { endAs, ping, subscribe } from '../support/webhook.ts';

const AUDIT_ARGS = ['--operator', 'ana', '--note', 'their endpoint is back'];
const ACT_ARGS = [...AUDIT_ARGS, '--yes'];

/** `createDeliveries`: so many of the subscription `webhookId`, which are pending. */
const test = withApi()
  .extend('ops', FILE, ({ api, clock }) => createOps(api.connection.db, { now: clock.now }))
  .extend('webhookId', async ({ api, partner }): Promise<string> => {
    return (await subscribe(api, partner, 'http://127.0.0.1:9999/')).webhook_id;
  })
  .extend('createDeliveries', ({ api, partner, webhookId }) => async (count: number): Promise<string[]> => {
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) ids.push((await ping(api, partner, webhookId)).delivery_id);
    return ids;
  });

test.for<[string, string[], number]>([
  ['2 without a delivery', [], 2],
  ['1 for an unknown delivery', ['no-such-delivery', ...ACT_ARGS], 1],
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
  createDeliveries,
}) => {
  const [id = ''] = await createDeliveries(1);
  const { pool, db } = api.connection;
  const later = `UPDATE webhook_deliveries SET next_attempt_at = now() + interval '1 hour', lane_key = NULL`;
  await pool.query(`${later} WHERE delivery_id = $1`, [id]);
  expect((await ops('retry-delivery', id, ...ACT_ARGS)).exitCode).toBe(0);
  const isDue = `SELECT 1 FROM webhook_deliveries WHERE delivery_id = $1 AND next_attempt_at <= now() AND lane_key IS NOT NULL`;
  expect((await pool.query(isDue, [id])).rowCount).toBe(1);
  expect(await listAudit(db, id)).toEqual([
    { orgId: partner.orgId, action: 'delivery_retry', operator: 'ana', note: AUDIT_ARGS[3] },
  ]);
});

test('retry-delivery does not find a delivery of another environment', async ({
  api,
  partner,
  ops,
  createDeliveries,
}) => {
  const [id = ''] = await createDeliveries(1);
  await changeEnvironment(api, partner);
  await expectUnchanged(api.connection.pool, async () => {
    expect(await ops('retry-delivery', id, ...ACT_ARGS)).toMatchObject({ exitCode: 1, printed: [] });
  });
  await changeEnvironment(api, partner, 'local sandbox');
  expect((await ops('retry-delivery', id, ...ACT_ARGS)).exitCode).toBe(0);
});

test('retry-delivery says of a delivery whose subscription was deleted that it was', async ({
  api,
  partner,
  ops,
  webhookId,
  createDeliveries,
}) => {
  const [id = ''] = await createDeliveries(1);
  await api.call(partner, 'DELETE', `/v1/webhooks/${webhookId}`);
  expect(await ops('retry-delivery', id, ...ACT_ARGS)).toEqual({
    exitCode: 1,
    printed: [],
    warned: [`Refused, not_found: Its subscription ${webhookId} was deleted.`],
  });
});

test('stuck lists a late delivery, and none of a subscription that has an attempt under way', async ({
  api,
  ops,
  clock,
  createDeliveries,
}) => {
  const ids = (await createDeliveries(2)).toSorted();
  clock.advance(600_000);
  const saysLate = async () => {
    const { exitCode, printed } = await ops('stuck');
    expect(exitCode).toBe(0);
    const shown = await Promise.all(ids.map(async (id) => (await ops('show', id)).printed.join('\n')));
    return [ids.map((id) => printed.join('\n').includes(id)), shown.map((text) => text.includes('It is late'))];
  };
  const late = [true, true];
  const inTime = [false, false];
  expect(await saysLate()).toEqual([late, late]);
  const claim = 'UPDATE webhook_deliveries SET claimed_by = 1, claimed_at = $2 WHERE delivery_id = $1';
  await api.connection.pool.query(claim, [ids[0], new Date()]);
  expect(await saysLate()).toEqual([inTime, inTime]);
  await api.connection.pool.query(claim, [ids[0], new Date(Date.now() - 600_000)]);
  expect(await saysLate()).toEqual([
    [false, true],
    [false, true],
  ]);
});

test('retry-deliveries previews the exhausted deliveries of a subscription, and sends them again with --yes', async ({
  api,
  partner,
  ops,
  webhookId,
  createDeliveries,
}) => {
  const [pending = '', ...exhausted] = await createDeliveries(3);
  await endAs(api, 'exhausted', ...exhausted);
  const args = ['retry-deliveries', '--webhook', webhookId, ...AUDIT_ARGS];
  await expectUnchanged(api.connection.pool, async () => {
    expect(await ops(...args)).toMatchObject({
      exitCode: 3,
      printed: ['Preview: 2 deliveries will be attempted again.', expect.stringMatching(/^ {2}2 to webhook /)],
    });
  });
  expect(await ops(...args, '--yes')).toMatchObject({
    exitCode: 0,
    printed: ['2 deliveries will be attempted again.'],
  });
  const begun = `SELECT generation FROM webhook_deliveries WHERE status = 'pending' AND delivery_id = ANY ($1)`;
  expect((await api.connection.pool.query(begun, [exhausted])).rows).toEqual([{ generation: 2 }, { generation: 2 }]);
  for (const id of exhausted)
    expect(await listAudit(api.connection.db, id)).toMatchObject([{ action: 'delivery_retry', orgId: partner.orgId }]);
  expect(await listAudit(api.connection.db, pending)).toEqual([]);
  expect((await ops(...args, '--yes')).printed).toEqual(['0 deliveries will be attempted again.']);
});

test('retry-deliveries counts no deliveries of a deleted subscription, however many are older', async ({
  api,
  ops,
}) => {
  const caller = await api.createCaller();
  const exhaust = async (): Promise<string> => {
    const { webhook_id: webhookId } = await subscribe(api, caller, 'http://127.0.0.1:9999/');
    await endAs(api, 'exhausted', (await ping(api, caller, webhookId)).delivery_id);
    return webhookId;
  };
  await api.call(caller, 'DELETE', `/v1/webhooks/${await exhaust()}`);
  await exhaust();
  expect(await ops('retry-deliveries', '--org', caller.orgId, '--limit', '1', ...ACT_ARGS)).toEqual({
    exitCode: 0,
    printed: ['1 deliveries will be attempted again.'],
    warned: [],
  });
});

test('retry-deliveries finds no deliveries of another environment, and its preview counts none', async ({
  api,
  ops,
}) => {
  const owner = await api.createCaller();
  const { webhook_id: webhookId } = await subscribe(api, owner, 'http://127.0.0.1:9999/');
  for (let n = 0; n < 2; n += 1) await endAs(api, 'exhausted', (await ping(api, owner, webhookId)).delivery_id);
  const args = ['retry-deliveries', '--webhook', webhookId, '--limit', '1', ...AUDIT_ARGS];
  await changeEnvironment(api, owner);
  await expectUnchanged(api.connection.pool, async () => {
    const none = '0 deliveries will be attempted again.';
    expect((await ops(...args)).printed).toEqual([`Preview: ${none}`]);
    expect(await ops(...args, '--yes')).toEqual({ exitCode: 0, printed: [none], warned: [] });
  });
  await changeEnvironment(api, owner, 'local sandbox');
  expect((await ops(...args, '--yes')).printed[0]).toBe('1 deliveries will be attempted again.');
});

test('retry-deliveries says at its limit that more remain, and ends when it is run again', async ({
  api,
  ops,
  webhookId,
  createDeliveries,
}) => {
  const ids = await createDeliveries(3);
  await endAs(api, 'skipped', ...ids);
  const args = ['retry-deliveries', '--webhook', webhookId, '--status', 'skipped', '--limit', '2', ...AUDIT_ARGS];
  const more = 'More remain: run the command again. --limit takes up to 1000 at once.';
  expect((await ops(...args, '--older-than', '1h')).printed).toEqual([
    'Preview: 0 deliveries will be attempted again.',
  ]);
  const { printed } = await ops(...args);
  expect(printed).toEqual([
    'Preview: 2 deliveries will be attempted again.',
    expect.stringMatching(/^ {2}2 to webhook /),
    `Preview: ${more}`,
  ]);
  const [, oldest = '', newest = ''] = / of (\S+) to (\S+)$/.exec(printed[1] ?? '') ?? [];
  expect(Date.parse(oldest)).toBeLessThan(Date.parse(newest));
  const previewed = JSON.parse((await ops(...args, '--json')).printed.join('')).preview;
  expect(previewed).toEqual({ deliveries: ids.slice(0, 2), more: true });
  expect((await ops(...args, '--yes')).printed).toEqual(['2 deliveries will be attempted again.', more]);
  expect((await ops(...args, '--yes')).printed).toEqual(['1 deliveries will be attempted again.']);
});

test('retry-deliveries of two operators at once sends each delivery again once', async ({
  api,
  ops,
  webhookId,
  createDeliveries,
}) => {
  const ids = await createDeliveries(2);
  await endAs(api, 'exhausted', ...ids);
  const retry = () => ops('retry-deliveries', '--webhook', webhookId, ...ACT_ARGS);
  // Both have listed what is exhausted, and wait for the first delivery.
  const hold = (holder: pg.PoolClient) =>
    holder.query('SELECT 1 FROM webhooks WHERE webhook_id = $1 FOR UPDATE', [webhookId]);
  const results = await raceBehind(api.connection.pool, { hold }, [retry, retry]);
  const retried = results.map(({ printed }) => Number.parseInt(printed[0] ?? '', 10));
  expect((retried[0] ?? 0) + (retried[1] ?? 0)).toBe(2);
  const warned = results.flatMap((result) => result.warned);
  expect(new Set(warned)).toEqual(new Set(ids.map((id) => `${id} is left out: it is pending by now.`)));
  for (const id of ids) expect(await listAudit(api.connection.db, id)).toHaveLength(1);
});

test('retry-deliveries of everything is refused', async ({ ops }) => {
  expect(await ops('retry-deliveries', ...ACT_ARGS)).toMatchObject({
    exitCode: 2,
    warned: ['Give --webhook or --org.', expect.anything()],
  });
});
