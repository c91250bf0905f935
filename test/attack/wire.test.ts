/** Requests that no HTTP client sends: the answer is documented, or a 400 problem, and comes at once. */
import { METHODS } from 'node:http';
import { Writable } from 'node:stream';
import { Registry } from 'prom-client';
import { describe, expect, vi } from 'vitest';
import { newId } from '../../db/id.ts';
import { createLogger } from '../../process/logger.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import type { TestApi } from '../support/api.ts';
import { requireConformance, type SeenAnswer } from '../support/conformance.ts';
import { FILE } from '../support/fixture.ts';
import { createRecipient, settleBody } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { describedOperations } from './document.ts';
import { withAttack } from './fixture.ts';
import { MARK, SEGMENTS } from './hostile-value.ts';
import { urlOf } from './sample.ts';
import { requestBytes } from './wire.ts';
import type { Tenant } from './world.ts';

const OPERATIONS = describedOperations(await describeApi());
const HOST = 'Host: api.acme.example';

const logged: Record<string, unknown>[] = [];
const sink = new Writable({
  write: (chunk: Buffer, _encoding, done) => {
    logged.push(JSON.parse(chunk.toString()));
    done();
  },
});
const metrics = new Registry();

const test = withAttack({ logger: createLogger({ level: 'info', name: 'api' }, sink), deps: { metrics } })
  .extend('logged', FILE, logged)
  .extend('metrics', FILE, metrics)
  .extend('recipientId', FILE, ({ api, tenant }) => createRecipient(api, tenant.partner))
  /** Sends one request and returns its answer. */
  .extend(
    'ask',
    FILE,
    ({ wire }) =>
      async (start: string, lines: readonly string[], body: string | Buffer = ''): Promise<SeenAnswer> => {
        const answers = await wire.exchange([requestBytes(start, lines, body)]);
        expect([start, answers.length]).toEqual([start, 1]);
        const [method = '', url = ''] = start.split(' ');
        const [answer = expect.fail('no answer')] = answers;
        if (answer.statusCode !== 400 && answer.statusCode !== 431 && METHODS.includes(method) && method !== 'HEAD')
          requireConformance(method, url.replace(/^http:\/\/[^/]+/, ''), answer);
        return answer;
      },
  );

const keyLine = (tenant: Tenant) => `X-API-Key: ${tenant.partner.apiKey}`;
const lengthOf = (body: string | Buffer) => `Content-Length: ${Buffer.byteLength(body)}`;

const EVERY_ANSWER = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** The answer to bytes that are not a request: a problem, and the headers of every answer. */
function expectUnreadable(answer: SeenAnswer, status = 400): void {
  const code = status === 431 ? 'headers_too_large' : 'request_malformed';
  expect(answer).toMatchObject({
    statusCode: status,
    headers: { 'content-type': expect.stringContaining('application/problem+json') },
  });
  expect(JSON.parse(answer.body)).toMatchObject({
    type: `/problems/${code}`,
    code,
    status,
    request_id: answer.headers['x-request-id'],
  });
  expect(answer.headers).toMatchObject({ ...EVERY_ANSWER, connection: 'close' });
  expect(answer.body + JSON.stringify(answer.headers)).not.toContain(MARK);
}

const settleHead = (tenant: Tenant, key = newId()) => [
  ...[HOST, keyLine(tenant), 'Content-Type: application/json', `Idempotency-Key: ${key}`],
];
const settle = (recipientId: string) => JSON.stringify(settleBody(recipientId));
const countSettlements = async (api: TestApi) =>
  (await api.connection.pool.query('SELECT count(*)::int AS count FROM settlements')).rows[0].count;

describe('methods', () => {
  const addresses = [...new Set(OPERATIONS.map(({ path }) => path))];

  test('405 with Allow for every other method of a path, without a credential', async ({ ask }) => {
    for (const path of addresses) {
      const offered = OPERATIONS.filter((operation) => operation.path === path);
      const [operation = expect.fail('no operation')] = offered;
      const allow = offered
        .map(({ method }) => method)
        .sort((a, b) => (a < b ? -1 : 1))
        .join(', ');
      // The router of Fastify knows a method or does not, for all paths alike: one path gets them all.
      const asked = path === addresses[0] ? METHODS : ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'PROPFIND'];
      // CONNECT asks for a tunnel.
      const others = asked.filter((method) => method !== 'CONNECT' && !offered.some((each) => each.method === method));
      const answers = await Promise.all(others.map((method) => ask(`${method} ${urlOf(operation)}`, [HOST])));
      expect([path, answers.map(({ statusCode, headers }) => `${statusCode} ${headers['allow']}`)]).toEqual([
        path,
        others.map(() => `405 ${allow}`),
      ]);
    }
  });

  test('405 for HEAD, TRACE repeats nothing, and OPTIONS allows no other origin', async ({ wire, ask }) => {
    const secret = `X-Planted: ${MARK}`;
    const head = await wire.exchange([requestBytes('HEAD /v2/capabilities', [HOST, secret])]);
    expect(head).toMatchObject([{ statusCode: 405, headers: { allow: 'GET' } }]);
    const trace = await ask('TRACE /v2/capabilities', [HOST, secret]);
    expect(trace.body + JSON.stringify(trace.headers)).not.toContain(MARK);
    for (const start of ['OPTIONS /v2/settle', 'GET /v2/capabilities', 'OPTIONS *']) {
      const [answer] = await wire.exchange([
        requestBytes(start, [HOST, 'Origin: https://elsewhere.example', 'Access-Control-Request-Method: POST']),
      ]);
      expect(Object.keys(answer?.headers ?? {}).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  test('400 for an unknown method, and no tunnel for CONNECT', async ({ wire, ask }) => {
    for (const method of [MARK.toUpperCase(), 'get', 'GETT', ''])
      expectUnreadable(await ask(`${method} /v2/capabilities`, [HOST]));
    const tunnel = await wire.exchange([requestBytes('CONNECT 127.0.0.1:22', [HOST])]);
    expect(tunnel.filter(({ statusCode }) => statusCode < 400)).toEqual([]);
  });
});

describe('doubled headers', () => {
  test('422 for two idempotency keys, even if they are equal, and nothing is accepted', async ({
    api,
    tenant,
    recipientId,
    ask,
  }) => {
    await expectUnchanged(api.connection.pool, async () => {
      const key = newId();
      const body = settle(recipientId);
      for (const second of [key, newId()]) {
        const lines = [...settleHead(tenant, key), `idempotency-key: ${second}`, lengthOf(body)];
        const answer = await ask('POST /v2/settle', lines, body);
        expect([answer.statusCode, JSON.parse(answer.body).detail[0].loc]).toEqual([
          422,
          ['header', 'Idempotency-Key'],
        ]);
      }
    });
  });

  test('415 for two content types, even if both are JSON', async ({ tenant, recipientId, ask }) => {
    const body = settle(recipientId);
    for (const second of ['application/json', 'text/plain']) {
      const lines = [...settleHead(tenant), `Content-Type: ${second}`, lengthOf(body)];
      expect((await ask('POST /v2/settle', lines, body)).statusCode).toBe(415);
    }
  });

  test('400 for two Host headers, or none', async ({ ask }) => {
    for (const lines of [[HOST, HOST], [HOST, `host: ${MARK}.example`], []])
      expectUnreadable(await ask('GET /health/live', lines));
  });

  test('200 without a Host header for HTTP/1.0, which has none', async ({ wire }) => {
    const answers = await wire.exchange(['GET /health/live HTTP/1.0\r\n\r\n']);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200]);
  });

  test('no further request on a connection after two Host headers', async ({ wire }) => {
    const read = (...hosts: string[]) => ['GET /health/live HTTP/1.1', ...hosts, '', ''].join('\r\n');
    const answers = await wire.exchange([Buffer.from(read(HOST, HOST) + read(HOST))]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([400]);
  });

  test('a new request id for two of them', async ({ ask }) => {
    const answer = await ask('GET /health/live', [HOST, 'X-Request-ID: first', 'X-Request-ID: second']);
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('request ids', () => {
  test('are returned if they are valid, and replaced if not', async ({ ask }) => {
    for (const good of ['a', 'A.b_c:d-1', 'x'.repeat(128)])
      expect((await ask('GET /health/live', [HOST, `X-Request-ID: ${good}`])).headers['x-request-id']).toBe(good);
    for (const bad of ['', 'a b', 'x'.repeat(129), `${MARK};`, `<${MARK}>`, `${MARK}\u00e9`, `${MARK},${MARK}`]) {
      expect((await ask('GET /health/live', [HOST, `X-Request-ID: ${bad}`])).headers['x-request-id']).toMatch(
        /^[0-9a-f-]{36}$/,
      );
    }
  });
});

describe('addresses', () => {
  const withIds = OPERATIONS.filter(({ path, access }) => path.includes('{') && access.auth !== 'none');

  test('a documented refusal for every value in place of an id, and nothing is written', async ({
    api,
    tenant,
    ask,
  }) => {
    await expectUnchanged(api.connection.pool, async () => {
      for (const [index, { method, path, access }] of withIds.entries()) {
        const credential = access.auth === 'session' ? `Authorization: Bearer ${tenant.sessionToken}` : keyLine(tenant);
        // All of them for every sixth operation, and a part for each of the others.
        const part = SEGMENTS.filter((_, place) => index % 6 === 0 || place % 6 === index % 6);
        const statuses = await Promise.all(
          part.map(async (segment) => {
            const url = path.replace(/\{[a-z_]+\}/g, segment);
            return (await ask(`${method} ${url}`, [HOST, credential])).statusCode;
          }),
        );
        expect([path, statuses.filter((status) => ![404, 405, 422].includes(status))]).toEqual([path, []]);
      }
    });
  });

  test('404 for paths next to, above and below every path', async ({ tenant, ask }) => {
    for (const address of [
      ...['//', '/v2', '/v2//settle', '/V2/settle', '/v2/settle%20', '/v2/../v2/settle', `/${MARK}`, '/.env'],
      ...['/v2/settle;a=b', '/v2/settle%3Fa'],
    ]) {
      const answer = await ask(`GET ${address}`, [HOST, keyLine(tenant)]);
      expect([address, answer.statusCode]).toEqual([address, 404]);
    }
  });

  test('400 for an invalid target, 431 for one that is too long', async ({ ask }) => {
    for (const target of [`${MARK} x`, `/${MARK}\u0000`, '']) expectUnreadable(await ask(`GET ${target}`, [HOST]));
    expectUnreadable(await ask(`GET /${MARK}${'x'.repeat(20_000)}`, [HOST]), 431);
  });

  test('a target with another host is answered by this server', async ({ ask }) => {
    const answer = await ask(`GET http://${MARK}.example/health/live`, [HOST]);
    expect([200, 404]).toContain(answer.statusCode);
    expect(JSON.stringify(answer.headers)).not.toContain(MARK);
  });

  test('a list at an absolute target has links without its host', async ({ api, tenant, ask }) => {
    for (let n = 0; n < 2; n += 1) await createRecipient(api, tenant.partner);
    for (const target of ['/v1/recipients?limit=1', `http://${MARK}.example/v1/recipients?limit=1`]) {
      const { headers } = await ask(`GET ${target}`, [HOST, keyLine(tenant)]);
      expect(headers['link']).toMatch(/^<\/v1\/recipients\?/);
    }
  });

  test.for([
    ['a line of nonsense', 'NONSENSE', [], 'none', 400, 'request_malformed'],
    ['a request with two hosts', 'GET /health/live', [HOST, HOST], '/health/live', 400, 'request_malformed'],
    ['a request with long headers', 'GET /', [HOST, `X-Long: ${'x'.repeat(20_000)}`], 'none', 431, 'headers_too_large'],
    ['an undecodable address', 'GET /v1/recipients/%zz', [HOST], 'none', 404, 'not_found'],
  ] as const)(
    '%s is logged, counted and answered as any other',
    async ([_case, start, lines, route, status, code], { ask, metrics, logged }) => {
      const count = async () => (await metrics.getSingleMetricAsString('settlement_http_refusals_total')).split('\n');
      const timed = async () =>
        (await metrics.getSingleMetricAsString('settlement_http_request_duration_seconds'))
          .split('\n')
          .filter((sample) => sample.includes(`_count{route="${route}",`) && sample.includes(`status="${status}"`))
          .reduce((sum, sample) => sum + Number(sample.split(' ').at(-1)), 0);
      const [before, timedBefore] = [await count(), await timed()];
      const answer = await ask(start, lines);
      expect([answer.statusCode, JSON.parse(answer.body).code]).toEqual([status, code]);
      expect(answer.headers).toMatchObject(EVERY_ANSWER);
      const requestId = answer.headers['x-request-id'];
      const line = () => logged.find((entry) => entry['request_id'] === requestId);
      await vi.waitUntil(line, WAIT);
      expect(line()).toMatchObject({ route, status, client: '127.0.0.0', msg: 'request' });
      expect((await count()).filter((sample) => !before.includes(sample))).toEqual([
        expect.stringContaining(`code="${code}"`),
      ]);
      expect(await timed()).toBe(timedBefore + 1);
    },
  );
});

describe('bodies', () => {
  const head = (tenant: Tenant, lines: readonly string[]) =>
    requestBytes('POST /v2/settle', [...settleHead(tenant), ...lines]);

  test('413 for a body over the limit, by its length or in chunks, before its end', async ({ tenant, wire }) => {
    const chunk = 'x'.repeat(16 * 1024);
    const chunks = Array.from({ length: 8 }, () => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    for (const parts of [
      [head(tenant, ['Content-Length: 10000000']), chunk],
      [head(tenant, ['Transfer-Encoding: chunked']), ...chunks],
    ]) {
      const [answer = expect.fail('no answer'), ...more] = await wire.exchange(parts);
      expect([answer.statusCode, more]).toEqual([413, []]);
      requireConformance('POST', '/v2/settle', answer);
    }
  });

  test('202 for a body in chunks of one byte, and with trailers', async ({ tenant, wire, recipientId }) => {
    const bytes = [...Buffer.from(settle(recipientId))].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join('');
    const answers = await wire.exchange([
      head(tenant, ['Transfer-Encoding: chunked', 'Trailer: X-API-Key']),
      `${bytes}0\r\nX-API-Key: not-a-key\r\n\r\n`,
    ]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([202]);
  });

  test('an empty body in chunks is no body, whatever its type is and wherever its chunks are split', async ({
    tenant,
    wire,
  }) => {
    const key = `X-API-Key: ${tenant.partner.apiKey}`;
    for (const type of [[], ['Content-Type: text/plain'], ['Content-Type: application/json']])
      for (const [chunks, untyped] of [
        [['0\r\n\r\n'], 200],
        [['0\r\n', '\r\n'], 200],
        [['2\r\n{}\r\n', '0\r\n\r\n'], 415],
      ] as const) {
        const lines = [HOST, key, 'Connection: close', ...type, 'Transfer-Encoding: chunked'];
        const status = type.some((line) => line.includes('json')) ? 200 : untyped;
        const answers = await wire.exchange([requestBytes('POST /v2/banklink/link-token', lines), ...chunks]);
        expect([type, chunks, ...answers.map(({ statusCode }) => statusCode)]).toEqual([type, chunks, status]);
      }
  });

  test('400 for ambiguous framing, and nothing is accepted', async ({ api, tenant, wire, recipientId }) => {
    const before = await countSettlements(api);
    const body = settle(recipientId);
    for (const lines of [
      [lengthOf(body), `Content-Length: ${body.length + 1}`],
      [lengthOf(body), 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked, identity'],
      ['Transfer-Encoding: xchunked'],
      ['Transfer-Encoding : chunked'],
      ['Content-Length: +5'],
      ['Content-Length: 0x10'],
      [`Content-Length: ${body.length}, ${body.length}`],
      [lengthOf(body), ' X-Folded: header'],
      [lengthOf(body), 'X-Null: a\u0000b'],
    ]) {
      const answers = await wire.exchange([head(tenant, lines), body]);
      expect([lines, answers.map(({ statusCode }) => statusCode)]).toEqual([lines, [400]]);
      for (const answer of answers) expectUnreadable(answer);
    }
    expect(await countSettlements(api)).toBe(before);
  });

  test('a body that the client does not complete is not accepted', async ({ api, tenant, wire, recipientId }) => {
    const before = await countSettlements(api);
    const body = settle(recipientId);
    const id = newId();
    const parts = [head(tenant, [`Content-Length: ${body.length + 10}`, `X-Request-ID: ${id}`]), body];
    const answers = await wire.exchange(parts, { halfClose: true });
    expect(answers.filter(({ statusCode }) => statusCode < 400)).toEqual([]);
    await vi.waitUntil(() => logged.some((line) => line['request_id'] === id), WAIT);
    expect(await countSettlements(api)).toBe(before);
  });

  test('100-continue is answered, and every other expectation is ignored', async ({ tenant, wire, recipientId }) => {
    for (const expectation of ['100-continue', MARK, '', '200-ok, 100-continue']) {
      const answers = await wire.exchange([
        head(tenant, [`Expect: ${expectation}`, lengthOf(settle(recipientId))]),
        settle(recipientId),
      ]);
      expect([expectation, answers.map(({ statusCode }) => statusCode)]).toEqual([expectation, [202]]);
    }
  });
});

describe('connections', () => {
  test('requests that arrive together are answered in order', async ({ wire }) => {
    const pipelined = ['/health/live', '/v1/orgs/none', '/v2/capabilities']
      .map((address) => `GET ${address} HTTP/1.1\r\n${HOST}\r\n\r\n`)
      .join('');
    const answers = await wire.exchange([pipelined, requestBytes('GET /nowhere', [HOST])]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 401, 200, 404]);
  });

  test('a client that closes its side is still answered', async ({ wire }) => {
    const answers = await wire.exchange([`GET /health/live HTTP/1.1\r\n${HOST}\r\n\r\n`], { halfClose: true });
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200]);
  });

  test('400 for TLS, for HTTP/2 and for random bytes', async ({ wire }) => {
    for (const bytes of [
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      Buffer.from('16030100a5010000a10303', 'hex'),
      Buffer.alloc(200, 0xff),
      `GET / HTTP/3.0\r\n\r\n`,
    ]) {
      const [answer = expect.fail('no answer')] = await wire.exchange([bytes], { halfClose: true });
      expectUnreadable(answer);
    }
  });

  test('an upgrade is ignored, and the request is answered', async ({ ask }) => {
    const answer = await ask('GET /health/live', [HOST, 'Upgrade: websocket', 'Sec-WebSocket-Key: x']);
    expect(answer.statusCode).toBe(200);
  });
});
