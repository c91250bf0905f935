/** `webhook disable` and `enable`: an operator stops an endpoint, and nobody else starts it again. */
import { expect } from 'vitest';
import { COUNTED_MAX } from '../../domain/page.ts';
import type { TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { changeEnvironment } from '../support/partner.ts';
import { expectRefused, expectUnchanged } from '../support/refusal.ts';
import { ping, readDelivery, subscribe } from '../support/webhook.ts';

const AUDIT_ARGS = ['--operator', 'ana', '--note', 'they called: it is overloaded'];
const SINCE = { since: '2026-01-01T00:00:00Z' };

/** `act` is an operator's command about the subscription, `call` a request of its owner to it or below it. */
const test = withApi().extend('subscription', async ({ api, partner, clock }) => {
  const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/?token=ours');
  const ops = createOps(api.connection.db, { now: clock.now });
  return {
    webhookId: webhookId as string,
    ping: () => ping(api, partner, webhookId),
    act: (name: 'disable' | 'enable', args = ['--yes'], id = webhookId) =>
      ops('webhook', name, id, ...AUDIT_ARGS, ...args),
    call: (method: Parameters<TestApi['call']>[1], below = '', body?: object) =>
      api.call(partner, method, `/v1/webhooks/${webhookId}${below}`, body),
  };
});

test('webhook disable skips what is pending at once, cancels a replay, and shows the partner who did it', async ({
  api,
  partner,
  subscription: { webhookId, ping, act, call },
}) => {
  const delivery = await ping();
  const replay = await call('POST', '/replay', SINCE);
  expect((await act('disable')).exitCode).toBe(0);
  expect(await readDelivery(api, partner, delivery)).toMatchObject({ status: 'skipped' });
  expect((await call('GET', `/replays/${replay.json().replay_id}`)).json()).toMatchObject({ status: 'canceled' });
  expect((await call('GET')).json()).toMatchObject({ status: 'disabled', disabled_reason: 'operator' });
  const shown = await createOps(api.connection.db)('show', webhookId);
  expect(shown.printed.join('\n')).toMatch(new RegExp(`webhook enable ${webhookId} .*\n.*"Brakes"$`));
  expect(await listAudit(api.connection.db, webhookId)).toEqual([
    { orgId: partner.orgId, action: 'webhook_disable', operator: 'ana', note: AUDIT_ARGS[3] },
  ]);
});

test('the owner of a webhook that an operator disabled cannot start it by enabling, a test, a redelivery or a replay', async ({
  api,
  subscription: { webhookId, ping, act, call },
}) => {
  const { delivery_id: deliveryId } = await ping();
  await act('disable');
  // Its workflow ends what waits for a retry.
  const { rows } = await api.connection.pool.query('SELECT signal FROM outbox WHERE object_id = $1', [webhookId]);
  expect(rows).toEqual([{ signal: 'retriesAdded' }]);
  for (const [method, below, body] of [
    ['PATCH', '', { status: 'enabled' }],
    ['POST', '/test', {}],
    ['POST', `/deliveries/${deliveryId}/redeliver`, undefined],
    ['POST', '/replay', SINCE],
  ] as const)
    await expectRefused(api, () => call(method, below, body), 409, { current_state: 'disabled_by_operator' });
  await expectRefused(api, () => call('POST', `/deliveries/${webhookId}/redeliver`), 404, { code: 'not_found' });
  const changed = await call('PATCH', '', { status: 'disabled', description: 'ours' });
  expect(changed.json()).toMatchObject({ description: 'ours', disabled_reason: 'operator' });
  expect((await call('DELETE')).statusCode).toBe(204);
});

test('webhook disable also stops a webhook that the partner itself has disabled', async ({
  subscription: { act, call },
}) => {
  await call('PATCH', '', { status: 'disabled' });
  const { exitCode, printed } = await act('disable');
  expect([exitCode, printed.at(-1)]).toEqual([
    0,
    'It was disabled before (requested). The way back enables it nevertheless: ask the partner first.',
  ]);
  expect((await call('GET')).json()).toMatchObject({ disabled_reason: 'operator' });
  expect((await act('enable')).exitCode).toBe(0);
  expect((await call('GET')).json()).toMatchObject({ status: 'enabled' });
});

test('webhook enable has events sent again, and says how to send what was skipped', async ({
  subscription: { webhookId, ping, act, call },
}) => {
  await act('disable');
  const { printed } = await act('enable');
  expect(printed[0]).toBe(`${webhookId} is enabled: new events are sent to http://127.0.0.1:9999/***.`);
  expect(printed.join('\n')).toContain(`retry-deliveries --webhook ${webhookId} --status skipped`);
  expect((await call('GET')).json()).toMatchObject({ status: 'enabled', disabled_reason: null });
  expect(await ping()).toMatchObject({ status: 'pending' });
});

test('what webhook disable has skipped is sent again at once, also before its rows are changed', async ({
  api,
  partner,
  subscription: { webhookId, ping, act },
}) => {
  const { delivery_id: deliveryId } = await ping();
  await act('disable');
  await act('enable');
  const ops = createOps(api.connection.db);
  const listed = async (status: string): Promise<string[]> => {
    const { printed } = await ops('list', 'deliveries', '--webhook', webhookId, '--status', status, '--json');
    return JSON.parse(printed.join('')).items.map(({ delivery }: { delivery: string }) => delivery);
  };
  expect([await listed('skipped'), await listed('pending')]).toEqual([[deliveryId], []]);
  const retry = ['retry-deliveries', '--webhook', webhookId, '--status', 'skipped', ...AUDIT_ARGS];
  expect((await ops(...retry, '--yes')).printed).toEqual(['1 deliveries will be attempted again.']);
  expect(await readDelivery(api, partner, { webhook_id: webhookId, delivery_id: deliveryId })).toMatchObject({
    status: 'pending',
  });
});

test('webhook disable and enable do not find a subscription of another environment', async ({
  api,
  partner,
  subscription: { act },
}) => {
  for (const name of ['disable', 'enable'] as const) {
    await changeEnvironment(api, partner);
    await expectUnchanged(api.connection.pool, async () => {
      expect(await act(name)).toMatchObject({ exitCode: 1, printed: [] });
    });
    await changeEnvironment(api, partner, 'local sandbox');
    expect((await act(name)).exitCode).toBe(0);
  }
});

test('the preview says how many deliveries it is about, and changes nothing', async ({
  api,
  subscription: { ping, act },
}) => {
  await ping();
  await expectUnchanged(api.connection.pool, async () => {
    const { exitCode, printed } = await act('disable', []);
    expect([exitCode, printed[0]]).toEqual([3, 'Preview: 1 deliveries are pending now.']);
    expect(printed[1]).toContain('no request to http://127.0.0.1:9999/*** begins any more.');
  });
  await act('disable');
  expect((await act('enable', [])).printed[0]).toBe('Preview: 1 deliveries are skipped now.');
});

test('webhook enable refuses what no operator has disabled, and webhook disable what one has', async ({
  api,
  subscription: { act, call },
}) => {
  const refused = (name: 'disable' | 'enable', id?: string) =>
    expectUnchanged(api.connection.pool, async () => {
      expect(await act(name, ['--yes'], id)).toMatchObject({ exitCode: 1, printed: [] });
    });
  await refused('enable');
  await call('PATCH', '', { status: 'disabled' });
  await refused('enable');
  await act('disable');
  await refused('disable');
  await refused('disable', 'no-such-webhook');
  await call('DELETE');
  await refused('enable');
});

test('the preview and show say that they count only the latest 10 000 deliveries, where a subscription has more', async ({
  api,
  subscription: { webhookId, ping, act },
}) => {
  const { delivery_id: deliveryId } = await ping();
  const copy = (count: number) =>
    api.connection.pool.query(
      `INSERT INTO webhook_deliveries SELECT (jsonb_populate_record(d, jsonb_build_object(
         'delivery_id', new_id_with(delivery_id), 'event_id', new_id_with(delivery_id)))).*
       FROM webhook_deliveries d, generate_series(1, $2) WHERE delivery_id = $1`,
      [deliveryId, count],
    );
  const shown = async () => {
    const { printed } = await createOps(api.connection.db)('show', webhookId, '--json');
    return [(await act('disable', [])).printed[0], JSON.parse(printed.join('')).counts];
  };
  await copy(COUNTED_MAX - 2);
  const few = COUNTED_MAX - 1;
  expect(await shown()).toEqual([
    `Preview: ${few} deliveries are pending now.`,
    [{ status: 'pending', deliveries: few }],
  ]);
  await copy(5);
  expect(await shown()).toEqual([
    `Preview: ${COUNTED_MAX} of the latest ${COUNTED_MAX} deliveries are pending now.`,
    [{ status: 'pending', deliveries: COUNTED_MAX, of_the_latest: COUNTED_MAX }],
  ]);
});
