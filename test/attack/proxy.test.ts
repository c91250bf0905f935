/**
 * The API behind real proxies: a request that a proxy and the API could read differently is refused, or is read alike.
 * Each attack is sent to the API itself, and through nginx and HAProxy where they are installed.
 */
import { describe, expect } from 'vitest';
import { parseBlock } from '../../domain/network-address.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { findProxy, PROXIES, startProxy } from './proxy.ts';
import { createWire, requestBytes } from './wire.ts';

const LOOPBACK = parseBlock('127.0.0.1');
const EVIL = 'evil.example';
/** Another address of this machine than the one that the proxies have. */
const CLIENT = '127.0.0.2';
/** A minute may end between two requests: then the counts begin again. */
const MINUTE_ENDS = { retry: 1 };

const test = withApi({ config: { trustedProxies: LOOPBACK ? [LOOPBACK] : [] } })
  /** The ports to attack: that of the API, and those of the proxies that are installed. */
  .extend('ports', FILE, async ({ port: apiPort }, { onCleanup }) => {
    const ports = new Map<string, number>([['the API itself', apiPort]]);
    const started: { close(): Promise<void> }[] = [];
    onCleanup(async () => void (await Promise.all(started.map(({ close }) => close()))));
    for (const name of PROXIES) {
      const program = await findProxy(name);
      if (program === undefined) continue;
      const proxy = await startProxy(name, program, apiPort);
      started.push(proxy);
      ports.set(name, proxy.port);
    }
    return ports;
  });

const BODY = '{"name":"Smuggled","country":"JM","contact_email":"dev@acme.example"}';
const INNER = `POST /v1/orgs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;

describe.each(['the API itself', ...PROXIES])('the proxy %s', (name) => {
  const attack = test.extend('send', async ({ ports, skip }) => {
    const port = ports.get(name);
    if (port === undefined) skip(`${name} is not installed`);
    return async (start: string, lines: readonly string[], body = '') =>
      await createWire(port ?? 0, CLIENT).exchange([requestBytes(start, lines, body)]);
  });

  attack('two keys are refused, as two lines and joined, whichever is valid', async ({ send, partner }) => {
    const key = partner.apiKey;
    for (const lines of [
      [`X-API-Key: ${key}`, `X-API-Key: ${key}`],
      ['X-API-Key: ', `X-API-Key: ${key}`],
      [`X-API-Key: ${key}, ${key}`],
    ]) {
      const [answer, ...more] = await send('GET /v1/recipients', ['Host: x', ...lines]);
      expect(more).toEqual([]);
      expect(answer?.statusCode).toBe(401);
      expect(answer?.body).toContain('credential_ambiguous');
    }
    const [valid] = await send('GET /v1/recipients', ['Host: x', `X-API-Key: ${key}`]);
    expect(valid?.statusCode).toBe(200);
  });

  attack(
    'a request inside a body is never answered: chunks together with a length, and spellings of both',
    async ({ api, send }) => {
      const organizations = async () => {
        const { rows } = await api.connection.pool.query<{ count: number }>(
          `SELECT count(*)::int AS count FROM organizations WHERE name = 'Smuggled'`,
        );
        return rows[0]?.count;
      };
      const before = await organizations();
      const chunked = `0\r\n\r\n${INNER}`;
      for (const lines of [
        [`Content-Length: ${chunked.length}`, 'Transfer-Encoding: chunked'],
        ['Transfer-Encoding: chunked', `Content-Length: ${chunked.length}`],
        [`Content-Length: ${chunked.length}`, 'Transfer-Encoding: xchunked'],
        [`Content-Length: ${chunked.length}`, 'Transfer-Encoding: identity, chunked'],
        ['Content-Length: 0', `Content-Length: ${chunked.length}`],
        [`Content-Length: 0, ${chunked.length}`],
        [`Content-Length: +${chunked.length}`],
      ]) {
        const answers = await send(
          'POST /v1/wallets',
          ['Host: x', 'Content-Type: application/json', ...lines],
          chunked,
        );
        expect(answers.map(({ statusCode }) => statusCode).filter((status) => status < 400)).toEqual([]);
        expect(answers.length).toBeLessThanOrEqual(1);
      }
      expect(await organizations()).toBe(before);
    },
  );

  attack('a host that a caller makes up is in no answer, also as an absolute target', async ({ send, partner }) => {
    const key = `X-API-Key: ${partner.apiKey}`;
    const lies = [
      `X-Forwarded-Host: ${EVIL}`,
      `Forwarded: for=1.2.3.4;host=${EVIL};proto=https`,
      'X-Forwarded-Proto: ftp',
    ];
    for (const [start, host] of [
      ['GET /v1/recipients?limit=1', EVIL],
      ['GET /nowhere', EVIL],
      [`GET http://${EVIL}/v1/recipients`, 'x'],
      [`GET http://${EVIL}/v1/recipients`, EVIL],
      ['GET /', EVIL],
    ] as const) {
      const answers = await send(start, [`Host: ${host}`, key, ...lies]);
      expect(answers).toHaveLength(1);
      expect(JSON.stringify(answers)).not.toContain(EVIL);
      expect(answers[0]?.statusCode).toBeLessThan(500);
    }
    const [two] = await send('GET /v1/recipients', ['Host: x', `Host: ${EVIL}`, key]);
    expect(two?.statusCode).toBe(400);
  });

  attack('the limit counts the client, whatever it says in forwarding headers', MINUTE_ENDS, async ({ send }) => {
    const left = async (...lines: readonly string[]): Promise<number> => {
      const [answer] = await send('GET /v2/capabilities', ['Host: x', ...lines]);
      return Number(/r=(\d+)/.exec(String(answer?.headers['ratelimit']))?.[1]);
    };
    const first = await left();
    expect(await left('X-Forwarded-For: 198.51.100.1', 'Forwarded: for=198.51.100.2')).toBe(first - 1);
    expect(await left('X-Forwarded-For: 127.0.0.1', 'X-Real-IP: 198.51.100.3')).toBe(first - 2);
    expect(await left('X-Forwarded-For: 198.51.100.4', 'X-Forwarded-For: 198.51.100.5, 127.0.0.1')).toBe(first - 3);
  });
});
