/** Reads that wait (contract §6): woken by the change itself, and limited so that no organization uses all of them. */
import { fastify } from 'fastify';
import { expect, vi } from 'vitest';
import { createWaitingRead, WAITERS } from '../../api/http/prefer-wait.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { WAIT as PATIENCE, stretched } from '../support/patience.ts';
import { BY_WIRE } from '../support/settlement.ts';

const WAIT = { prefer: 'wait=20' };
const setTimeoutNow = setTimeout;

const test = withApi();

test('a waiting read is answered by the change, and does not ask the database meanwhile', async ({
  api,
  partner,
  steps,
  onTestFinished,
}) => {
  const id = await steps.accept(BY_WIRE);
  // The first wait of a process opens its connection for notifications.
  await api.call(partner, 'GET', `/v2/settle/${id}`, undefined, { prefer: 'wait=1' });
  const query = vi.spyOn(api.connection.pool, 'query');
  const looks = vi.fn();
  // The read would look by itself after these two seconds, which are never over.
  const timers = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation(((run: () => void, ms?: number) =>
      ms === 2_000 ? looks() : setTimeoutNow(run, ms)) as typeof setTimeout);
  onTestFinished(() => timers.mockRestore());
  const waiting = api.call(partner, 'GET', `/v2/settle/${id}`, undefined, WAIT);
  await vi.waitUntil(() => looks.mock.calls.length === 1, PATIENCE);
  const asked = query.mock.calls.length;
  query.mockRestore();
  await steps.activities.admitSettlement(steps.step(id));
  const answer = await waiting;
  expect(answer.headers['preference-applied']).toBe('wait=20');
  expect(jsonOf(answer).status).toBe('awaiting_funds');
  // The key, the settlement, and one look of the waiting read.
  expect(asked).toBeLessThanOrEqual(5);
});

test('a read is answered although the notification is lost', async ({ api, partner, steps }) => {
  const id = await steps.accept(BY_WIRE);
  const subscribe = vi.spyOn(api.deps.changes, 'subscribe');
  const startedAt = performance.now();
  const waiting = api.call(partner, 'GET', `/v2/settle/${id}`, undefined, WAIT);
  await vi.waitUntil(() => subscribe.mock.calls.length === 1, PATIENCE);
  subscribe.mockRestore();
  await api.owner.pool.query('ALTER TABLE settlements DISABLE TRIGGER settlements_changed');
  await steps.activities.admitSettlement(steps.step(id));
  await api.owner.pool.query('ALTER TABLE settlements ENABLE TRIGGER settlements_changed');
  expect(jsonOf(await waiting).status).toBe('awaiting_funds');
  // Long before the wait is over.
  expect(performance.now() - startedAt).toBeLessThan(stretched(10_000));
});

test('one organization cannot use the waiting reads of all, and beyond its own no Preference-Applied is sent', async ({
  api,
  partner,
  steps,
}) => {
  const id = await steps.accept(BY_WIRE);
  const { etag } = (await api.call(partner, 'GET', `/v2/settle/${id}`)).headers;
  // A read that begins after the change is answered at once too.
  const headers = { ...WAIT, 'if-none-match': String(etag) };
  const read = () => api.call(partner, 'GET', `/v2/settle/${id}`, undefined, headers);
  const startedAt = performance.now();
  // One more than have room. Whichever comes last is answered at once.
  const reads = Array.from({ length: WAITERS.perOrganization + 1 }, read);
  const beyond = await Promise.race(reads);
  expect(performance.now() - startedAt).toBeLessThan(stretched(5_000));
  expect([beyond.statusCode, beyond.headers['preference-applied']]).toEqual([304, undefined]);
  expect(WAITERS.perOrganization).toBeLessThan(WAITERS.max);
  const other = await api.createCaller('read');
  const missing = await api.call(other, 'GET', `/v2/settle/${id}`, undefined, { prefer: 'wait=1' });
  expect(missing.statusCode).toBe(404);
  await steps.activities.admitSettlement(steps.step(id));
  const waited = (await Promise.all(reads)).filter((answer) => answer !== beyond);
  expect(waited.map(({ headers }) => headers['preference-applied'])).toEqual(
    Array.from({ length: WAITERS.perOrganization }, () => 'wait=20'),
  );
  expect(new Set(waited.map((answer) => jsonOf(answer).status))).toEqual(new Set(['awaiting_funds']));
  // The room is free again.
  const again = await api.call(partner, 'GET', `/v2/settle/${id}`, undefined, { prefer: 'wait=0' });
  expect(again.headers['preference-applied']).toBe('wait=0');
});

test('a process has a limit of waiting reads in all and for each address, and gives each place back', async ({
  onTestFinished,
}) => {
  const subscribed = new Set<() => void>();
  const subscribe = (_id: string, wake: () => void) => {
    subscribed.add(wake);
    return () => void subscribed.delete(wake);
  };
  const app = fastify();
  onTestFinished(() => app.close());
  const readWaiting = createWaitingRead(app, { subscribe });
  let version = 1;
  /** The change for which all reads wait. */
  const change = (): void => {
    version += 1;
    for (const wake of subscribed) wake();
  };
  app.get<{ Params: { address: string; org: string } }>('/:address/:org', (request, reply) => {
    const { address: limitKey, org: orgId } = request.params;
    request.clientAddress = { limitKey, exact: null, logged: '', doubt: undefined };
    const read = async () => ({ settlementId: 'stl_1', version, status: 'accepted' }) as const;
    return readWaiting(request, reply, { orgId, settlementId: 'stl_1', read, show: (shown) => shown });
  });
  const isHeld = async (address: string, org: string, seconds = 0) => {
    const answer = await app.inject({ url: `/${address}/${org}`, headers: { prefer: `wait=${seconds}` } });
    return answer.headers['preference-applied'] !== undefined;
  };
  /** As many as an address has place for, by as many organizations as that takes. */
  const fill = (address: string) =>
    Array.from({ length: WAITERS.perAddress }, (_, n) => isHeld(address, `${address}.${n % ORGANIZATIONS}`, 30));
  const ORGANIZATIONS = WAITERS.perAddress / WAITERS.perOrganization;

  const addresses = Array.from({ length: WAITERS.max / WAITERS.perAddress }, (_, n) => `${n}`);
  const all = addresses.flatMap(fill);
  await vi.waitUntil(() => subscribed.size === WAITERS.max, PATIENCE);
  expect(await isHeld('other', 'other')).toBe(false);
  change();
  expect(new Set(await Promise.all(all))).toEqual(new Set([true]));
  expect(subscribed.size).toBe(0);

  const ofAddress = fill('0');
  await vi.waitUntil(() => subscribed.size === WAITERS.perAddress, PATIENCE);
  for (let n = 0; n <= WAITERS.perOrganization; n += 1) expect(await isHeld('0', 'other')).toBe(false);
  expect(await isHeld('1', 'other')).toBe(true);
  change();
  expect(new Set(await Promise.all(ofAddress))).toEqual(new Set([true]));
});

test('a caller that goes gives its place back', async ({ api, partner, steps, port, onTestFinished }) => {
  const path = `/v2/settle/${await steps.accept(BY_WIRE)}`;
  const isHeld = async () => {
    const answer = await api.call(partner, 'GET', path, undefined, { prefer: 'wait=0' });
    return answer.headers['preference-applied'] !== undefined;
  };
  const caller = new AbortController();
  const headers = { 'x-api-key': partner.apiKey, prefer: 'wait=30' };
  const held = vi.spyOn(api.deps.changes, 'subscribe');
  onTestFinished(() => held.mockRestore());
  const reads = Array.from({ length: WAITERS.perOrganization }, () =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers, signal: caller.signal }),
  );
  await vi.waitUntil(() => held.mock.calls.length === reads.length, PATIENCE);
  expect(await isHeld()).toBe(false);
  const since = performance.now();
  caller.abort();
  await Promise.allSettled(reads);
  await vi.waitUntil(isHeld, PATIENCE);
  expect(performance.now() - since).toBeLessThan(stretched(10_000));
});

test('a change between two reads is answered at once to a caller that names what it has seen', async ({
  api,
  partner,
  steps,
}) => {
  const id = await steps.accept(BY_WIRE);
  const path = `/v2/settle/${id}`;
  const first = await api.call(partner, 'GET', path);
  await steps.activities.admitSettlement(steps.step(id));
  const startedAt = performance.now();
  const seen = { 'if-none-match': String(first.headers['etag']) };
  const next = await api.call(partner, 'GET', path, undefined, { ...WAIT, ...seen });
  expect(performance.now() - startedAt).toBeLessThan(stretched(5_000));
  expect([next.statusCode, jsonOf(next).status]).toEqual([200, 'awaiting_funds']);
  expect(next.headers['etag']).not.toBe(first.headers['etag']);
});

test('a waiting read is 304 when the answer is still the one that the caller has seen', async ({
  api,
  partner,
  steps,
}) => {
  const path = `/v2/settle/${await steps.accept(BY_WIRE)}`;
  const { etag } = (await api.call(partner, 'GET', path)).headers;
  const startedAt = performance.now();
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const seen = { 'if-none-match': `W/${etag}` };
  const next = await api.call(partner, 'GET', path, undefined, { prefer: 'wait=1', ...seen });
  const waits = timers.mock.calls.map(([, ms]) => ms ?? 0);
  timers.mockRestore();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_000);
  // It did not wait for its next look by itself, after two seconds.
  expect(waits).not.toContain(2_000);
  expect([next.statusCode, next.body, next.headers['etag']]).toEqual([304, '', etag]);
  expect([next.headers['preference-applied'], next.headers['retry-after']]).toEqual(['wait=1', '1']);
});

test('a read without a wait is 304 at once for its tag, and a cancellation is never conditional', async ({
  api,
  partner,
  steps,
}) => {
  const id = await steps.accept(BY_WIRE);
  const path = `/v2/settle/${id}`;
  const { etag } = (await api.call(partner, 'GET', path)).headers;
  const seen = { 'if-none-match': String(etag) };
  for (const read of [path, `/v1/caribbean/settlements/${id}`])
    expect((await api.call(partner, 'GET', read, undefined, seen)).statusCode).toBe(304);
  const canceled = await api.call(partner, 'POST', `${path}/cancel`, undefined, { 'if-none-match': '*' });
  expect([canceled.statusCode, jsonOf(canceled).status]).toEqual([200, 'canceled']);
  expect((await api.call(partner, 'GET', path, undefined, seen)).statusCode).toBe(200);
});

test('a wait is read in each form of RFC 7240, is at most 30 s, and is never read from a parameter', async ({
  api,
  partner,
  steps,
}) => {
  const path = `/v2/settle/${await steps.accept(BY_WIRE)}`;
  await api.call(partner, 'POST', `${path}/cancel`);
  const applied = async (prefer: string) =>
    (await api.call(partner, 'GET', path, undefined, { prefer })).headers['preference-applied'];
  for (const prefer of ['Wait=5', 'wait="5"', 'wait = 5', 'respond-async, wait=5; x=y', 'wait=5, wait=9', 'x;y,wait=5'])
    expect([prefer, await applied(prefer)]).toEqual([prefer, 'wait=5']);
  for (const prefer of ['wait=31', 'wait=9999', `wait=${'9'.repeat(40)}`])
    expect(await applied(prefer)).toBe('wait=30');
  for (const prefer of ['wait', 'wait=', 'wait=-1', 'wait=5s', 'wait=1.5', 'x; wait=5', 'x=wait=5', 'await=5'])
    expect([prefer, await applied(prefer)]).toEqual([prefer, undefined]);
});
