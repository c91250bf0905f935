/** `webhook disable` and `enable`: an operator stops an endpoint, and nobody else starts it again. */
import { expect } from 'vitest';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { expectRefused, expectUnchanged } from '../support/refusal.ts';
import { ping, readDelivery, subscribe } from '../support/webhook.ts';

const AUDIT_ARGS = ['--operator', 'ana', '--note', 'they called: it is overloaded'];

const test = withApi()
  .extend('act', FILE, ({ api, clock }) => {
    const ops = createOps(api.connection.db, { now: clock.now });
    return (name: 'disable' | 'enable', webhookId: string, ...rest: string[]) =>
      ops('webhook', name, webhookId, ...AUDIT_ARGS, ...rest);
  })
  .extend('subscription', async ({ api, partner }) => {
    const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/');
    return { webhookId: webhookId as string, path: `/v1/webhooks/${webhookId}` };
  });

test('webhook disable skips what is pending at once, cancels a replay, and shows the partner who did it', async ({
  api,
  partner,
  act,
  subscription: { webhookId, path },
}) => {
  const delivery = await ping(api, partner, webhookId);
  const replay = await api.call(partner, 'POST', `${path}/replay`, { since: '2026-01-01T00:00:00Z' });
  expect((await act('disable', webhookId, '--yes')).exitCode).toBe(0);
  expect(await readDelivery(api, partner, delivery)).toMatchObject({ status: 'skipped' });
  const replayPath = `${path}/replays/${replay.json().replay_id}`;
  expect((await api.call(partner, 'GET', replayPath)).json()).toMatchObject({ status: 'canceled' });
  const read = await api.call(partner, 'GET', path);
  expect(read.json()).toMatchObject({ status: 'disabled', disabled_reason: 'operator' });
  expect(await listAudit(api.connection.db, webhookId)).toEqual([
    { orgId: partner.orgId, action: 'webhook_disable', operator: 'ana', note: AUDIT_ARGS[3] },
  ]);
});

test('the owner of a webhook that an operator disabled cannot start it by enabling, a test, a redelivery or a replay', async ({
  api,
  partner,
  act,
  subscription: { webhookId, path },
}) => {
  const { delivery_id: deliveryId } = await ping(api, partner, webhookId);
  await act('disable', webhookId, '--yes');
  for (const [method, url, body] of [
    ['PATCH', path, { status: 'enabled' }],
    ['POST', `${path}/test`, {}],
    ['POST', `${path}/deliveries/${deliveryId}/redeliver`, undefined],
    ['POST', `${path}/replay`, { since: '2026-01-01T00:00:00Z' }],
  ] as const)
    await expectRefused(api, () => api.call(partner, method, url, body), 409, {
      current_state: 'disabled_by_operator',
    });
  const changed = await api.call(partner, 'PATCH', path, { status: 'disabled', description: 'ours' });
  expect(changed.json()).toMatchObject({ description: 'ours', disabled_reason: 'operator' });
  expect((await api.call(partner, 'DELETE', path)).statusCode).toBe(204);
});

test('webhook disable also stops a webhook that the partner itself has disabled', async ({
  api,
  partner,
  act,
  subscription: { webhookId, path },
}) => {
  await api.call(partner, 'PATCH', path, { status: 'disabled' });
  expect((await act('disable', webhookId, '--yes')).exitCode).toBe(0);
  expect((await api.call(partner, 'GET', path)).json()).toMatchObject({ disabled_reason: 'operator' });
});

test('webhook enable has events sent again, and says how to send what was skipped', async ({
  api,
  partner,
  act,
  subscription: { webhookId, path },
}) => {
  await act('disable', webhookId, '--yes');
  const { printed } = await act('enable', webhookId, '--yes');
  expect(printed.join('\n')).toContain(`retry-deliveries --webhook ${webhookId} --status skipped`);
  expect((await api.call(partner, 'GET', path)).json()).toMatchObject({ status: 'enabled', disabled_reason: null });
  expect(await ping(api, partner, webhookId)).toMatchObject({ status: 'pending' });
});

test('the preview says how many deliveries it is about, and changes nothing', async ({
  api,
  partner,
  act,
  subscription: { webhookId },
}) => {
  await ping(api, partner, webhookId);
  await expectUnchanged(api.connection.pool, async () => {
    const { exitCode, printed } = await act('disable', webhookId);
    expect([exitCode, printed[0]]).toEqual([3, 'Preview: 1 deliveries are pending now.']);
  });
});

test('webhook enable refuses what no operator has disabled, and webhook disable what one has', async ({
  api,
  partner,
  act,
  subscription: { webhookId, path },
}) => {
  const refused = async (name: 'disable' | 'enable', id = webhookId) => {
    await expectUnchanged(api.connection.pool, async () => {
      expect(await act(name, id, '--yes')).toMatchObject({ exitCode: 1, printed: [] });
    });
  };
  await refused('enable');
  await api.call(partner, 'PATCH', path, { status: 'disabled' });
  await refused('enable');
  await act('disable', webhookId, '--yes');
  await refused('disable');
  await refused('disable', 'no-such-webhook');
  await api.call(partner, 'DELETE', path);
  await refused('enable');
});
