/** When the TypeScript client sends a request again, against a server that answers as the test says. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { test as base, beforeEach, describe, expect } from 'vitest';
import {
  type ClientOptions,
  ConnectionFailed,
  createClient,
  createConsumerClient,
  isApiError,
  type Retry,
  UnexpectedAnswer,
  WaitTimeout,
} from '../../../clients/typescript/index.ts';
import { backoffMs, connectionFault, limitAttempt, retryAfterSeconds } from '../../../clients/typescript/retry.ts';
import { queryText } from '../../../clients/typescript/transport.ts';
import { freePort } from '../../../scripts/stack/port.ts';
import { opening } from '../../support/fixture.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { startHttpServer } from '../../support/http-server.ts';
import { stretched } from '../../support/patience.ts';
import { readSource } from '../../support/source.ts';

type Asked = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};
type Answer = (response: ServerResponse) => void;

const asked: Asked[] = [];
let answers: Answer[] = [];
let retries: Retry[] = [];

beforeEach(() => {
  asked.length = 0;
  answers = [];
  retries = [];
});

const test = base
  .extend(
    'server',
    opening(
      () =>
        startHttpServer((response, { method, path: url, headers, body }) => {
          asked.push({ method, url, headers, body: body.toString() });
          (answers.shift() ?? json(200, { settlement_id: 'stl_1', status: 'settled' }))(response);
        }),
      (server) => server.close(),
    ),
  )
  .extend('baseUrl', ({ server }) => server.url)
  .extend('open', ({ baseUrl }) => (options: Partial<ClientOptions> = {}) => {
    const onRetry = (retry: Retry) => void retries.push(retry);
    return createClient({ baseUrl, apiKey: 'sk_local_x', onRetry, ...options });
  });

const errorOf = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);

function failureOf(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

type Open = (options?: Partial<ClientOptions>) => ReturnType<typeof createClient>;

const json =
  (status: number, body: object, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

const problem = (status: number, code: string, headers?: Record<string, string>): Answer =>
  json(
    status,
    { type: `/problems/${code}`, title: '', status, detail: '', instance: '/', code, request_id: 'r' },
    headers,
  );

const unavailable = problem(503, 'temporarily_unavailable', { 'retry-after': '0' });
const proxyAnswers =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end('<html>');
const fromProxy = proxyAnswers(502);
const lost: Answer = (response) => response.destroy();
const half: Answer = (response) => {
  response.writeHead(200, { 'content-length': '100' });
  response.write('{"settlement_id":');
  setTimeout(() => response.destroy(), 5);
};
const silent: Answer = () => undefined;
/** In half of it, a busy machine opens a connection, and answers at once. */
const LOOK_MS = 1_000;
/** The first read of a wait. */
const accepted = json(200, { status: 'accepted' }, { etag: '"1"' });

const WIRE = {
  corridor: 'US-JM',
  amount: '1',
  recipient_id: 'r',
  payment_method: 'wire',
  payout_rail: 'bank_transfer',
} as const;

describe('is sent again, with the same key and bytes:', () => {
  test.for([
    ['503 temporarily_unavailable', unavailable],
    ['429', problem(429, 'rate_limited', { 'retry-after': '0' })],
    ["a proxy's 502", fromProxy],
    ["a proxy's 503", proxyAnswers(503)],
    ["a proxy's 504", proxyAnswers(504)],
    ['a lost connection', lost],
    ['half an answer', half],
  ] as const)('a creation after %s', async ([, answer], { open }) => {
    answers = [answer, answer];
    const intent = open().settlements.prepare(WIRE);
    expect((await open().settlements.create(intent)).settlement_id).toBe('stl_1');
    expect(asked).toHaveLength(3);
    expect(new Set(asked.map(({ headers }) => headers['idempotency-key']))).toEqual(new Set([intent.idempotency_key]));
    expect(new Set(asked.map(({ body }) => body))).toEqual(new Set([JSON.stringify(WIRE)]));
    expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  test('a read, a cancellation and a deactivation after a lost connection', async ({ open }) => {
    answers = [lost];
    await open().settlements.get('stl_1');
    answers = [lost];
    await open().settlements.cancel('stl_1');
    answers = [lost];
    await open().recipients.deactivate('r');
    expect(asked.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST', 'POST', 'DELETE', 'DELETE']);
  });

  test("a rotation of a secret and a consumer's recipient, each with one key", async ({ open, baseUrl }) => {
    const consumer = createConsumerClient({ baseUrl, accessToken: 't' });
    const person = { entity_type: 'individual', name: 'Marcia Brown', country: 'JM' } as const;
    for (const act of [() => open().webhooks.rotateSecret('w'), () => consumer.recipients.create(person)]) {
      asked.length = 0;
      answers = [lost, unavailable];
      await act();
      expect(asked).toHaveLength(3);
      const keys = new Set(asked.map(({ headers }) => headers['idempotency-key']));
      expect([...keys]).toEqual([expect.any(String)]);
    }
  });

  test('an attempt without an answer in time', async ({ open }) => {
    answers = [silent];
    await open({ attemptTimeoutMs: stretched(500) }).settlements.get('stl_1');
    expect(asked).toHaveLength(2);
  });
});

test('an option that is undefined has its default', async ({ open }) => {
  answers = [lost];
  const none = { timeoutMs: undefined, attemptTimeoutMs: undefined, attemptsMax: undefined };
  await open(none as unknown as Partial<ClientOptions>).settlements.get('stl_1');
  expect(asked).toHaveLength(2);
});

test('a command by `request` is repeated if it has a key, and has at least the time of its attempt', async ({
  open,
}) => {
  const path = { webhook_id: 'w' };
  answers = [lost];
  const idempotencyKey = 'order-2026-11-22-0001';
  await open().request('POST', '/v1/webhooks/{webhook_id}/rotate-secret', { path, idempotencyKey });
  expect(asked.map(({ headers }) => headers['idempotency-key'])).toEqual(Array(2).fill('order-2026-11-22-0001'));
  answers = [(response) => void setTimeout(() => json(200, {})(response), 150)];
  await open({ timeoutMs: 50 }).request('GET', '/v1/webhooks/{webhook_id}', { path, attemptTimeoutMs: 10_000 });
});

test('the first 0 objects of a list need no request', async ({ open }) => {
  expect(await open().settlements.list().first(0)).toEqual([]);
  expect(asked).toEqual([]);
});

describe('no second request is sent', () => {
  test('a command without a key, unless nothing was done', async ({ open }) => {
    const client = open();
    for (const answer of [unavailable, fromProxy, lost]) {
      answers = [answer];
      await expect(client.webhooks.sendTestEvent('w')).rejects.toThrow();
    }
    expect(asked).toHaveLength(3);
    answers = [problem(429, 'rate_limited', { 'retry-after': '0' })];
    await client.webhooks.sendTestEvent('w');
    expect(asked).toHaveLength(5);
  });

  test.for([
    [503, 'launch_gates_closed'],
    [503, 'local_sandbox_only'],
    [502, 'remote_environment'],
    [409, 'state_conflict'],
    [500, 'internal_error'],
    [429, 'quota_exceeded'],
  ] as const)('a creation after %i %s', async ([status, code], { open }) => {
    answers = [problem(status, code)];
    const refused = await errorOf(open().settlements.create(WIRE));
    expect(isApiError(refused, code)).toBe(true);
    expect(asked).toHaveLength(1);
  });

  test('a 404 names the field of the body that has the unknown id', async ({ open }) => {
    const body = { code: 'not_found', status: 404, request_id: 'r', field: 'recipient_id' };
    answers = [json(404, body)];
    const refused = await errorOf(open().settlements.create(WIRE));
    if (!isApiError(refused, 'not_found')) throw refused;
    const field: string | undefined = refused.problem.field;
    expect(field).toBe('recipient_id');
  });

  test('a redirect is not followed, so that no key goes elsewhere', async ({ open, baseUrl }) => {
    answers = [(response) => response.writeHead(302, { location: `${baseUrl}/elsewhere` }).end()];
    await expect(open().settlements.get('stl_1')).rejects.toThrow(UnexpectedAnswer);
    expect(asked).toHaveLength(1);
  });

  test('a Retry-After longer than the bound ends the call', async ({ open }) => {
    answers = [problem(429, 'rate_limited', { 'retry-after': '31' })];
    const refused = await errorOf(open().settlements.get('stl_1'));
    if (!isApiError(refused, 'rate_limited')) throw refused;
    expect(refused.retryAfterSeconds).toBe(31);
    expect(asked).toHaveLength(1);
  });

  test("a proxy's Retry-After longer than the bound ends the call too", async ({ open }) => {
    answers = [proxyAnswers(503, { 'retry-after': '31' })];
    await expect(open().settlements.get('stl_1')).rejects.toThrow(UnexpectedAnswer);
    expect(asked).toHaveLength(1);
  });

  test.for([
    ['of the API', problem(429, 'rate_limited', { 'retry-after': '30' })],
    ['of a proxy', proxyAnswers(503, { 'retry-after': '30' })],
  ] as const)('before a Retry-After %s of exactly the bound is over', async ([, answer], { open }) => {
    answers = [answer];
    const caller = new AbortController();
    const reason = new Error('the caller has seen that it is waited for');
    const client = open({ onRetry: ({ waitMs }) => waitMs >= 30_000 && caller.abort(reason) });
    await expect(client.settlements.get('stl_1', { signal: caller.signal })).rejects.toBe(reason);
    expect(asked).toHaveLength(1);
  });

  test('the time of the call and the number of attempts are limits', async ({ open }) => {
    answers = Array.from({ length: 20 }, () => lost);
    const failed = await errorOf(open({ attemptsMax: 3 }).settlements.create(WIRE));
    expect(failed).toBeInstanceOf(ConnectionFailed);
    expect(failed).toMatchObject({ reason: 'connection_lost', intent: { path: '/v2/settle' } });
    expect(asked).toHaveLength(3);
    await expect(open({ timeoutMs: 30 }).settlements.get('stl_1')).rejects.toThrow(ConnectionFailed);
    // On a slow machine, the time may be over before the first attempt.
    expect(asked.length).toBeLessThanOrEqual(4);
    const startedMs = performance.now();
    // A late request of the previous call may take one of them.
    answers = Array.from({ length: 20 }, () => silent);
    await expect(open().settlements.get('stl_1', { timeoutMs: 50 })).rejects.toThrow('did not answer in time');
    expect(performance.now() - startedMs).toBeLessThan(stretched(10_000));
  });

  test.for([Number.POSITIVE_INFINITY, 2 ** 31])(
    'a limit that no timer has is none: %s ms',
    async (limitMs, { open }) => {
      answers = [(response) => void setTimeout(() => json(200, { status: 'settled' })(response), 50)];
      const limits = { timeoutMs: limitMs, attemptTimeoutMs: limitMs, connectTimeoutMs: limitMs };
      expect((await open(limits).settlements.get('stl_1')).status).toBe('settled');
      expect(asked).toHaveLength(1);
    },
  );

  test('a call leaves nothing at a signal that lives as long as the program', async ({ open }) => {
    const { signal } = new AbortController();
    const { settlements } = open({ fetch: async () => Response.json({ status: 'settled' }) });
    const bytesAfter = async (calls: number): Promise<number> => {
      for (let call = 0; call < calls; call += 1) await settlements.get('stl_1', { signal });
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    let before = await bytesAfter(500);
    const grown: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const after = await bytesAfter(2_000);
      grown.push(after - before);
      before = after;
    }
    // What calls leave grows in every round; what V8 compiles meanwhile, in one.
    expect(Math.min(...grown)).toBeLessThan(500_000);
  });

  test('many calls at once may share a signal, without a warning of a leak', async ({ open, onTestFinished }) => {
    const warnings: string[] = [];
    const listener = ({ name }: Error) => void warnings.push(name);
    process.on('warning', listener);
    onTestFinished(() => void process.off('warning', listener));
    const { signal } = new AbortController();
    const { settlements } = open({ fetch: async () => Response.json({ status: 'settled' }) });
    await Promise.all(Array.from({ length: 20 }, () => settlements.get('stl_1', { signal })));
    await setImmediate();
    expect(warnings).toEqual([]);
  });

  test('a call that the caller has ended stays ended', async ({ open }) => {
    const caller = new AbortController();
    answers = [() => caller.abort(new Error('the caller has ended it'))];
    await expect(open().settlements.get('stl_1', { signal: caller.signal })).rejects.toThrow('the caller has ended it');
    expect(asked).toHaveLength(1);
  });

  test.for([
    ['a creation', problem(503, 'temporarily_unavailable', { 'retry-after': '20' })],
    ['a wait', json(200, { status: 'accepted' }, { 'retry-after': '20' })],
  ] as const)(
    "%s that the caller ends between two requests throws the caller's reason",
    async ([what, answer], { open }) => {
      const { settlements } = open();
      const caller = new AbortController();
      const reason = new Error('the caller has ended it');
      answers = [
        (response) => {
          answer(response);
          setTimeout(() => caller.abort(reason), 100);
        },
        json(200, { status: 'accepted' }, { 'retry-after': '20' }),
      ];
      const options = { signal: caller.signal };
      const call = what === 'a wait' ? settlements.wait('stl_1', options) : settlements.create(WIRE, options);
      await expect(call).rejects.toBe(reason);
    },
  );
});

test('an attempt that begins after its signal was aborted is aborted for the same reason', () => {
  const limit = limitAttempt([undefined, AbortSignal.abort('the host is silent')], 10_000);
  expect([limit.signal.aborted, limit.signal.reason, limit.isLate()]).toEqual([true, 'the host is silent', false]);
  limit.release();
});

test('a call that was answered opens no connection to look for its host', async ({ onTestFinished }) => {
  let connections = 0;
  const server = createServer((_request, response) => response.end('{"status":"settled"}'));
  server.on('connection', () => {
    connections += 1;
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, connectTimeoutMs: LOOK_MS });
  await client.settlements.get('stl_1');
  await delay(LOOK_MS);
  expect(connections).toBe(1);
});

test.for(['@evil.invalid/v2/settle', '.evil.invalid/v2/settle', 'v2/settle', ''])(
  'a stored intent whose path would lead to another host is refused before the key is sent: %j',
  async (path, { open }) => {
    const urls: unknown[] = [];
    const client = open({
      fetch: async (url) => {
        urls.push(url);
        return Response.json({});
      },
    });
    const intent = { ...client.settlements.prepare(WIRE), path };
    for (const act of [() => client.send(intent), () => client.settlements.create(intent)])
      await expect(act()).rejects.toThrow(TypeError);
    expect(urls).toEqual([]);
  },
);

test.for(['order-№-1042-2026', 'order-1042\n2026-11'])(
  'an idempotency key that no header can have is refused before it is sent: %j',
  async (idempotencyKey, { open }) => {
    const client = open();
    const intent = { ...client.settlements.prepare(WIRE), idempotency_key: idempotencyKey };
    for (const act of [
      () => client.settlements.create(WIRE, { idempotencyKey }),
      () => client.settlements.create(intent),
      () => client.apiKeys.rotate('k', { idempotencyKey }),
    ])
      await expect(act()).rejects.toThrow(TypeError);
    expect([asked, retries]).toEqual([[], []]);
  },
);

test('an idempotency key of anything but a POST is refused before it is sent: no other operation takes one', async ({
  open,
}) => {
  const idempotencyKey = 'order-2026-11-22-0001';
  const input = { path: { recipient_id: 'r' }, body: { name: 'Marcia Brown' }, idempotencyKey };
  // @ts-expect-error: no key.
  await expect(open().request('PUT', '/v1/recipients/{recipient_id}', input)).rejects.toThrow(TypeError);
  expect([asked, retries]).toEqual([[], []]);
});

test('an operation that knows no idempotency key refuses one by its type', async ({ open }) => {
  const { request } = open();
  const idempotencyKey = 'order-2026-11-22-0001';
  const body = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
  // @ts-expect-error: a sign-up makes another organization each time.
  await request('POST', '/v1/orgs', { body, idempotencyKey });
  // @ts-expect-error: a test event is sent each time.
  await request('POST', '/v1/webhooks/{webhook_id}/test', { path: { webhook_id: 'w' }, idempotencyKey });
  await request('POST', '/v2/settle', { body: WIRE, idempotencyKey });
  await request('POST', '/v1/orgs/keys/{key_id}/rotate', { path: { key_id: 'k' }, idempotencyKey });
  expect(asked).toHaveLength(4);
});

test('an invalid date is refused before it is sent', async ({ open }) => {
  const created_from = new Date('yesterday') as unknown as string;
  await expect(open().settlements.list({ created_from }).first(1)).rejects.toThrow(RangeError);
  expect([asked, retries]).toEqual([[], []]);
});

test.for([
  ['page', '<html>Sign in</html>'],
  ['empty answer', ''],
] as const)("a proxy's %s in place of a creation's answer is an error with the intent", async ([, text], { open }) => {
  answers = [(response) => response.writeHead(200).end(text)];
  const failed = open().settlements.create(WIRE);
  await expect(failed).rejects.toMatchObject({ name: 'UnexpectedAnswer', intent: { body: JSON.stringify(WIRE) } });
});

test.for([[['amount is not valid']], [[null]], [[{ msg: 'not valid' }]], [[{ loc: 'amount', msg: 'not valid' }]]])(
  "another program's 422 is told apart, and not repeated: %j",
  async ([detail], { open }) => {
    answers = [json(422, { detail })];
    await expect(open().settlements.create(WIRE)).rejects.toMatchObject({ name: 'UnexpectedAnswer', status: 422 });
    expect(asked).toHaveLength(1);
  },
);

test('a certificate without its signature is refused: stored, it could never be verified', async ({
  open,
  baseUrl,
}) => {
  const consumer = createConsumerClient({ baseUrl });
  for (const download of [() => open().certificates.download('c'), () => consumer.transfers.certificate('t')]) {
    answers = [json(200, { settlement_id: 'stl_1' })];
    await expect(download()).rejects.toThrow(UnexpectedAnswer);
    answers = [json(200, { settlement_id: 'stl_1' }, { 'X-Certificate-Signature': 'a..b' })];
    expect(await download()).toMatchObject({ signature: 'a..b', certificate: { settlement_id: 'stl_1' } });
  }
});

test('an answer that is not a signed file is refused: stored, it could never be verified', async ({
  open,
  baseUrl,
}) => {
  const consumer = createConsumerClient({ baseUrl });
  const signed = { payload: '{}', protected: 'a', signature: 'b' };
  for (const download of [
    () => open().certificates.downloadSigned('c'),
    () => consumer.transfers.signedCertificate('t'),
  ]) {
    answers = [json(200, { settlement_id: 'stl_1' })];
    await expect(download()).rejects.toThrow(UnexpectedAnswer);
    answers = [json(200, signed)];
    expect(Buffer.from((await download()).file).toString()).toBe(JSON.stringify(signed));
  }
});

test.for([
  [404, { status: 404, request_id: 'r' }],
  [404, { code: 'not_found', request_id: 'r' }],
  [404, { code: 'x', status: 404 }],
  [404, { code: 404, status: 404, request_id: 'r' }],
  [404, { detail: [] }],
  [422, { detail: 'Unprocessable' }],
  [404, null],
  [404, 1],
] as const)(
  'JSON that lacks what every problem of the API has is an unexpected answer: %i %j',
  async ([status, body], { open }) => {
    answers = [(response) => response.writeHead(status).end(JSON.stringify(body))];
    await expect(open().settlements.get('stl_1')).rejects.toThrow(UnexpectedAnswer);
  },
);

describe('an error says whether the API may have carried out any attempt of the call:', () => {
  const refused = () => {
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) });
  };
  const reset = () => {
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) });
  };
  const answered = (status: number, code?: string, headers: Record<string, string> = {}) => {
    const body = code === 'validation' ? { detail: [] } : { code, status, request_id: 'r' };
    return () => new Response(code === undefined ? '<html>' : JSON.stringify(body), { status, headers });
  };
  const untilRefused = answered(429, 'rate_limited', { 'retry-after': '31' });
  /** The error of a creation whose attempts end so. */
  const failedAfter = async (open: Open, ...outcomes: (() => Response)[]): Promise<unknown> => {
    const next = async () => (outcomes.shift() ?? refused)();
    const client = open({ fetch: next, attemptsMax: outcomes.length });
    return await errorOf(client.settlements.create(WIRE));
  };

  test.for([
    ['a lost connection', reset],
    ['503 temporarily_unavailable', answered(503, 'temporarily_unavailable', { 'retry-after': '0' })],
    ["a proxy's 502", answered(502)],
    ["a proxy's 504", answered(504)],
  ] as const)('%s stays so after connections that are refused', async ([, first], { open }) => {
    const failed = await failedAfter(open, first, refused, refused);
    expect(failed).toMatchObject({ maybeDone: true, reason: 'connection_lost', intent: { path: '/v2/settle' } });
    expect(String(failed)).not.toContain('nothing was sent');
    expect(String(failed)).toContain('may have carried out an earlier attempt');
  });

  test.for([
    ['refused connections', [refused, refused], false],
    ['429 and then refused connections', [answered(429, 'rate_limited', { 'retry-after': '0' }), refused], false],
    ['429', [untilRefused], false],
    ['a lost connection and then 429', [reset, untilRefused], true],
    ['a lost connection and then 403', [reset, answered(403, 'organization_suspended')], true],
    ['403', [answered(403, 'organization_suspended')], false],
    ['422', [answered(422, 'validation')], false],
    ['503 launch_gates_closed', [answered(503, 'launch_gates_closed')], false],
    ['500', [answered(500, 'internal_error')], true],
    ['a code of 5xx that is not known yet', [answered(503, 'new_one')], true],
    ["another program's page", [answered(404)], true],
    ["another program's page in place of the answer", [answered(200)], true],
  ] as const)('%s', async ([, outcomes, maybeDone], { open }) => {
    expect(await failedAfter(open, ...outcomes)).toMatchObject({ maybeDone });
  });
});

test('an error without a connection says that nothing was sent', async ({ open }) => {
  const client = open({ baseUrl: `http://127.0.0.1:${await freePort()}`, attemptsMax: 2 });
  await expect(client.webhooks.sendTestEvent('w')).rejects.toMatchObject({ reason: 'not_connected' });
  expect(retries).toHaveLength(1);
});

test('an error about the certificate of the host says that nothing was sent', async ({ open, onTestFinished }) => {
  const [key, cert] = ['key', 'crt'].map((part) => readSource(`test/fixtures/partner.${part}.pem`));
  const host = createSecureServer({ key, cert }).listen(0, '127.0.0.1');
  onTestFinished(() => void host.close());
  await once(host, 'listening');
  const { port } = host.address() as AddressInfo;
  const client = open({ baseUrl: `https://127.0.0.1:${port}`, attemptsMax: 1 });
  await expect(client.webhooks.sendTestEvent('w')).rejects.toMatchObject({
    reason: 'not_connected',
    maybeDone: false,
    message: `There was no connection to https://127.0.0.1:${port}; nothing was sent.`,
  });
});

/** The address of a listener whose queue is full: it answers no connection, and refuses none. */
async function listenWithoutAccepting(onCleanup: (end: () => void) => void): Promise<string> {
  const worker = new Worker(
    `const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      require('node:worker_threads').parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`,
    { eval: true },
  );
  onCleanup(() => void worker.terminate());
  const [port] = await once(worker, 'message');
  for (let filled = 0; filled < 2; filled += 1) {
    const socket = connect(port, '127.0.0.1');
    onCleanup(() => void socket.destroy());
    await once(socket, 'connect');
  }
  return `http://127.0.0.1:${port}`;
}

describe('a wrong base URL', () => {
  test('that opens no connection and refuses none is named once the connect timeout is over', async ({
    open,
    onTestFinished,
  }) => {
    const baseUrl = await listenWithoutAccepting(onTestFinished);
    const startedMs = performance.now();
    const failed = await errorOf(open({ baseUrl, connectTimeoutMs: 200 }).settlements.create(WIRE));
    expect(String(failed)).toContain(`no connection to ${baseUrl} within 0.2 s`);
    expect(failed).toMatchObject({ name: 'ConnectTimeout', intent: { path: '/v2/settle' } });
    expect(performance.now() - startedMs).toBeLessThan(stretched(5_000));
    expect(retries).toEqual([]);
  });

  test('is not named while no connect timeout is set', async ({ open, onTestFinished }) => {
    const baseUrl = await listenWithoutAccepting(onTestFinished);
    const signal = AbortSignal.timeout(200);
    const client = open({ baseUrl, connectTimeoutMs: Number.POSITIVE_INFINITY });
    await expect(client.settlements.get('stl_1', { signal })).rejects.toThrow('aborted due to timeout');
  });

  test('is not what an API is that opens connections and answers late', async ({ open }) => {
    answers = [(response) => void setTimeout(() => json(200, { status: 'settled' })(response), 1.5 * LOOK_MS)];
    const settlement = await open({ connectTimeoutMs: LOOK_MS }).settlements.get('stl_1');
    expect(settlement.status).toBe('settled');
    expect(asked).toHaveLength(1);
  });

  test("is not the address of a fetch of one's own, which goes by its own way", async ({
    open,
    baseUrl,
    onTestFinished,
  }) => {
    answers = [(response) => void setTimeout(() => json(200, { status: 'settled' })(response), 300)];
    const client = open({
      baseUrl: await listenWithoutAccepting(onTestFinished),
      connectTimeoutMs: 100,
      fetch: (_url, init) => fetch(baseUrl, init),
    });
    expect((await client.settlements.get('stl_1')).status).toBe('settled');
  });

  test('is named by an error after three attempts, within a second', async ({ open }) => {
    const baseUrl = `http://127.0.0.1:${await freePort()}`;
    await expect(open({ baseUrl }).settlements.get('stl_1')).rejects.toThrow(`no connection to ${baseUrl}; nothing`);
    expect(retries).toHaveLength(2);
    expect(retries.reduce((sum, { waitMs }) => sum + waitMs, 0)).toBeLessThan(1_000);
  });

  test.for([
    ['an unknown host', 'ENOTFOUND', 'no connection to https://settlement.invalid'],
    ['a port without TLS', 'ERR_SSL_WRONG_VERSION_NUMBER', 'connection to https://settlement.invalid ended'],
  ] as const)('is named after three attempts for %s', async ([, code, words], { open }) => {
    const failing = () => Promise.reject(new TypeError('', { cause: Object.assign(new Error(code), { code }) }));
    const client = open({ baseUrl: 'https://settlement.invalid', fetch: failing });
    await expect(client.settlements.get('stl_1')).rejects.toThrow(words);
    expect(retries).toHaveLength(2);
  });

  test.for(['api.example.com', 'https://', 'https://user:secret@api.example.com', 'https://api.example.com?a=b'])(
    'is refused before a request: %s',
    (baseUrl, { open }) => {
      expect(() => open({ baseUrl })).toThrow(TypeError);
    },
  );

  test('is none with letters beyond ASCII, also when thousands have been checked', ({ open }) => {
    for (let count = 0; count < 6_000; count += 1) open({ baseUrl: 'https://b\u00fccher.example' });
  });

  test.for(['http://api.example.com', 'http://10.0.0.1:3000', 'http://127.0.0.1.example.com', 'http://[::2]'])(
    'over which a key could be read on its way is refused: %s',
    (baseUrl, { open }) => {
      expect(() => open({ baseUrl })).toThrow('baseUrl must be https');
    },
  );

  test.for(['http://localhost:3000', 'http://127.0.0.2', 'http://[::1]:3000', 'https://api.example.com/v'])(
    'is not %s',
    (baseUrl, { open }) => {
      expect(() => open({ baseUrl })).not.toThrow();
    },
  );
});

test.for(['sk_local_se\ncret', 'sk_local_se\u2013cret', 'sk_local_se cret'])(
  'a text that no credential can be is refused before a request, and is in no error: %j',
  (secret, { open, baseUrl }) => {
    for (const act of [() => open({ apiKey: secret }), () => createConsumerClient({ baseUrl, accessToken: secret })]) {
      const refused = failureOf(act);
      expect(refused).toBeInstanceOf(TypeError);
      expect(inspect(refused)).not.toContain('cret');
    }
  },
);

test('a key that was read from a file with a last newline is sent without it', async ({ open }) => {
  await open({ apiKey: 'sk_local_x\n' }).settlements.get('stl_1');
  expect(asked[0]?.headers['x-api-key']).toBe('sk_local_x');
});

test('an address that has answered once is tried as often as the limits say', async ({ open }) => {
  answers = [unavailable, lost, lost, lost];
  expect((await open().settlements.create(WIRE)).settlement_id).toBe('stl_1');
  expect(asked).toHaveLength(5);
});

test.for(['', '.', '..'])(
  'an id that would lead to another path is refused before it is sent: %j',
  async (id, { open }) => {
    const client = open();
    for (const act of [
      () => client.settlements.cancel(id),
      () => client.webhooks.redeliver('w', id),
      () => client.webhooks.deliveries(id).first(1),
      () => client.certificates.download(id),
    ])
      await expect(act()).rejects.toThrow(TypeError);
    expect(asked).toEqual([]);
  },
);

test('values stay in their segment of the path, and filters are written as the API reads them', async ({ open }) => {
  await open().settlements.get('a/../b?c');
  expect(asked[0]?.url).toBe('/v2/settle/a%2F..%2Fb%3Fc');
  const none = { reference: undefined, corridor: null };
  expect(queryText({ status: ['settled', 'failed'], metadata: { batch: 'a&b' }, limit: 2, ...none })).toBe(
    '?status=settled&status=failed&metadata%5Bbatch%5D=a%26b&limit=2',
  );
  expect(queryText({ created_from: new Date('2026-11-22T08:00:00Z') })).toBe(
    '?created_from=2026-11-22T08%3A00%3A00.000Z',
  );
});

test('the own key and the usage are read with the organization', async ({ open }) => {
  await open().organizations.me();
  await open().organizations.usage({ from: '2026-11-01', to: '2026-11-22' });
  expect(asked.map(({ url }) => url)).toEqual(['/v1/me', '/v1/usage?from=2026-11-01&to=2026-11-22']);
});

test('the key goes to the base URL only, whatever Link says', async ({ open, baseUrl }) => {
  answers = [
    json(200, [{}], { link: '<http://evil.invalid/v2/settlements?after=c&status=a&status=b>; rel="next"' }),
    json(200, [{}]),
  ];
  expect(
    await open({ baseUrl: `${baseUrl}/` })
      .settlements.list()
      .first(5),
  ).toHaveLength(2);
  expect(asked.map(({ url }) => url)).toEqual(['/v2/settlements', '/v2/settlements?after=c&status=a&status=b']);
});

test('a list ends with an error when each answer is the same page, as of a cache that ignores the query', async ({
  open,
}) => {
  answers = Array.from({ length: 9 }, () => json(200, [{}], { link: '</v2/settlements?after=c>; rel="next"' }));
  await expect(open().settlements.list().first(5)).rejects.toThrow(UnexpectedAnswer);
  expect(asked).toHaveLength(2);
});

test('a list ends with an error when an answer is no list, as of a proxy', async ({ open }) => {
  answers = [json(200, { message: 'Signed in.' })];
  await expect(open().settlements.list().first(5)).rejects.toThrow(UnexpectedAnswer);
});

test.for(['"ok"', 'null', '1'])(
  'a 2xx with the JSON %s is unexpected, and the creation may be done',
  async (text, { open }) => {
    answers = [(response) => response.writeHead(202).end(text)];
    const failed = errorOf(open().settlements.create(WIRE));
    await expect(failed).resolves.toMatchObject({ name: 'UnexpectedAnswer', maybeDone: true });
  },
);

describe('a wait', () => {
  const HELD = { 'preference-applied': 'wait=1' };
  const preferred = () => asked.map(({ headers }) => headers['prefer']);

  test('names the last answer in each read, which the API may hold as long as it can', async ({ open }) => {
    answers = [
      accepted,
      (response) => response.writeHead(304, { etag: '"1"', ...HELD }).end(),
      json(200, { status: 'funded' }, { etag: '"2"', ...HELD }),
      json(200, { status: 'paying_out' }, { etag: '"3"', ...HELD }),
    ];
    expect((await open().settlements.wait('stl_1', { until: ['paying_out'] })).status).toBe('paying_out');
    expect(asked.map(({ headers }) => [headers['if-none-match'], headers['prefer']])).toEqual([
      [undefined, undefined],
      ['"1"', 'wait=30'],
      ['"1"', 'wait=30'],
      ['"2"', 'wait=30'],
    ]);
  });

  test('has the object as it was read last, when nothing has changed until the time is over', async ({ open }) => {
    const unchanged: Answer = (response) =>
      void setTimeout(() => response.writeHead(304, { etag: '"1"', ...HELD }).end(), 60);
    answers = [accepted, unchanged, unchanged];
    const late = open().settlements.wait('stl_1', { timeoutMs: 100 });
    await expect(late).rejects.toMatchObject({ latest: { status: 'accepted' } });
  });

  test('holds shortly where an answer has no ETag', async ({ open }) => {
    answers = [json(200, { status: 'accepted' }), json(200, { status: 'accepted' }, HELD)];
    await open().settlements.wait('stl_1');
    expect(preferred()).toEqual([undefined, 'wait=1', 'wait=1']);
  });

  test('ends for a status that was passed between two reads', async ({ open }) => {
    const passed = { status: 'paying_out', timeline: [{ status: 'funded' }, { status: 'paying_out' }] };
    answers = [accepted, json(200, passed, { etag: '"2"', ...HELD })];
    expect((await open().settlements.wait('stl_1', { until: ['funded'] })).status).toBe('paying_out');
  });

  test.for([
    ['503 temporarily_unavailable', problem(503, 'temporarily_unavailable')],
    ['429 for longer than that', problem(429, 'rate_limited', { 'retry-after': '31' })],
    ['nothing', silent],
  ] as const)('ends in time also when the API answers %s', async ([, answer], { open }) => {
    answers = [accepted, ...Array.from({ length: 40 }, () => answer)];
    const startedMs = performance.now();
    const late = open().settlements.wait('stl_1', { timeoutMs: 1_000 });
    await expect(late).rejects.toMatchObject({ name: 'WaitTimeout', latest: { status: 'accepted' } });
    // Less than an attempt has, and than the refusal asks for.
    expect(performance.now() - startedMs).toBeLessThan(stretched(10_000));
  });

  test.for([
    ['503', unavailable],
    ['a lost connection', lost],
  ] as const)('goes on after an outage that is longer than the limits of a call: %s', async ([, answer], { open }) => {
    answers = [accepted, ...Array.from({ length: 3 }, () => answer)];
    const settlement = await open({ attemptsMax: 2, timeoutMs: 100 }).settlements.wait('stl_1');
    expect(settlement.status).toBe('settled');
    expect(asked).toHaveLength(5);
  });

  test.for([
    ['404', problem(404, 'not_found')],
    ["a proxy's 403", (response: ServerResponse) => response.writeHead(403).end('<html>')],
  ] as const)('ends at once for what does not pass by waiting: %s', async ([, answer], { open }) => {
    answers = [accepted, answer];
    await expect(open().settlements.wait('stl_1')).rejects.toThrow(/^(404|The answer 403)/);
    expect(asked).toHaveLength(2);
  });

  test('that is over shows nothing of the object in a log', async ({ open }) => {
    answers = [json(200, { status: 'accepted', payee: { name: 'Marcia Brown' } })];
    const late = await errorOf(open().settlements.wait('stl_1', { timeoutMs: 0 }));
    expect(late).toMatchObject({ latest: { payee: { name: 'Marcia Brown' } } });
    expect(inspect(late, { depth: 10 }) + JSON.stringify(late)).not.toContain('Marcia');
  });

  test('without any answer fails as its read failed', async ({ open }) => {
    answers = [problem(503, 'temporarily_unavailable')];
    const failed = await errorOf(open({ attemptsMax: 1 }).settlements.wait('stl_1', { timeoutMs: 50 }));
    expect(isApiError(failed, 'temporarily_unavailable')).toBe(true);
  });

  test('pauses between its reads once the object has ended, because the API holds none of them', async ({ open }) => {
    const ended = json(200, { status: 'settled' }, { etag: '"1"', ...HELD });
    answers = Array.from({ length: 40 }, () => ended);
    const late = open().settlements.wait('stl_1', { until: () => false, timeoutMs: 1_500 });
    await expect(late).rejects.toThrow(WaitTimeout);
    expect(asked.length).toBeLessThan(5);
  });

  test('pauses when the API holds no read, and ends in time', async ({ open }) => {
    const soon = { 'retry-after': '1' };
    answers = Array.from({ length: 9 }, () => json(200, { status: 'accepted' }, soon));
    await expect(open().settlements.wait('stl_1', { timeoutMs: 1_500 })).rejects.toThrow(WaitTimeout);
    expect(asked.length).toBeLessThan(4);
  });
});

test('waits grow to a bound, are random, and never undercut Retry-After', () => {
  expect([1, 2, 3, 7, 20].map((attempt) => backoffMs(attempt, undefined, () => 1))).toEqual([
    100, 200, 400, 5_000, 5_000,
  ]);
  expect(backoffMs(3, undefined, () => 0)).toBe(200);
  expect(backoffMs(1, 2, () => 0)).toBe(2_000);
  // Clients with the same Retry-After do not all come back at once.
  expect(backoffMs(1, 2, () => 1)).toBe(2_250);
});

test.for([
  ['7', 7],
  ['Sun, 22 Nov 2026 08:00:05 GMT', 5],
  ['Sun, 22 Nov 2026 07:59:00 GMT', 0],
  ['soon', undefined],
  ['-1x', undefined],
  ['1e9', undefined],
  // `Date.parse` takes these for days of 2001.
  ['1.5', undefined],
  ['-1', undefined],
] as const)('Retry-After is read as seconds or as a date: %s', ([header, seconds]) => {
  expect(retryAfterSeconds(header, Date.parse('2026-11-22T08:00:00Z'))).toBe(seconds);
});

test.for([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].map(
    (code) => [code, 'not_connected'] as const,
  ),
  ...[
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  ].map((code) => [code, 'not_connected'] as const),
  // The last one comes from a host that wants a certificate of the client, after the request was sent.
  ...[
    'ECONNRESET',
    'EPIPE',
    'UND_ERR_SOCKET',
    'UND_ERR_HEADERS_TIMEOUT',
    'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
  ].map((code) => [code, 'connection_lost'] as const),
])('after %s the request is %s', ([code, fault]) => {
  const cause = Object.assign(new Error(code), { code });
  expect(connectionFault(new TypeError('fetch failed', { cause }))).toBe(fault);
});
