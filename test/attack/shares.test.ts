/**
 * What a greedy tenant takes from another one (contract §2): five ways that were tried, each small. What a partner's
 * service waits for beside them is measured by `npm run bench -- shares`.
 */
import { describe, expect, vi } from 'vitest';
import { LOW_PRIORITY } from '../../api/plugins/turn.ts';
import { openClaimant } from '../../db/queries/webhook-attempt.ts';
import { exchangeDeliveries } from '../../db/queries/webhook-lane.ts';
import { budgetsOf } from '../../domain/rate-limit.ts';
import { LANE_KEYS, REDELIVERIES_MAX, SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf } from '../support/partner.ts';
import { MINUTE_ENDS, WAIT } from '../support/patience.ts';
import { ping, subscribe } from '../support/webhook.ts';

const URL = 'http://127.0.0.1:9999/hook';
const QUOTA = 60;
/** More than there are connections, and fewer than may wait. */
const LOOP = 150;
/** About 11 kB. */
const METADATA = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`key-${n}`, 'x'.repeat(500)]));

const deps = { lowPriority: LOW_PRIORITY };
const test = withApi({ deps }).extend('limited', ({ newApi }) =>
  newApi({ deps, config: { rateLimitPerMinute: QUOTA } }),
);

const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

/** Deliveries that were skipped, as copies of one. */
async function fillSkipped(api: TestApi, { webhook_id }: { readonly webhook_id: string }, count: number) {
  await api.owner.pool.query(
    `WITH copy AS (
       INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
       SELECT new_id_with(event_id), org_id, type, object_type, object_id, 1000 + n, body, created_at
         FROM events, generate_series(1, $2::int) n
        WHERE event_id = (SELECT event_id FROM webhook_deliveries WHERE webhook_id = $1 LIMIT 1)
       RETURNING event_id
     )
     INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
       prior_attempts, endings, request_id, created_at)
     SELECT new_id_with(copy.event_id), org_id, webhook_id, copy.event_id, event_type, 'skipped', 1, 0, endings,
            request_id, created_at
       FROM copy, (SELECT * FROM webhook_deliveries WHERE webhook_id = $1 LIMIT 1) AS model`,
    [webhook_id, count],
  );
}

describe('a loop of enable, replay and disable', () => {
  test('writes no delivery in a request, and another tenant is answered in its turn', async ({ api }) => {
    const [greedy, modest] = [await api.createCaller(), await api.createCaller()];
    const webhook = await subscribe(api, greedy, URL);
    await ping(api, greedy, webhook.webhook_id);
    await fillSkipped(api, webhook, 1_000);
    const url = `/v1/webhooks/${webhook.webhook_id}`;
    const written = await digestTables(api.owner.pool);
    const answered: number[] = [];
    const loop = times(LOOP, async (index) => {
      const since = new Date(Date.now() - 3_600_000).toISOString();
      const answer = await (index % 3 === 1
        ? api.call(greedy, 'POST', `${url}/replay`, { since })
        : api.call(greedy, 'PATCH', url, { status: index % 3 === 0 ? 'enabled' : 'disabled' }));
      answered.push(answer.statusCode);
      return answer.statusCode;
    });
    await vi.waitUntil(() => api.app.lowPriority.waiting() > LOOP / 2, WAIT);
    const before = answered.length;
    expect((await api.call(modest, 'GET', '/v1/recipients')).statusCode).toBe(200);
    const overtaken = answered.length - before;
    // On a busy machine, some of its own requests may wait too long for their turn.
    expect((await loop).filter((status) => ![200, 202, 409, 503].includes(status))).toEqual([]);
    expect((await digestTables(api.owner.pool))['webhook_deliveries']).toBe(written['webhook_deliveries']);
    // Those that were being handled already, and one for each seat.
    expect(overtaken).toBeLessThan(LOOP / 10);
  });
});

describe('big answers', MINUTE_ENDS, () => {
  test('cost what they weigh: the bytes of a minute are bounded, and another tenant is answered', async ({
    limited: api,
  }) => {
    const [greedy, modest] = [await api.createCaller(), await api.createCaller()];
    await times(40, () => createRecipient(api, greedy, { metadata: METADATA }));
    let bytes = 0;
    let page = 0;
    for (let n = 0; n < QUOTA; n += 1) {
      const answer = await api.call(greedy, 'GET', '/v1/recipients?limit=100');
      if (answer.statusCode !== 200) break;
      page = answer.rawPayload.length;
      bytes += page;
    }
    expect(page).toBeGreaterThan(400_000);
    expect(bytes).toBeLessThanOrEqual(QUOTA * 64 * 1024 + page);
    expect((await api.call(greedy, 'GET', '/v2/launch-gates')).statusCode).toBe(429);
    expect((await api.call(modest, 'GET', '/v2/launch-gates')).statusCode).toBe(200);
  });
});

describe('redelivered attempts', () => {
  test('are at most five generations of a delivery a day, and a list shows few of them', async ({ api }) => {
    const greedy = await api.createCaller();
    const { webhook_id, delivery_id } = await ping(api, greedy, (await subscribe(api, greedy, URL)).webhook_id);
    const statuses = [];
    for (let n = 0; n < REDELIVERIES_MAX + 3; n += 1) {
      await api.owner.pool.query(
        `UPDATE webhook_deliveries SET status = 'succeeded', next_attempt_at = NULL, lane_key = NULL WHERE delivery_id = $1`,
        [delivery_id],
      );
      const url = `/v1/webhooks/${webhook_id}/deliveries/${delivery_id}/redeliver`;
      statuses.push((await api.call(greedy, 'POST', url)).statusCode);
    }
    expect(statuses.filter((status) => status === 202)).toHaveLength(REDELIVERIES_MAX);
    expect(statuses.filter((status) => status === 429)).toHaveLength(3);
    await api.owner.pool.query(
      `INSERT INTO webhook_attempts (delivery_id, number, at, outcome, response_status, duration_ms)
       SELECT $1, n, now(), 'failed', 500, 1 FROM generate_series(1, 2000) n`,
      [delivery_id],
    );
    const list = await api.call(greedy, 'GET', `/v1/webhooks/${webhook_id}/deliveries?limit=1`);
    expect(list.statusCode).toBe(200);
    expect(list.rawPayload.length).toBeLessThan(64 * 1024);
  });
});

describe('many subscriptions of many organizations', () => {
  test("have one delivery each before another tenant's, however many are older", async ({ api }) => {
    const ORGANIZATIONS = 4;
    const greedy = await times(ORGANIZATIONS, () => api.createCaller());
    for (const caller of greedy) {
      for (let n = 0; n < SUBSCRIPTIONS_MAX; n += 1) {
        const { webhook_id } = await subscribe(api, caller, `${URL}/${n}`);
        await ping(api, caller, webhook_id);
      }
    }
    const modest = await api.createCaller();
    await ping(api, modest, (await subscribe(api, modest, URL)).webhook_id);
    const { claimed } = await exchangeDeliveries(api.connection.db, [], {
      claimant: await openClaimant(api.connection.db),
      takesOver: false,
      known: new Map(),
      keys: { from: 0, to: LANE_KEYS },
      after: undefined,
      limit: 2 * (ORGANIZATIONS + 3),
      firstMax: 4,
      free: new Map(),
    });
    expect(claimed.map(({ orgId }) => orgId)).toContain(modest.orgId);
  });
});

describe('sign-ups from one address', MINUTE_ENDS, () => {
  test('multiply no budget: their requests together have three', async ({ limited: api }) => {
    const remoteAddress = '198.51.100.9';
    const callers: Caller[] = await times(6, () => api.createCaller());
    const ask = ({ apiKey }: Caller) =>
      api.app.inject({ url: '/v2/launch-gates', remoteAddress, headers: { 'x-api-key': apiKey } });
    const answers = (await Promise.all(callers.map((caller) => times(QUOTA, () => ask(caller))))).flat();
    const accepted = answers.filter(({ statusCode }) => statusCode === 200);
    expect(accepted).toHaveLength(budgetsOf(QUOTA).address.quota);
    const refused = answers.find(({ statusCode }) => statusCode !== 200);
    expect(jsonOf(refused ?? expect.unreachable())).toMatchObject({ status: 429, code: 'rate_limited' });
  });
});
