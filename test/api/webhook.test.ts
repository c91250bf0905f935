/** Subscriptions over HTTP (contract §11): refusals first, then answers and stored rows. */
import { describe, expect } from 'vitest';
import { WebhookEvent } from '../../api/schemas/event.ts';
import { EVENT_TYPES } from '../../domain/event.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { dumpTables, raceBehind } from '../support/database.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { expectRefused, faultsOf } from '../support/refusal.ts';
import { endAs, ping } from '../support/webhook.ts';
import { words } from '../support/words.ts';

const names: Record<string, readonly string[]> = {
  'hooks.partner.example': ['93.184.216.34', '2606:4700::1111'],
  'private.partner.example': ['10.0.0.7'],
  'mixed.partner.example': ['93.184.216.34', '127.0.0.1'],
};

const resolveHost = async (name: string) => {
  if (name === 'slow.partner.example') return await new Promise<never>(() => undefined);
  const found = names[name];
  if (!found) throw new Error('unknown name');
  return found;
};

const test = withApi({ deps: { resolveHost } }).extend(
  'strict',
  FILE,
  openApi({ deps: { resolveHost }, config: { webhookAllowLocalTargets: false } }),
);

const body = (overrides: Record<string, unknown> = {}) => ({
  url: 'https://hooks.partner.example/in?token=s3cr3t',
  event_types: ['settlement.settled'],
  ...overrides,
});
const create = async (api: TestApi, owner: Caller, overrides: Record<string, unknown> = {}) => {
  const answer = await api.call(owner, 'POST', '/v1/webhooks', body(overrides));
  expect(answer.statusCode, answer.body).toBe(201);
  return jsonOf(answer);
};
const holding = (statement: string, id: string) => ({
  hold: (holder: { query(text: string, values: string[]): Promise<unknown> }) => holder.query(statement, [id]),
});
const earlierSecrets = async ({ connection }: TestApi, webhookId: string) =>
  (await connection.pool.query('SELECT FROM webhook_earlier_secrets WHERE webhook_id = $1', [webhookId])).rowCount;
const URL_FAULT = [['body.url', 'value_error']];

describe('a refused creation', () => {
  test.for([
    ['http', 'http://hooks.partner.example/'],
    ['a name with one public and one private address', 'https://mixed.partner.example/'],
  ] as const)('422 on url for %s outside the local sandbox, without repeating it', async ([_, url], { strict }) => {
    const owner = await strict.createCaller();
    const answer = await strict.call(owner, 'POST', '/v1/webhooks', body({ url }));
    expect(answer.statusCode).toBe(422);
    expect(faultsOf(answer)).toEqual(URL_FAULT);
    expect(answer.body).not.toContain('partner.example');
  });

  test('422 on url for a private address, even if local targets are allowed', async ({ api, partner }) => {
    const { webhook_id } = await create(api, partner);
    for (const url of ['https://10.0.0.7/', 'https://private.partner.example/'])
      for (const [method, below] of [
        ['POST', ''],
        ['PATCH', `/${webhook_id}`],
      ] as const)
        expect(faultsOf(await api.call(partner, method, `/v1/webhooks${below}`, body({ url })))).toEqual(URL_FAULT);
  });

  test('422 on url for a long one of emoji, each of which is two units of UTF-16', async ({ api, partner }) => {
    const { webhook_id } = await create(api, partner);
    const long = '\u{1f600}'.repeat(1_100);
    for (const url of [long, `https://hooks.partner.example:22/${long}`, `https://user@hooks.partner.example/${long}`])
      for (const [method, below] of [
        ['POST', ''],
        ['PATCH', `/${webhook_id}`],
      ] as const)
        expect(faultsOf(await api.call(partner, method, `/v1/webhooks${below}`, body({ url })))).toEqual(URL_FAULT);
    await create(api, partner, { url: `https://hooks.partner.example/${long}` });
  });

  test('429 for the twenty-first subscription, even if two are created at once', async ({ api }) => {
    const owner = await api.createCaller();
    for (let n = 1; n < 20; n += 1) await create(api, owner);
    const post = () => api.call(owner, 'POST', '/v1/webhooks', body());
    const answers = await raceBehind(
      api.connection.pool,
      holding('SELECT 1 FROM organizations WHERE org_id = $1 FOR NO KEY UPDATE', owner.orgId),
      [post, post],
    );
    expect(answers.map(({ statusCode }) => statusCode).sort((a, b) => a - b)).toEqual([201, 429]);
    expect(answers.find(({ statusCode }) => statusCode === 429)?.json()).toMatchObject({
      code: 'quota_exceeded',
      quota: 'webhooks',
    });
  });
});

describe('creation of a subscription', () => {
  test('201 with the secret; no read, list or table shows it again', async ({ api }) => {
    const owner = await api.createCaller();
    const created = await create(api, owner, { description: 'Ledger' });
    expect(created).toMatchObject({
      org_id: owner.orgId,
      status: 'enabled',
      disabled_reason: null,
      description: 'Ledger',
    });
    expect(created.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const read = await api.call(owner, 'GET', `/v1/webhooks/${created.webhook_id}`);
    const { secret, ...shown } = created;
    expect(read.json()).toEqual(shown);
    expect((await api.call(owner, 'GET', '/v1/webhooks')).json()).toEqual([shown]);
    const stored = await dumpTables(api.connection.pool);
    expect(stored).not.toContain(secret.slice(6));
    expect(stored).not.toContain(Buffer.from(secret.slice(6), 'base64').toString('hex'));
  });

  test('201 for a name that does not resolve, also when no server of names answers, and for an allowed loopback', async ({
    api,
    partner,
  }) => {
    await create(api, partner, { url: 'https://not-yet.partner.example/hook' });
    await create(api, partner, { url: 'https://slow.partner.example/hook' });
    const local = await create(api, partner, { url: 'http://localhost:9999/hook', event_types: ['*', '*'] });
    expect(local.event_types).toEqual(['*']);
  });
});

describe('change of a subscription', () => {
  test('200 with the given fields replaced, description removed by null, and who disabled it', async ({
    api,
    partner,
  }) => {
    const { webhook_id } = await create(api, partner, { description: 'Old' });
    const patch = (change: unknown) => api.call(partner, 'PATCH', `/v1/webhooks/${webhook_id}`, change).then(jsonOf);
    expect(await patch({ description: null, event_types: ['*'] })).toMatchObject({
      description: null,
      event_types: ['*'],
      status: 'enabled',
    });
    expect(await patch({ status: 'disabled' })).toMatchObject({ status: 'disabled', disabled_reason: 'requested' });
    expect(await patch({ status: 'enabled' })).toMatchObject({ status: 'enabled', disabled_reason: null });
  });
});

describe('deletion of a subscription', () => {
  test('204, then 404, its deliveries are canceled, and none of its secrets is left', async ({ api, partner }) => {
    const { webhook_id } = await create(api, partner);
    await ping(api, partner, webhook_id);
    await api.call(partner, 'POST', `/v1/webhooks/${webhook_id}/rotate-secret`);
    const gone = await api.call(partner, 'DELETE', `/v1/webhooks/${webhook_id}`);
    expect([gone.statusCode, gone.body]).toEqual([204, '']);
    for (const path of ['', '/deliveries'])
      expect((await api.call(partner, 'GET', `/v1/webhooks/${webhook_id}${path}`)).statusCode).toBe(404);
    expect((await api.call(partner, 'DELETE', `/v1/webhooks/${webhook_id}`)).statusCode).toBe(404);
    const { rows } = await api.connection.pool.query(
      `SELECT w.secret_sealed, d.endings < w.endings AS ended, o.signal FROM webhook_deliveries d
       JOIN webhooks w USING (webhook_id) JOIN outbox o ON o.object_id = webhook_id WHERE webhook_id = $1`,
      [webhook_id],
    );
    // The subscription's workflow changes the delivery's row.
    expect(rows).toEqual([{ secret_sealed: null, ended: true, signal: 'retriesAdded' }]);
    expect(await earlierSecrets(api, webhook_id)).toBe(0);
  });
});

describe("rotation of a subscription's secret", () => {
  test('409 while five earlier secrets sign, and nothing is written', async ({ api, partner }) => {
    const { webhook_id } = await create(api, partner);
    const rotate = () => api.call(partner, 'POST', `/v1/webhooks/${webhook_id}/rotate-secret`);
    for (let n = 0; n < 5; n += 1) expect((await rotate()).statusCode).toBe(200);
    await expectRefused(api, rotate, 409, { code: 'state_conflict', current_state: 'secret_limit_reached' });
    await api.connection.pool.query(
      `UPDATE webhook_earlier_secrets SET expires_at = now() - interval '1 minute' WHERE secret_id =
        (SELECT min(secret_id) FROM webhook_earlier_secrets WHERE webhook_id = $1)`,
      [webhook_id],
    );
    expect((await rotate()).statusCode).toBe(200);
    await expectRefused(api, rotate, 409, { code: 'state_conflict' });
  });

  test('200 with a new secret, and until when the earlier one signs', async ({ api, partner }) => {
    const { webhook_id, secret } = await create(api, partner);
    const rotate = () => api.call(partner, 'POST', `/v1/webhooks/${webhook_id}/rotate-secret`).then(jsonOf);
    const first = await rotate();
    const second = await rotate();
    expect(new Set([secret, first.secret, second.secret]).size).toBe(3);
    expect(Date.parse(second.previous_secret_expires_at) - Date.parse(second.updated_at)).toBe(24 * 3_600_000);
    expect(await earlierSecrets(api, webhook_id)).toBe(2);
    const stored = await dumpTables(api.connection.pool);
    for (const shown of [secret, first.secret, second.secret]) expect(stored).not.toContain(shown.slice(6));
  });
});

describe('deliveries of a subscription', () => {
  test('202 for a test event with its pending delivery, without the URL', async ({ api }) => {
    const owner = await api.createCaller();
    const { webhook_id } = await create(api, owner);
    await create(api, owner, { event_types: ['*'] });
    const nudges = api.nudges();
    const delivery = await ping(api, owner, webhook_id);
    expect(api.nudges()).toBe(nudges + 1);
    expect(Object.keys(delivery)).toEqual(
      words('delivery_id webhook_id event_id event_type status attempt_count attempts next_attempt_at created_at'),
    );
    expect(delivery).toMatchObject({
      webhook_id,
      event_type: 'webhook.ping',
      status: 'pending',
      attempt_count: 0,
      attempts: [],
    });
    const list = await api.call(owner, 'GET', `/v1/webhooks/${webhook_id}/deliveries?limit=1`);
    expect(list.headers['x-total-count']).toBe('1');
    expect(list.json()).toEqual([delivery]);
    expect(list.body).not.toContain('s3cr3t');
    const { rows } = await api.connection.pool.query(
      'SELECT count(*)::int AS count FROM webhook_deliveries WHERE org_id = $1',
      [owner.orgId],
    );
    expect(rows).toEqual([{ count: 1 }]);
  });

  test('202 for an example of each type: sent to this subscription alone, in the form of its type, as a test', async ({
    api,
  }) => {
    const owner = await api.createCaller();
    const { webhook_id } = await create(api, owner, { event_types: ['webhook.ping'] });
    await create(api, owner, { event_types: ['*'] });
    for (const [index, type] of EVENT_TYPES.entries()) {
      const answer = await api.call(owner, 'POST', `/v1/webhooks/${webhook_id}/test`, { event_type: type });
      expect([answer.statusCode, jsonOf(answer)]).toMatchObject([
        202,
        { webhook_id, event_type: type, status: 'pending' },
      ]);
      const event = jsonOf(await api.call(owner, 'GET', `/v1/events/${jsonOf(answer).event_id}`));
      expect(WebhookEvent.parse(event)).toEqual(event);
      expect(event).toMatchObject({ type, test: true, sequence: index + 1 });
      if (type !== 'certificate.issued' && !type.startsWith('settlement.')) expect(event.data.org_id).toBe(owner.orgId);
      const status = type.split('.')[1];
      if (SETTLEMENT_STATUSES.some((known) => type === `settlement.${known}`)) {
        expect(event.data.status).toBe(status);
        expect(event.data.failure !== null).toBe(['rejected', 'expired', 'failed'].includes(event.data.status));
        expect(event.data.certificate_id !== null).toBe(status === 'settled');
      }
    }
    const { rows } = await api.connection.pool.query(
      `SELECT DISTINCT d.webhook_id, e.object_type, e.object_id FROM webhook_deliveries d JOIN events e USING (event_id)
      WHERE e.org_id = $1`,
      [owner.orgId],
    );
    expect(rows).toEqual([{ webhook_id, object_type: 'webhook', object_id: webhook_id }]);
  });

  test('200 in pages, filtered by status, newest first', async ({ api }) => {
    const owner = await api.createCaller();
    const { webhook_id } = await create(api, owner);
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) ids.unshift((await ping(api, owner, webhook_id)).delivery_id);
    const page = await api.call(owner, 'GET', `/v1/webhooks/${webhook_id}/deliveries?status=pending&limit=2`);
    expect(page.json().map((delivery: { delivery_id: string }) => delivery.delivery_id)).toEqual(ids.slice(0, 2));
    expect(page.headers['link']).toContain('status=pending');
    expect(page.headers['link']).toContain('rel="next"');
    expect((await api.call(owner, 'GET', `/v1/webhooks/${webhook_id}/deliveries?status=exhausted`)).json()).toEqual([]);
  });

  test('200 with the last ten attempts of a delivery, and the number of all of them', async ({ api, partner }) => {
    const { webhook_id } = await create(api, partner);
    const { delivery_id } = await ping(api, partner, webhook_id);
    await api.connection.pool.query(
      `WITH delivery AS (UPDATE webhook_deliveries SET attempt_count = 2000 WHERE delivery_id = $1)
       INSERT INTO webhook_attempts (delivery_id, number, at, outcome, response_status, duration_ms)
       SELECT $1, n, now(), 'failed', 500, 1 FROM generate_series(1, 2000) n`,
      [delivery_id],
    );
    const [delivery] = jsonOf(await api.call(partner, 'GET', `/v1/webhooks/${webhook_id}/deliveries?limit=1`));
    const numbers = delivery.attempts.map(({ number }: { number: number }) => number);
    expect([delivery.attempt_count, numbers]).toEqual([2_000, Array.from({ length: 10 }, (_, n) => 1_991 + n)]);
  });

  test('404 for a delivery and a replay of another subscription', async ({ api, partner }) => {
    const [one, two] = [await create(api, partner), await create(api, partner)];
    const { delivery_id } = await ping(api, partner, one.webhook_id);
    const since = { since: '2026-01-01T00:00:00Z' };
    const { replay_id } = jsonOf(await api.call(partner, 'POST', `/v1/webhooks/${one.webhook_id}/replay`, since));
    for (const [method, below] of [
      ['POST', `deliveries/${delivery_id}/redeliver`],
      ['GET', `replays/${replay_id}`],
    ] as const)
      expect((await api.call(partner, method, `/v1/webhooks/${two.webhook_id}/${below}`)).statusCode).toBe(404);
  });

  test('202 to repeat a delivery: a pending one is due at once, a finished one starts again, once', async ({
    api,
    partner,
  }) => {
    const { webhook_id } = await create(api, partner);
    const { delivery_id } = await ping(api, partner, webhook_id);
    const redeliver = () => api.call(partner, 'POST', `/v1/webhooks/${webhook_id}/deliveries/${delivery_id}/redeliver`);
    const row = async () => {
      const { rows } = await api.connection.pool.query(
        `SELECT generation, prior_attempts, next_attempt_at <= now() AND lane_key IS NOT NULL AS due
         FROM webhook_deliveries WHERE delivery_id = $1`,
        [delivery_id],
      );
      return rows[0];
    };
    await api.connection.pool.query(
      `UPDATE webhook_deliveries SET lane_key = NULL, next_attempt_at = now() + interval '1 hour' WHERE delivery_id = $1`,
      [delivery_id],
    );
    expect(await redeliver().then(jsonOf)).toMatchObject({ delivery_id, status: 'pending' });
    expect(await row()).toEqual({ generation: 1, prior_attempts: 0, due: true });
    await endAs(api, 'exhausted', delivery_id);
    await api.connection.pool.query('UPDATE webhook_deliveries SET attempt_count = 8 WHERE delivery_id = $1', [
      delivery_id,
    ]);
    const answers = await raceBehind(
      api.connection.pool,
      holding('SELECT 1 FROM webhooks WHERE webhook_id = $1 FOR UPDATE', webhook_id),
      [redeliver, redeliver],
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([202, 202]);
    // Otherwise its next attempt would be its last one.
    expect(await row()).toEqual({ generation: 2, prior_attempts: 8, due: true });
  });
});
