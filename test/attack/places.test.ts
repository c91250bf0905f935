/**
 * What one organization or one address may have under way: requests, connections, and sign-ups of a day (contract §2).
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect } from 'vitest';
import { limitConnections } from '../../api/http/connection-limit.ts';
import { parseBlock } from '../../domain/network-address.ts';
import { budgetsOf } from '../../domain/rate-limit.ts';
import { whileLocked } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf, signUpFrom } from '../support/partner.ts';
import { MINUTE_ENDS } from '../support/patience.ts';

const IN_FLIGHT = { ofOrganization: 5, ofAddress: 8 };

const test = withApi({ deps: { inFlight: IN_FLIGHT } });

type Answer = { readonly statusCode: number; readonly body: string };
const isRefused = ({ statusCode, body }: Answer): boolean => statusCode === 429 && body.includes('under way');
const headersOfRefusal = (quota: number) => ({
  'retry-after': '1',
  'ratelimit-policy': `"under-way";q=${quota};w=1`,
  ratelimit: '"under-way";r=0;t=1',
});

describe('requests under way', () => {
  test('429 at once beyond those of an organization, which are given back when they end', async ({ api }) => {
    const [greedy, modest] = [await api.createCaller(), await api.createCaller()];
    const read = (caller = greedy) => api.call(caller, 'GET', '/v1/recipients');
    // The reads wait for it, so that all of them are under way.
    const lock = 'LOCK TABLE recipients IN ACCESS EXCLUSIVE MODE';
    const { sent, refused } = await whileLocked(api.owner.pool, lock, async () => {
      const all = Array.from({ length: IN_FLIGHT.ofOrganization + 1 }, () => read());
      return { sent: all, refused: await Promise.race(all) };
    });
    expect(isRefused(refused)).toBe(true);
    expect(refused.headers).toMatchObject(headersOfRefusal(IN_FLIGHT.ofOrganization));
    expect((await Promise.all(sent)).filter(isRefused)).toEqual([refused]);
    for (let n = 0; n < 3; n += 1) expect((await read()).statusCode).toBe(200);
    expect((await read(modest)).statusCode).toBe(200);
    const again = await Promise.all(Array.from({ length: IN_FLIGHT.ofOrganization }, () => read()));
    expect(again.filter(isRefused)).toEqual([]);
  });

  test('429 at once beyond those of an address, and not for another address', async ({ api }) => {
    // Without `await`, such a request begins only when its answer is awaited.
    const read = async (remoteAddress: string, caller = greedy) =>
      await api.app.inject({
        ...{ method: 'GET', url: '/v1/recipients', remoteAddress },
        headers: { 'x-api-key': caller.apiKey },
      });
    const [greedy, modest] = [await api.createCaller(), await api.createCaller()];
    // Its lookup waits, so that all of its requests are under way.
    const lock = 'LOCK TABLE rate_limits IN EXCLUSIVE MODE';
    const { burst, beyond, probe, other } = await whileLocked(api.owner.pool, lock, async () => ({
      burst: Array.from({ length: IN_FLIGHT.ofAddress }, () => read('192.0.2.1')),
      beyond: await read('192.0.2.1'),
      probe: await api.app.inject({ method: 'GET', url: '/health/live', remoteAddress: '192.0.2.1' }),
      // Of another organization: the burst is one organization's too.
      other: read('192.0.2.2', modest),
    }));
    expect([isRefused(beyond), probe.statusCode]).toEqual([true, 200]);
    expect(jsonOf(beyond)).toMatchObject({ code: 'rate_limited' });
    expect(beyond.headers).toMatchObject(headersOfRefusal(IN_FLIGHT.ofAddress));
    await Promise.all(burst);
    expect((await other).statusCode).toBe(200);
    expect((await read('192.0.2.1')).statusCode).toBe(200);
  });
});

describe('connections', () => {
  async function listen(trusted: string[]) {
    const server = createServer(() => undefined);
    limitConnections(server, {
      maxOfAddress: 2,
      trusted: trusted.map((block) => parseBlock(block) ?? expect.unreachable()),
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    /** Opens a connection, and waits until the server has taken or closed it. */
    const open = async () => {
      const arrived: Promise<Socket[]> = once(server, 'connection');
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      const [[taken]] = await Promise.all([arrived, once(socket, 'connect')]);
      return { socket, isClosed: () => taken?.destroyed };
    };
    return { server, open };
  }

  test('beyond those of an address are closed, until another one ends', async () => {
    const { server, open } = await listen([]);
    const [first, second, third] = [await open(), await open(), await open()];
    third.socket.resume();
    await once(third.socket, 'close');
    expect([first.isClosed(), second.isClosed()]).toEqual([false, false]);
    first.socket.destroy();
    await expect
      .poll(async () => {
        const next = await open();
        const isClosed = next.isClosed();
        next.socket.destroy();
        return isClosed;
      })
      .toBe(false);
    second.socket.destroy();
    server.close();
  });

  test('of a trusted proxy have no limit of an address', async () => {
    const { server, open } = await listen(['127.0.0.1']);
    const sockets = [await open(), await open(), await open(), await open()];
    expect(sockets.map(({ isClosed }) => isClosed())).toEqual([false, false, false, false]);
    for (const { socket } of sockets) socket.destroy();
    server.close();
  });
});

describe('sign-ups of a network in a day', MINUTE_ENDS, () => {
  const PER_MINUTE = 30;
  const { quota } = budgetsOf(PER_MINUTE)['sign-ups-of-network'];
  const times = (count: number, run: (n: number) => Promise<Answer>) =>
    Promise.all(Array.from({ length: count }, async (_, n) => (await run(n + 1)).statusCode));

  test.for([
    ['an IPv4 /24', (n: number) => `198.51.100.${n}`, '198.51.101.1'],
    ['an IPv6 /48', (n: number) => `2001:db8:7:${n}::1`, '2001:db8:8::1'],
  ] as const)(
    '429 for one sign-up more than %s has in a day, from whatever address of it',
    async ([, addressOf, other], { newApi }) => {
      const api = await newApi({ config: { rateLimitPerMinute: PER_MINUTE } });
      const statuses = await times(quota, (n) => signUpFrom(api, addressOf(n)));
      expect(new Set(statuses)).toEqual(new Set([201]));
      const refused = await signUpFrom(api, addressOf(quota + 1));
      expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
      expect(refused.headers['ratelimit-policy']).toBe(`"sign-ups-of-network";q=${quota};w=86400`);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect((await signUpFrom(api, other)).statusCode).toBe(201);
    },
  );

  test('are the organizations that were made: a refused sign-up counts none', async ({ newApi }) => {
    const api = await newApi({ config: { rateLimitPerMinute: PER_MINUTE } });
    const empty = (n: number) =>
      api.app.inject({ method: 'POST', url: '/v1/orgs', remoteAddress: `198.51.100.${n}`, payload: {} });
    expect(new Set(await times(quota + 1, empty))).toEqual(new Set([422]));
    expect(await times(quota, () => empty(1))).toContain(429);
    expect((await signUpFrom(api, '198.51.100.99')).statusCode).toBe(201);
  });

  test('have no limit on the own machine of the local sandbox', async ({ newApi }) => {
    const api = await newApi({ config: { rateLimitPerMinute: PER_MINUTE } });
    const statuses = await times(quota + 1, (n) => signUpFrom(api, `127.0.0.${n}`));
    expect(new Set(statuses)).toEqual(new Set([201]));
  });
});
