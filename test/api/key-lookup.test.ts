/**
 * Requests that arrive together share a statement (`api/http/key-lookup.ts`). Each is counted as it would be alone, and
 * a key that was revoked before a request arrived is refused.
 */
import { expect } from 'vitest';
import { connect } from '../../db/client.ts';
import { ORGANIZATIONS_OF_ADDRESS } from '../../domain/rate-limit.ts';
import type { TestApi } from '../support/api.ts';
import { untilBlocked, whileLocked } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { MINUTE_ENDS, stretched } from '../support/patience.ts';
import { recordStatements } from '../support/statement-count.ts';

const TOGETHER = 20;

const test = withApi({ config: { rateLimitPerMinute: 15 } });
/** Also before a test is tried again: otherwise its addresses have used their budgets. */
test.beforeEach(async ({ api }) => void (await api.owner.pool.query('DELETE FROM rate_limits')));

/** All at once, from one address. */
const readAll = (api: TestApi, keys: readonly { readonly apiKey: string }[], remoteAddress: string) =>
  Promise.all(
    keys.map(({ apiKey }) =>
      api.app.inject({ method: 'GET', url: '/v1/recipients', remoteAddress, headers: { 'x-api-key': apiKey } }),
    ),
  );

const createCallers = (api: TestApi, count: number) =>
  Promise.all(Array.from({ length: count }, () => api.createCaller()));

const leftIn = (header: unknown): number => Number(/;r=(\d+);/.exec(String(header))?.[1]);

test(
  'requests that arrive together are counted one by one, and refused from the limit on',
  MINUTE_ENDS,
  async ({ api }) => {
    const caller = await api.createCaller();
    const answers = await Promise.all(
      Array.from({ length: TOGETHER }, () => api.call(caller, 'GET', '/v1/caribbean/settlements')),
    );
    const accepted = answers.filter(({ statusCode }) => statusCode === 200);
    expect(answers.filter(({ statusCode }) => statusCode === 429)).toHaveLength(TOGETHER - 15);
    expect(accepted.map(({ headers }) => leftIn(headers['ratelimit'])).sort((one, other) => other - one)).toEqual(
      Array.from({ length: 15 }, (_, index) => 14 - index),
    );
  },
);

test('requests that share a statement store the use of their key once', async ({ api }) => {
  const caller = await api.createCaller();
  const recorded = recordStatements(api.connection.pool);
  await Promise.all(Array.from({ length: 10 }, () => api.call(caller, 'GET', '/v1/caribbean/settlements')));
  // The first one is looked up alone, and the others together.
  const uses = recorded().filter((statement) => statement.startsWith('update "api_keys"'));
  expect(uses.length).toBeOneOf([1, 2]);
});

test(
  'requests with keys of many organizations that arrive together share a statement',
  MINUTE_ENDS,
  async ({ api }) => {
    const callers = await createCallers(api, TOGETHER);
    await readAll(api, callers, '203.0.113.78');
    const recorded = recordStatements(api.connection.pool);
    const answers = await readAll(api, callers, '203.0.113.78');
    expect(answers.map(({ headers }) => leftIn(headers['ratelimit']))).toEqual(callers.map(() => 13));
    // The first one is looked up alone, and the others together.
    expect(recorded().filter((statement) => statement.startsWith('api_key.caller')).length).toBeOneOf([1, 2]);
  },
);

test(
  '429 for exactly those beyond the budget of an address that many organizations share',
  MINUTE_ENDS,
  async ({ api }) => {
    const callers = await createCallers(api, ORGANIZATIONS_OF_ADDRESS + 2);
    const others = Array.from({ length: 14 }, () => callers).flat();
    const answers = [...(await readAll(api, callers, '203.0.113.77')), ...(await readAll(api, others, '203.0.113.77'))];
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(15 * ORGANIZATIONS_OF_ADDRESS);
    expect(answers.filter(({ statusCode }) => statusCode === 429)).toHaveLength(15 * 2);
  },
);

test('requests with one key from two addresses that arrive together are judged each by its own', async ({ api }) => {
  const { orgId } = await api.createCaller();
  const { apiKey } = await api.createKey(orgId, 'read', { allowedCidrs: ['203.0.113.0/24'] });
  const read = (remoteAddress: string) =>
    api.app.inject({ method: 'GET', url: '/v1/recipients', remoteAddress, headers: { 'x-api-key': apiKey } });
  const answers = await Promise.all(['203.0.113.1', '198.51.100.1', '203.0.113.1', '198.51.100.1'].map(read));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 401, 200, 401]);
});

test('401 for a key that was revoked while an earlier request with it was looked up', async ({ api }) => {
  const caller = await api.createCaller();
  const read = () => api.call(caller, 'GET', '/v1/caribbean/settlements');
  expect((await read()).statusCode).toBe(200);
  const lock = `SELECT FROM rate_limits WHERE caller = 'org:${caller.orgId}' FOR UPDATE`;
  const { earlier, later } = await whileLocked(api.owner.pool, lock, async () => {
    const first = read();
    await untilBlocked(api.owner.pool, 1);
    await api.owner.pool.query("UPDATE api_keys SET status = 'revoked', revoked_at = now() WHERE key_id = $1", [
      caller.keyId,
    ]);
    return { earlier: first, later: [read(), read()] };
  });
  expect((await earlier).statusCode).toBe(200);
  expect((await Promise.all(later)).map(({ statusCode }) => statusCode)).toEqual([401, 401]);
});

test('a key whose count is locked fails alone, and the keys that share its statement are found', async ({
  api,
  newApi,
  onTestFinished,
}) => {
  const tenants = { lockTimeoutMs: 2_000, turnTimeoutMs: stretched(30_000) };
  const connection = connect(api.databaseUrl, { poolSizeMax: 10, name: 'test', onIdleError: () => undefined, tenants });
  onTestFinished(connection.close);
  const impatient = await newApi({ deps: { db: connection.db } });
  const callers = await createCallers(api, 4);
  const readEach = async () =>
    (await Promise.all(callers.map((caller, n) => readAll(impatient, [caller], `198.51.100.${n}`)))).flat();
  await readEach();
  const lock = `SELECT FROM rate_limits WHERE caller = 'org:${callers[1]?.orgId}' FOR UPDATE`;
  const answers = await whileLocked(api.owner.pool, lock, readEach);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 503, 200, 200]);
});

test(
  'two keys of an organization that share a statement are counted one after the other',
  MINUTE_ENDS,
  async ({ api }) => {
    const { orgId } = await api.createCaller();
    const keys = [await api.createKey(orgId, 'read'), await api.createKey(orgId, 'read')];
    await readAll(api, keys, '203.0.113.80');
    const other = await createCallers(api, 1);
    // The first one is looked up alone, and the two share the next statement.
    const [, ...answers] = await readAll(api, [...other, ...keys], '203.0.113.80');
    expect(answers.map(({ headers }) => leftIn(headers['ratelimit']))).toEqual([12, 11]);
  },
);

test('every request that waits for a failing statement fails, and the next one is served', async ({ newApi }) => {
  const api = await newApi();
  const caller = await api.createCaller();
  await api.owner.pool.query('ALTER TABLE api_keys RENAME TO api_keys_away');
  const answers = await Promise.all([1, 2, 3].map(() => api.call(caller, 'GET', '/v1/caribbean/settlements')));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([500, 500, 500]);
  await api.owner.pool.query('ALTER TABLE api_keys_away RENAME TO api_keys');
  expect((await api.call(caller, 'GET', '/v1/caribbean/settlements')).statusCode).toBe(200);
});
