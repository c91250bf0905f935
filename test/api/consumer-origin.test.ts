/** Which web pages may call the consumers' operations (contract §12), and that no other page and no other route may. */
import { describe, expect } from 'vitest';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { describedOperations } from '../attack/document.ts';
import { callAs, signIn } from '../support/consumer.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { sendRaw } from '../support/raw-request.ts';

const APP = 'https://app.example';
const OTHER = 'https://pay.example:8443';
const test = withApi({ config: { consumerAllowedOrigins: [APP, OTHER] } })
  .extend('closed', FILE, openApi())
  .extend('server', FILE, async ({ api }) => new URL(await api.app.listen({ host: '127.0.0.1', port: 0 })));

const CORS = /^access-control-/;
const corsOf = (headers: Readonly<Record<string, unknown>>) => Object.keys(headers).filter((name) => CORS.test(name));
const varyOf = (headers: Readonly<Record<string, unknown>>) => String(headers['vary'] ?? '').split(/, */);

/** Not the allowed origin, although each resembles it. */
const STRANGERS = [
  'null',
  '*',
  'https://app.example.evil.example',
  'https://evil-app.example',
  'https://evilapp.example',
  'https://app.example:444',
  'https://app.example:443',
  'https://app.example.',
  'https://app.example/',
  'https://app.example, https://evil.example',
  'https://user@app.example',
  'https://sub.app.example',
  'https://app.exampl',
  'http://app.example',
  'HTTPS://APP.EXAMPLE',
  'https://pay.example',
  'chrome-extension://app.example',
  '',
];

const preflight = (origin: string, method = 'POST') => [
  ...['Origin', origin, 'Access-Control-Request-Method', method],
  ...['Access-Control-Request-Headers', 'authorization, content-type, idempotency-key'],
];

type Answer = { readonly $ref?: string; readonly headers?: Readonly<Record<string, { readonly schema: object }>> };
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Record<string, Answer> }>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Answer>> };
};

const described = await describeApi();
const isConsumers = (path: string) => path.startsWith('/consumer/');
/** The headers that operations of consumers take, and those that they answer. */
const TAKEN = describedOperations(described)
  .filter(({ path }) => isConsumers(path))
  .flatMap(({ parameters }) => parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name));
const { paths, components } = described.document as unknown as Document;
const ANSWERS = Object.entries(paths)
  .filter(([path]) => isConsumers(path))
  .flatMap(([, methods]) => Object.values(methods).flatMap(({ responses }) => Object.values(responses)))
  .map((answer) => components.responses[answer.$ref?.replace('#/components/responses/', '') ?? ''] ?? answer);
const ANSWERED = ANSWERS.flatMap(({ headers = {} }) => Object.keys(headers));
/** A script may read the first one of every answer. The others are for caches and for people. */
const UNREAD = ['Cache-Control', 'Vary', 'WWW-Authenticate'];
const namesIn = (header: unknown) => String(header).toLowerCase().split(', ');
const lowerCase = (names: readonly string[]) => [...new Set(names.map((name) => name.toLowerCase()))];

describe('a page of an allowed origin', () => {
  test('may send each header that an operation takes, and read each that one answers', async ({ server }) => {
    const path = '/consumer/transfers';
    const asked = await sendRaw(server, { method: 'OPTIONS', path, lines: preflight(APP), body: undefined }, false);
    const answer = await sendRaw(server, { method: 'GET', path, lines: ['Origin', APP], body: undefined }, false);
    expect(TAKEN).toContain('Idempotency-Key');
    expect(namesIn(asked.headers['access-control-allow-headers'])).toEqual(
      expect.arrayContaining(lowerCase([...TAKEN, 'Content-Type', 'X-Request-ID'])),
    );
    expect(ANSWERED).toContain('Retry-After');
    expect(namesIn(answer.headers['access-control-expose-headers']).toSorted()).toEqual(
      lowerCase(ANSWERED.filter((name) => !UNREAD.includes(name))).toSorted(),
    );
  });

  test.for([APP, OTHER])('may ask whether it may send a transfer, from %s', async (origin, { server }) => {
    const asked = { method: 'OPTIONS', path: '/consumer/transfers', lines: preflight(origin), body: undefined };
    const { status, headers } = await sendRaw(server, asked, false);
    expect([status, headers['access-control-allow-origin']]).toEqual([204, origin]);
    expect(headers['access-control-allow-methods']).toBe('POST');
    expect(varyOf(headers)).toEqual(['Origin', 'Access-Control-Request-Method']);
    expect(headers['access-control-max-age']).toBe('600');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  test('gets Origin in Vary, so the document gives no exact value of Vary for an operation of consumers', () => {
    const described = ANSWERS.flatMap(({ headers = {} }) => headers['Vary'] ?? []);
    expect(described).not.toEqual([]);
    expect(described.filter(({ schema }) => 'const' in schema)).toEqual([]);
  });

  test('reads answers and refusals, and never with credentials of the browser', async ({ api }) => {
    const consumer = await signIn(api);
    for (const [caller, status] of [
      [consumer, 200],
      [null, 401],
    ] as const) {
      const answer = await callAs(api, caller, 'GET', '/consumer/me', undefined, { origin: APP });
      expect([answer.statusCode, answer.headers['access-control-allow-origin']]).toEqual([status, APP]);
      expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
    }
  });

  test('reads that there is no such address below /consumer/', async ({ server }) => {
    for (const path of ['/consumer/nothing', '/consumer/transfers/a/b?c=d', '/consumer/']) {
      const { status, headers } = await sendRaw(
        server,
        { method: 'GET', path, lines: ['Origin', APP], body: undefined },
        false,
      );
      expect([path, status, headers['access-control-allow-origin']]).toEqual([path, 404, APP]);
      // With a session, the browser asks before it sends.
      const asked = await sendRaw(server, { method: 'OPTIONS', path, lines: preflight(APP), body: undefined }, false);
      expect([asked.status, asked.headers['access-control-allow-methods']]).toEqual([204, 'POST']);
      const stranger = { method: 'OPTIONS', path, lines: preflight('https://evil.example'), body: undefined };
      expect(corsOf((await sendRaw(server, stranger, false)).headers)).toEqual([]);
      expect(varyOf(headers)).toContain('Origin');
    }
  });

  test('may send what an operation does not offer as little as anybody', async ({ server }) => {
    for (const method of ['DELETE', 'PATCH', 'post', 'TRACE', '']) {
      const asked = { method: 'OPTIONS', path: '/consumer/me', lines: preflight(APP, method), body: undefined };
      const { status, headers } = await sendRaw(server, asked, false);
      expect([status, headers['access-control-allow-methods']]).toEqual([405, undefined]);
    }
  });

  test.for(['/v2/settle', '/v1/orgs', '/v2/capabilities', '/health/live', '/.well-known/jwks.json', '/consumer', '/'])(
    'may not call %s',
    async (path, { server }) => {
      for (const method of ['OPTIONS', 'GET', 'POST']) {
        const asked = { method, path, lines: preflight(APP), body: method === 'POST' ? '{}' : undefined };
        const { headers } = await sendRaw(server, asked, false).catch(() => ({ headers: {} }));
        expect(corsOf(headers)).toEqual([]);
      }
    },
  );
});

describe('a page of any other origin', () => {
  test.for(STRANGERS)('gets no permission from %s', async (origin, { api, server }) => {
    const asked = { method: 'OPTIONS', path: '/consumer/transfers', body: undefined };
    const { status, headers } = await sendRaw(server, { ...asked, lines: preflight(origin) }, false);
    expect([status, corsOf(headers)]).toEqual([405, []]);
    const answer = await api.call(null, 'GET', '/consumer/me', undefined, { origin });
    expect([answer.statusCode, corsOf(answer.headers)]).toEqual([401, []]);
    // A cache between must not give this answer to an allowed origin.
    expect(varyOf(answer.headers)).toContain('Origin');
  });

  test('gets none when it sends the allowed origin together with its own', async ({ server }) => {
    for (const origins of [
      [APP, 'https://evil.example'],
      ['https://evil.example', APP],
      [APP, APP],
    ]) {
      const lines = [...preflight(APP).slice(2), ...origins.flatMap((origin) => ['Origin', origin])];
      const asked = { method: 'OPTIONS', path: '/consumer/transfers', lines, body: undefined };
      const { status, headers } = await sendRaw(server, asked, false);
      expect([status, corsOf(headers)]).toEqual([405, []]);
    }
  });

  test('gets none where no origin is configured', async ({ closed }) => {
    const answer = await closed.call(null, 'GET', '/consumer/me', undefined, { origin: APP });
    expect([answer.statusCode, corsOf(answer.headers)]).toEqual([401, []]);
  });
});
