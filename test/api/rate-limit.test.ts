/** Rate limits (contract §2): what a request costs its organization and its address, and what is refused beyond that. */
import { describe, expect, vi } from 'vitest';
import { countRequests, deleteRateLimits, release } from '../../db/queries/rate-limit.ts';
import { WAITING } from '../../db/tenant.ts';
import { budgetsOf, refusalDelayMs } from '../../domain/rate-limit.ts';
import type { Caller } from '../support/api.ts';
import { sendCardproc } from '../support/cardproc.ts';
import { callAs, createConsumerRecipient, signIn } from '../support/consumer.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf, signUpFrom } from '../support/partner.ts';
import { MINUTE_ENDS } from '../support/patience.ts';

const QUOTA = 20;
/** About 11 kB. */
const METADATA = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`key-${n}`, 'x'.repeat(500)]));

const test = withApi({ config: { rateLimitPerMinute: QUOTA } }).extend(
  'get',
  ({ api }) =>
    (caller: Caller, url: string, remoteAddress = '192.0.2.1') =>
      api.app.inject({ method: 'GET', url, remoteAddress, headers: { 'x-api-key': caller.apiKey } }),
);
/** Also before a test is tried again: otherwise its addresses have used their budgets. */
test.beforeEach(async ({ api }) => void (await api.owner.pool.query('DELETE FROM rate_limits')));
const leftIn = (header: unknown): number => Number(/;r=(\d+);/.exec(String(header))?.[1]);

describe('requests are counted', MINUTE_ENDS, () => {
  test('429 per organization with Retry-After and the IETF headers once the quota is used, before the body is read', async ({
    api,
  }) => {
    const [one, other] = [await api.createCaller(), await api.createCaller()];
    const statuses = [];
    for (let n = 0; n < QUOTA; n += 1) statuses.push((await api.call(one, 'POST', '/v1/recipients', '{')).statusCode);
    expect(new Set(statuses)).toEqual(new Set([422]));
    const refused = await api.call(one, 'POST', '/v1/recipients', '{');
    expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(refused.headers).toMatchObject({
      ratelimit: `"default";r=0;t=${refused.headers['retry-after']}`,
      'ratelimit-policy': `"default";q=${QUOTA};w=60`,
    });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect((await api.call(other, 'GET', '/v1/recipients')).statusCode).toBe(200);
  });

  test('windows follow the database, so that an API with another clock does not begin them again', async ({
    api,
    get,
    clock,
  }) => {
    const caller = await api.createCaller('read');
    const left = async () => leftIn((await get(caller, '/v2/payment-methods')).headers['ratelimit']);
    const first = await left();
    clock.advance(-90_000);
    expect(await left()).toBe(first - 1);
    clock.advance(180_000);
    expect(await left()).toBe(first - 2);
  });

  test('a window that began while the database’s clock was hours ahead ends once the clock is right again', async ({
    api,
    get,
  }) => {
    const caller = await api.createCaller('read');
    expect((await get(caller, '/v2/payment-methods')).statusCode).toBe(200);
    const { rowCount } = await api.connection.pool.query(
      `UPDATE rate_limits SET window_start = window_start + interval '5 hours', used = 1000 WHERE caller = $1`,
      [`org:${caller.orgId}`],
    );
    expect(rowCount).toBe(1);
    const { statusCode, headers } = await get(caller, '/v2/payment-methods');
    expect([statusCode, headers['ratelimit']]).toEqual([200, expect.stringMatching(/^"default";r=19;t=\d{1,2}$/)]);
  });

  test('429 for a consumer once its quota is used, and not for another consumer', async ({ api }) => {
    const [one, other] = [await signIn(api), await signIn(api)];
    const read = async (consumer = one) => (await callAs(api, consumer, 'GET', '/consumer/me')).statusCode;
    const statuses = [];
    for (let n = 0; n < QUOTA; n += 1) statuses.push(await read());
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect([await read(), await read(other)]).toEqual([429, 200]);
  });

  test('none is an event of a provider', async ({ api }) => {
    const statuses = [];
    for (let n = 0; n <= QUOTA; n += 1)
      statuses.push((await sendCardproc(api, { id: `evt_${n}`, type: 'unknown' })).statusCode);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  test('429 for the third sign-up from one address, and not for another address', async ({ api }) => {
    const statuses = [];
    for (const host of [1, 1, 1, 2]) statuses.push((await signUpFrom(api, `192.0.2.${host}`)).statusCode);
    expect(statuses).toEqual([201, 201, 429, 201]);
  });

  test('429 for unknown addresses and methods of one address beyond a budget of their own', async ({ newApi }) => {
    const origin = 'https://app.example.com';
    const api = await newApi({ config: { rateLimitPerMinute: QUOTA, consumerAllowedOrigins: [origin] } });
    const send = (method: 'GET' | 'PATCH' | 'OPTIONS', url: string, host = 5, headers = {}) =>
      api.app.inject({ method, url, remoteAddress: `192.0.2.${host}`, headers });
    const preflight = { origin, 'access-control-request-method': 'POST' };
    const statuses = [];
    for (let n = 0; n < QUOTA / 2; n += 1) {
      statuses.push((await send('GET', `/unknown-${n}`)).statusCode, (await send('PATCH', '/v2/settle')).statusCode);
      expect((await send('OPTIONS', '/consumer/transfers', 5, preflight)).statusCode).toBe(204);
    }
    expect(new Set(statuses)).toEqual(new Set([404, 405]));
    for (const refused of [await send('GET', '/unknown'), await send('PATCH', '/v2/settle')]) {
      expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
      expect(refused.headers['ratelimit-policy']).toBe(`"page";q=${QUOTA};w=60`);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    }
    expect((await send('OPTIONS', '/consumer/transfers', 5, preflight)).statusCode).toBe(204);
    expect((await send('GET', '/v2/capabilities')).statusCode).toBe(200);
    expect((await send('GET', '/unknown', 6)).statusCode).toBe(404);
  });
});

describe('a request costs', MINUTE_ENDS, () => {
  test('its organization and its address one unit more for each 64 KiB of its answer, which says so', async ({
    api,
    get,
  }) => {
    const caller = await api.createCaller();
    for (let n = 0; n < 13; n += 1) await createRecipient(api, caller, { metadata: METADATA });
    const before = leftIn((await get(caller, '/v2/payment-methods')).headers['ratelimit']);
    const big = await get(caller, '/v1/recipients?limit=100', '192.0.2.9');
    expect(big.statusCode).toBe(200);
    const weight = Math.floor(big.rawPayload.length / 65_536);
    expect(weight).toBe(2);
    expect(leftIn(big.headers['ratelimit'])).toBe(before - 1 - weight);
    const counted = "SELECT used FROM rate_limits WHERE caller = 'address:192.0.2.9'";
    expect((await api.connection.pool.query(counted)).rows).toEqual([{ used: 1 + weight }]);
    const small = await get(caller, '/v1/recipients?limit=1');
    expect(leftIn(small.headers['ratelimit'])).toBe(before - 1 - weight - 1);
  });

  test('a consumer one unit more for each 64 KiB too, and nothing of the budget of its address', async ({ newApi }) => {
    const perMinute = 1_000;
    const api = await newApi({ config: { rateLimitPerMinute: perMinute } });
    const consumer = await signIn(api);
    const name = 'x'.repeat(140);
    await Promise.all(Array.from({ length: 110 }, () => createConsumerRecipient(api, consumer, { name })));
    const before = leftIn((await callAs(api, consumer, 'GET', '/consumer/me')).headers['ratelimit']);
    const big = await callAs(api, consumer, 'GET', '/consumer/recipients');
    expect(Math.floor(big.rawPayload.length / 65_536)).toBe(1);
    expect(leftIn(big.headers['ratelimit'])).toBe(before - 2);
    const withoutKey = await api.call(null, 'GET', '/v2/capabilities');
    expect(leftIn(withoutKey.headers['ratelimit'])).toBe(perMinute - 1);
  });

  test('its address one unit more for each 64 KiB where no credential is needed, also of a page', async ({
    newApi,
  }) => {
    const api = await newApi({ config: { rateLimitPerMinute: 1_000 } });
    for (const [url, small] of [
      ['/openapi.json', '/v2/capabilities'],
      ['/docs/reference/settlement', '/llms.txt'],
    ] as const) {
      const left = async (path: string = small) => {
        const answer = await api.app.inject({ url: path, remoteAddress: '192.0.2.11' });
        expect([path, answer.statusCode]).toEqual([path, 200]);
        return { left: leftIn(answer.headers['ratelimit']), weight: Math.floor(answer.rawPayload.length / 65_536) };
      };
      const before = await left();
      const big = await left(url);
      expect(big.weight).toBeGreaterThan(0);
      expect(big.left).toBe(before.left - 1 - big.weight);
      expect((await left()).left).toBe(big.left - 1);
    }
  });

  test('the budget of its address too, which is three times that of an organization', async ({ api, get }) => {
    const { quota } = budgetsOf(QUOTA).address;
    const address = '192.0.2.7';
    for (let used = 0; used < quota; used += QUOTA) {
      const caller = await api.createCaller();
      for (let n = 0; n < QUOTA; n += 1)
        expect((await get(caller, '/v2/payment-methods', address)).statusCode).toBe(200);
    }
    const fresh = await api.createCaller();
    const refused = await get(fresh, '/v2/payment-methods', address);
    expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(refused.headers).toMatchObject({
      ratelimit: `"address";r=0;t=${refused.headers['retry-after']}`,
      'ratelimit-policy': `"address";q=${quota};w=60`,
    });
    expect((await get(fresh, '/v2/payment-methods', '192.0.2.8')).statusCode).toBe(200);
  });
});

test(
  'an operation that costs more than the whole quota is answered once in each window',
  MINUTE_ENDS,
  async ({ newApi }) => {
    const api = await newApi({ config: { rateLimitPerMinute: 1 } });
    const caller = await api.createCaller();
    const statusesOf = async (call: () => ReturnType<typeof api.call>) => [
      (await call()).statusCode,
      (await call()).statusCode,
    ];
    expect(await statusesOf(() => api.call(caller, 'GET', '/v1/usage?from=2026-11-01&to=2026-11-02'))).toEqual([
      200, 429,
    ]);
    const body = { name: 'Small', country: 'US', contact_email: 'a@small.example' };
    expect(await statusesOf(() => api.call(null, 'POST', '/v1/orgs', body))).toEqual([201, 429]);
  },
);

test('a caller that goes on after a hundred refusals is refused slowly', MINUTE_ENDS, async ({ api, get }) => {
  const caller = await api.createCaller();
  const times = async (count: number): Promise<number> => {
    const since = performance.now();
    const asked = Array.from({ length: count }, (_, n) => get(caller, '/v2/payment-methods', `192.0.2.${n}`));
    const answers = await Promise.all(asked);
    expect(answers.at(-1)?.statusCode).toBe(count > 1 ? 429 : 200);
    return performance.now() - since;
  };
  await times(1);
  await times(QUOTA + 100);
  expect(await times(2)).toBeGreaterThan(450);
});

test("503 with Retry-After for what one organization's burst has beyond the queue, and 200 for another's request", async ({
  newApi,
}) => {
  const api = await newApi();
  const [greedy, modest] = [await api.createCaller(), await api.createCaller()];
  const read = async (caller: Caller) => {
    const url = `/v1/recipients/${await createRecipient(api, caller)}`;
    return () => api.call(caller, 'GET', url);
  };
  const [readGreedily, readOnce] = [await read(greedy), await read(modest)];
  const burst = Array.from({ length: WAITING.waitingMaxOfTenant + 60 }, readGreedily);
  const single = await readOnce();
  const answers = await Promise.all(burst);
  expect(single.statusCode).toBe(200);
  const refused = answers.filter(({ statusCode }) => statusCode !== 200);
  expect(refused.length).toBeGreaterThan(0);
  for (const answer of refused) {
    expect(jsonOf(answer)).toMatchObject({ status: 503, code: 'temporarily_unavailable' });
    expect(answer.headers['retry-after']).toBe('2');
  }
});

test('counts are deleted ten minutes after their window began, and those of longer windows after a day', async ({
  api,
}) => {
  const { db, pool } = api.connection;
  const begun = { 'org:young': '9 minutes', 'org:old': '11 minutes', 'otp:young': '24 hours', 'otp:old': '26 hours' };
  const callers = Object.keys(begun);
  await pool.query(
    'INSERT INTO rate_limits SELECT caller, now() - ago, 1 FROM unnest($1::text[], $2::interval[]) AS c (caller, ago)',
    [callers, Object.values(begun)],
  );
  await deleteRateLimits(db);
  const { rows } = await pool.query('SELECT caller FROM rate_limits WHERE caller = ANY ($1) ORDER BY caller', [
    callers,
  ]);
  expect(rows.map(({ caller }) => caller)).toEqual(['org:young', 'otp:young']);
});

test('each process deletes old counts every ten minutes', async ({ newApi }) => {
  const timers = vi.spyOn(globalThis, 'setInterval');
  const { connection } = await newApi();
  const [clean] = timers.mock.calls.flatMap(([run, ms]) => (ms === 600_000 ? [run] : []));
  timers.mockRestore();
  const old = `INSERT INTO rate_limits SELECT 'org:old', now() - interval '11 minutes', 1`;
  await connection.pool.query(old);
  clean?.();
  await expect.poll(async () => (await connection.pool.query('SELECT FROM rate_limits')).rows).toEqual([]);
});

test('a count that begins again while old ones are deleted stays, and neither waits for the other', async ({ api }) => {
  const { db, pool } = api.connection;
  const [counted, deleted] = ['address:idle', 'org:idle'].map((caller) => ({ caller, windowSeconds: 60, cost: 1 }));
  if (!counted || !deleted) throw new Error('two callers');
  const old = `INSERT INTO rate_limits SELECT $1, now() - interval '11 minutes', 9`;
  for (const { caller } of [counted, deleted]) await pool.query(old, [caller]);
  await db.transaction(async (tx) => {
    expect(await countRequests(tx, [counted])).toMatchObject([{ used: 1 }]);
    await deleteRateLimits(db);
    expect(await countRequests(tx, [deleted])).toMatchObject([{ used: 1 }]);
  });
});

test('a request that is counted late does not begin the window before again', async ({ api }) => {
  const { db, pool } = api.connection;
  const late = { caller: 'org:late', windowSeconds: 60, cost: 1 };
  await countRequests(db, [late]);
  await pool.query(`UPDATE rate_limits SET window_start = window_start + interval '1 minute' WHERE caller = $1`, [
    late.caller,
  ]);
  const [counted] = await countRequests(db, [late]);
  expect(counted?.used).toBe(2);
  expect(counted?.resetSeconds).toBeGreaterThan(60);
});

test('what is given back after the window in which it was charged is no credit', async ({ api }) => {
  const { db } = api.connection;
  const [caller, windowSeconds] = ['org:back', 3_600];
  await countRequests(db, [{ caller, windowSeconds, cost: 1 }]);
  await db.transaction((tx) => release(tx, { caller, cost: 30 }));
  expect(await countRequests(db, [{ caller, windowSeconds, cost: 2 }])).toMatchObject([{ used: 2 }]);
});

test('the first hundred units over a quota are refused at once, and later ones after half a second', () => {
  const { default: budget } = budgetsOf(QUOTA);
  const delays = [0, 1, 100, 101].map((over) => refusalDelayMs(budget, { used: QUOTA + over, resetSeconds: 1 }));
  expect(delays).toEqual([0, 0, 0, 500]);
});
