/** Few requests of low priority are handled at once, in turn, so that they delay no payment and no other tenant. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { connect } from 'node:net';
import fastify, { type FastifyReply } from 'fastify';
import { expect, vi } from 'vitest';
import { requestEnd } from '../../api/plugins/request-end.ts';
import { LOW_PRIORITY, turn } from '../../api/plugins/turn.ts';
import { DomainError } from '../../domain/error.ts';
import { withApi } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';
import { subscribe } from '../support/webhook.ts';

const { seats, timeoutMs } = LOW_PRIORITY;
const TENANTS = ['a', 'b', 'c', 'd', 'e'];
/** More than a connection holds for a reader who does not read. */
const BIG = 'x'.repeat(8 * 1024 * 1024);

type Ended = 'answered' | 'failed';

// biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
const test = withApi().extend('edge', async ({}, { onCleanup }) => {
  const app = fastify();
  const context = new AsyncLocalStorage<string>();
  app.decorateRequest('principal', null);
  app.decorateRequest('clientAddress', null as never);
  app.addHook<{ Params: { who: string }; Querystring: { at?: string } }>('onRequest', (request, _reply, done) => {
    const { who } = request.params;
    Object.assign(request, { principal: { orgId: who }, clientAddress: { limitKey: request.query.at ?? who } });
    context.run(who, done);
  });
  await app.register(requestEnd);
  await app.register(turn, LOW_PRIORITY);
  const handled: { readonly who: string; readonly in: string | undefined; end(how?: Ended): void }[] = [];
  const handle = (who: string, reply: FastifyReply): void => {
    const end = (how: Ended = 'answered') => void reply.send(how === 'failed' ? new Error('it failed') : BIG);
    handled.push({ who, in: context.getStore(), end });
  };
  const low = { config: { access: { auth: 'none', isLowPriority: true } } } as const;
  app.get<{ Params: { who: string } }>('/low/:who', low, ({ params: { who } }, reply) => void handle(who, reply));
  app.get<{ Params: { who: string } }>('/payment/:who', ({ params: { who } }, reply) => void handle(who, reply));
  onCleanup(() => app.close());
  return {
    app,
    handled,
    /** Who is handled, in this order. */
    whose: () => handled.map(({ who }) => who).join(''),
    /** From this address, or one that only this tenant has. */
    ask: (who: string, times = 1, at = who) => Array.from({ length: times }, () => app.inject(`/low/${who}?at=${at}`)),
    untilWaiting: (count: number) => vi.waitUntil(() => app.lowPriority.waiting() === count, WAIT),
  };
});

test('administration and lists have low priority, and nothing that moves value or waits for others', async ({
  api,
}) => {
  const changesKeys = /^\/v1\/(orgs\/keys|orgs\/\{org_id\}\/keys|webhooks)/;
  const isList = (schema: object) => JSON.stringify(schema).includes('X-Total-Count');
  const declared = api.app.operations.filter(({ access }) => access.isLowPriority);
  const expected = api.app.operations.filter(({ method, path, access, schema }) => {
    if (access.internal || method === 'HEAD') return false;
    const administers = method !== 'GET' && changesKeys.test(path);
    // Its host is looked up.
    if (method === 'POST' && path === '/v1/webhooks') return false;
    return administers || isList(schema.response ?? {}) || path === '/v1/usage';
  });
  const names = (operations: typeof declared) => operations.map(({ method, path }) => `${method} ${path}`).sort();
  expect(names(declared)).toEqual(names(expected));
  expect(declared.length).toBeGreaterThan(15);
});

test("a tenant's lists are handled one after another, and its payment and another tenant's list do not wait", async ({
  edge: { app, handled, whose, ask, untilWaiting },
}) => {
  const asked = ask('a', 2);
  await untilWaiting(1);
  asked.push(app.inject('/payment/a'), ...ask('b'));
  await vi.waitUntil(() => handled.length === 3, WAIT);
  expect(whose()).toBe('aab');
  handled[0]?.end();
  await vi.waitUntil(() => handled.length === 4, WAIT);
  for (const { end } of handled.slice(1)) end();
  for (const answer of await Promise.all(asked)) expect(answer.statusCode).toBe(200);
});

test('a seat rests as long as its list took, and no more once no payment comes from another address', async ({
  edge: { app, handled, whose, ask },
}) => {
  let nowMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const handledSoon = async (): Promise<string> => {
    for (let n = 0; n < 1_000; n += 1) await new Promise(setImmediate);
    return whose();
  };
  try {
    const asked = [app.inject('/payment/x'), ...ask('a', 2), ...ask('b', 2)];
    expect(await handledSoon()).toBe('xab');
    nowMs = 20;
    handled[1]?.end();
    expect(await handledSoon()).toBe('xab');
    vi.advanceTimersByTime(19);
    expect(await handledSoon()).toBe('xab');
    vi.advanceTimersByTime(1);
    expect(await handledSoon()).toBe('xaba');
    nowMs = 2_000;
    handled[2]?.end();
    expect(await handledSoon()).toBe('xabab');
    for (const { end } of handled) end();
    for (const answer of await Promise.all(asked)) expect(answer.statusCode).toBe(200);
  } finally {
    vi.useRealTimers();
    clock.mockRestore();
  }
});

test('tenants that wait are handled in turn, each request in its own context', async ({
  edge: { handled, whose, ask, untilWaiting },
}) => {
  const asked = TENANTS.slice(0, seats).flatMap((who) => ask(who));
  await vi.waitUntil(() => handled.length === seats, WAIT);
  asked.push(...ask('x', 3));
  await untilWaiting(3);
  asked.push(...ask('y'));
  await untilWaiting(4);
  for (let n = 0; n < asked.length; n += 1) {
    await vi.waitUntil(() => handled[n], WAIT);
    handled[n]?.end();
  }
  await Promise.all(asked);
  expect(whose().slice(seats)).toBe('xyxx');
  for (const one of handled) expect(one.in).toBe(one.who);
});

test('a request gives its seat back once: when it fails, when nobody reads its answer, and when its caller goes', async ({
  edge: { app, handled, whose, ask, untilWaiting },
}) => {
  const failing = ask('a');
  await vi.waitUntil(() => handled.length === 1, WAIT);
  handled[0]?.end('failed');
  expect((await Promise.all(failing))[0]?.statusCode).toBe(500);

  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  const send = async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.pause();
    socket.write('GET /low/a HTTP/1.1\r\nHost: service\r\n\r\n');
    return socket;
  };
  const unread = await send();
  await vi.waitUntil(() => handled.length === 2, WAIT);
  handled[1]?.end();
  const gone = await send();
  await vi.waitUntil(() => handled.length === 3, WAIT);
  gone.destroy();
  const next = ask('a');
  await vi.waitUntil(() => handled.length === 4, WAIT);
  handled[3]?.end();
  expect((await Promise.all(next))[0]?.statusCode).toBe(200);
  unread.destroy();

  const others = TENANTS.slice(0, seats + 1).flatMap((who) => ask(who));
  await untilWaiting(1);
  await vi.waitUntil(() => handled.length === 4 + seats, WAIT);
  expect(whose().slice(4)).toBe(TENANTS.slice(0, seats).join(''));
  for (let n = 4; n < 4 + others.length; n += 1) {
    await vi.waitUntil(() => handled[n], WAIT);
    handled[n]?.end();
  }
  await Promise.all(others);
});

test('a request whose caller goes while it waits is never handled, and the next one has its turn', async ({
  edge: { app, handled, whose, ask, untilWaiting },
}) => {
  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  const held = ask('a');
  await vi.waitUntil(() => handled.length === 1, WAIT);
  const sockets = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'));
  for (const socket of sockets) socket.write('GET /low/a HTTP/1.1\r\nHost: service\r\n\r\n');
  await untilWaiting(3);
  const next = ask('a', 1, 'b');
  await untilWaiting(4);
  for (const socket of sockets) socket.destroy();
  const connections = () => new Promise((count) => app.server.getConnections((_error, open) => count(open)));
  await vi.waitUntil(async () => (await connections()) === 0, WAIT);
  handled[0]?.end();
  await vi.waitUntil(() => handled.length > 1, WAIT);
  for (const { end } of handled.slice(1)) end();
  const answers = await Promise.all([...held, ...next]);
  expect([answers.map(({ statusCode }) => statusCode), whose()]).toEqual([[200, 200], 'aa']);
});

test('a long request of low priority ends at its next step once its caller has gone', async ({ edge: { app } }) => {
  const seen: Record<'isBegun' | 'hasEnded', boolean> & { steps: number } = {
    isBegun: false,
    hasEnded: false,
    steps: 0,
  };
  const low = { config: { access: { auth: 'none', isLowPriority: true } } } as const;
  app.get('/long/:who', low, async (request) => {
    seen.isBegun = true;
    await vi.waitUntil(() => request.raw.socket.destroyed, WAIT);
    for (; seen.steps < 3; seen.steps += 1) await request.nextTurn();
  });
  app.addHook('onError', async () => {
    seen.hasEnded = true;
  });
  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /long/a HTTP/1.1\r\nHost: service\r\n\r\n');
  await vi.waitUntil(() => seen.isBegun, WAIT);
  socket.destroy();
  await vi.waitUntil(() => seen.hasEnded || seen.steps === 3, WAIT);
  expect(seen).toEqual({ isBegun: true, hasEnded: true, steps: 0 });
});

test('503 for a request of low priority that waits for ten seconds, and it is never handled', async ({
  edge: { app, handled, ask, untilWaiting },
}) => {
  const refusals: unknown[] = [];
  app.setErrorHandler((error, _request, reply) => {
    refusals.push(error);
    return reply.code(503).send();
  });
  const held = ask('a');
  await vi.waitUntil(() => handled.length === 1, WAIT);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const late = ask('a');
  try {
    vi.advanceTimersByTime(0);
    for (let n = 0; app.lowPriority.waiting() === 0 && n < 1_000; n += 1) await new Promise(setImmediate);
    vi.advanceTimersByTime(timeoutMs);
  } finally {
    vi.useRealTimers();
  }
  expect((await Promise.all(late))[0]?.statusCode).toBe(503);
  expect(refusals).toEqual([expect.any(DomainError)]);
  expect(refusals).toMatchObject([{ code: 'temporarily_unavailable' }]);
  await untilWaiting(0);
  handled[0]?.end();
  await Promise.all(held);
  expect(handled).toHaveLength(1);
});

test("a subscription whose host's name is being looked up delays no list", async ({ newApi }) => {
  let lookups = 0;
  let found = (_addresses: readonly string[]): void => undefined;
  const addresses = new Promise<readonly string[]>((resolve) => {
    found = resolve;
  });
  const resolveHost = () => {
    lookups += 1;
    return addresses;
  };
  const api = await newApi({ deps: { resolveHost, lowPriority: LOW_PRIORITY } });
  const caller = await api.createCaller();
  const { webhook_id } = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
  const changes = Array.from({ length: seats }, () =>
    api.call(caller, 'PATCH', `/v1/webhooks/${webhook_id}`, { url: 'https://slow.example/hook' }),
  );
  await vi.waitUntil(() => lookups === seats, WAIT);
  expect((await api.call(caller, 'GET', '/v1/webhooks')).statusCode).toBe(200);
  found(['93.184.216.34']);
  await Promise.all(changes);
});
