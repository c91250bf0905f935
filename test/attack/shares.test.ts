/**
 * What a greedy tenant takes from another one (contract §2): ways that were tried, each small. Many redeliveries are in
 * test/api/webhook-replay.test.ts, many subscriptions in test/db/webhook-lane.test.ts. What a partner's service waits for
 * beside them is measured by `npm run bench -- shares`.
 */
import { describe, expect, vi } from 'vitest';
import { budgetsOf } from '../../domain/rate-limit.ts';
import type { Caller } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { createMissed } from '../support/replay.ts';

const QUOTA = 60;
/** More than there are connections, and fewer than may wait. */
const LOOP = 150;
/** A minute may end between two requests of a test: then the counts begin again. */
const MINUTE_ENDS = { retry: 1 };
/** About 11 kB. */
const METADATA = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`key-${n}`, 'x'.repeat(500)]));

const test = withApi().extend('limited', ({ newApi }) => newApi({ config: { rateLimitPerMinute: QUOTA } }));

const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

describe('a loop of enable, replay and disable', () => {
  test('writes no delivery in a request, and another tenant is answered in its turn', async ({ api }) => {
    const [missed, modest] = [await createMissed(api, 1_000), await api.createCaller()];
    const written = await digestTables(api.owner.pool);
    const answered: number[] = [];
    const loop = times(LOOP, async (index) => {
      const since = new Date(Date.now() - 3_600_000).toISOString();
      const { statusCode } = await (index % 3 === 1
        ? missed.replay({ since })
        : missed.call('PATCH', '', { status: index % 3 === 0 ? 'enabled' : 'disabled' }));
      answered.push(statusCode);
      return statusCode;
    });
    await vi.waitUntil(() => api.connection.waiting() > LOOP / 2, WAIT);
    const before = answered.length;
    await api.call(modest, 'GET', '/v1/recipients');
    const overtaken = answered.length - before;
    // Its own requests wait for each other's locks, and some of them too long.
    expect((await loop).filter((status) => ![200, 202, 409, 503].includes(status))).toEqual([]);
    expect((await digestTables(api.owner.pool))['webhook_deliveries']).toBe(written['webhook_deliveries']);
    // One for each of its own statements, and those that had a connection already.
    expect(overtaken).toBeLessThan(LOOP / 3);
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
