/** Sealed payloads, and the server that opens them for Temporal UI: whom it answers and whom it refuses. */
import { randomBytes } from 'node:crypto';
import { ApplicationFailure, type Payload } from '@temporalio/common';
import { payloadToJSON } from '@temporalio/common/lib/proto-utils.js';
import { describe, expect, test } from 'vitest';
import { type Address, buildCodec, type CodecOptions, codecProgram } from '../../ops/codec.ts';
import { runProgram } from '../../ops/command-line/program.ts';
import { createPayloadCodec } from '../../process/payload-codec.ts';
import { words } from '../support/words.ts';

const newKey = (id: string) => ({ id, key: randomBytes(32) });
const [OLD, NEW] = [newKey('key-1'), newKey('key-2')];
const codec = createPayloadCodec([OLD]);
const plain = (value: unknown): Payload => ({
  metadata: { encoding: Buffer.from('json/plain') },
  data: Buffer.from(JSON.stringify(value)),
});
const SECRET = 'stl_planted_0123456789';

async function sealedSecret(): Promise<{ metadata: Record<string, Uint8Array>; data: Uint8Array }> {
  const [sealed] = await codec.encode([plain({ settlementId: SECRET })]);
  return { metadata: sealed?.metadata ?? {}, data: sealed?.data ?? Buffer.alloc(0) };
}

async function failureOf(decoding: Promise<unknown>): Promise<ApplicationFailure> {
  const error = await decoding.catch((thrown: unknown) => thrown);
  if (!(error instanceof ApplicationFailure)) throw new Error(`not an ApplicationFailure: ${String(error)}`);
  return error;
}

describe('a payload', () => {
  test('is refused without a retry if its key is unknown, and the message has only the id of the key', async () => {
    const failure = await failureOf(createPayloadCodec([NEW]).decode([await sealedSecret()]));
    expect([failure.type, failure.nonRetryable, failure.message]).toEqual([
      'payload_key_unknown',
      true,
      'There is no payload key key-1 here.',
    ]);
  });

  test('is refused with something else in place of a key id, and the message does not repeat it', async () => {
    const { metadata, data } = await sealedSecret();
    const failure = await failureOf(
      codec.decode([{ metadata: { ...metadata, 'encryption-key-id': Buffer.from(`<b>${SECRET}</b>`) }, data }]),
    );
    expect(failure.message).toBe('There is no payload key of that id here.');
  });

  test.each([
    [
      'with a changed last byte',
      (data: Buffer) => Buffer.concat([data.subarray(0, -1), Buffer.from(data.at(-1) === 65 ? 'B' : 'A')]),
    ],
    ['that is truncated', (data: Buffer) => data.subarray(0, 20)],
    ['that is empty', () => Buffer.alloc(0)],
    ['under the id of another key', (data: Buffer) => Buffer.from(data.toString().replace('key-1.', 'key-2.'))],
  ])('%s is refused without a retry, and the message has only the id of the key', async (_what, change) => {
    const { metadata, data } = await sealedSecret();
    const failure = await failureOf(
      createPayloadCodec([OLD, { ...NEW, key: OLD.key }]).decode([{ metadata, data: change(Buffer.from(data)) }]),
    );
    expect([failure.type, failure.nonRetryable]).toEqual(['payload_altered', true]);
    expect(failure.message).toContain('key-1');
    expect(failure.message).not.toContain(SECRET);
  });

  test('sealed by another key with the same id is refused', async () => {
    expect((await failureOf(createPayloadCodec([newKey('key-1')]).decode([await sealedSecret()]))).type).toBe(
      'payload_altered',
    );
  });

  test('is sealed by the first key and opened by every key of the list; no two sealings are equal', async () => {
    const rotated = createPayloadCodec([NEW, OLD]);
    const value = plain({ settlementId: SECRET });
    expect(await rotated.decode([await sealedSecret()])).toEqual([value]);
    const [one, other] = await rotated.encode([value, value]);
    expect(Buffer.from(one?.metadata?.['encryption-key-id'] ?? []).toString()).toBe('key-2');
    expect(Buffer.from(one?.metadata?.['encoding'] ?? []).toString()).toBe('binary/encrypted');
    expect(one?.data).not.toEqual(other?.data);
    expect(await rotated.decode([one ?? {}, other ?? {}])).toEqual([value, value]);
  });

  test('is returned unchanged if it was written before encryption was on', async () => {
    expect(await codec.decode([plain('old'), {}])).toEqual([plain('old'), {}]);
  });
});

const UI = 'http://127.0.0.1:8080';
const TOKEN = 'token-of-the-codec-server-0123456789';
const server = (options: Partial<CodecOptions> = {}) =>
  buildCodec({ codec, namespace: 'settlement', origins: [UI], token: undefined, ...options });
const HEADERS = { origin: UI, 'x-namespace': 'settlement', 'content-type': 'application/json' };
const decode = (
  app: ReturnType<typeof buildCodec>,
  payload: string | object,
  headers: Record<string, string> = HEADERS,
) => app.inject({ method: 'POST', url: '/decode', headers, payload });
const sealedBody = async () => ({ payloads: [payloadToJSON(await sealedSecret())] });
const decoded = (answer: { json(): { payloads: { data: string }[] } }) =>
  Buffer.from(answer.json().payloads[0]?.data ?? '', 'base64').toString();

describe('the codec server', () => {
  test.each(
    words('http://127.0.0.1:8081 http://localhost:8080 https://127.0.0.1:8080 http://127.0.0.1:8080.evil.example null'),
  )('refuses a page of %s, its preflight and its request, and opens nothing', async (origin) => {
    const app = server();
    const preflight = await app.inject({
      method: 'OPTIONS',
      url: '/decode',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-namespace',
      },
    });
    for (const answer of [preflight, await decode(app, await sealedBody(), { ...HEADERS, origin })]) {
      expect(answer.statusCode).toBe(403);
      expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
      expect(answer.body).not.toContain('payloads');
    }
  });

  test.each([
    ['without the token', { authorization: undefined }, 401],
    ['with another token', { authorization: `Bearer ${TOKEN}x` }, 401],
    ['with the token in another scheme', { authorization: `Basic ${TOKEN}` }, 401],
    ['for another namespace', { 'x-namespace': 'default' }, 403],
    ['that is not JSON', { 'content-type': 'text/plain' }, 415],
  ])('refuses a request %s', async (_what, changes, status) => {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries({ ...HEADERS, authorization: `Bearer ${TOKEN}`, ...changes }))
      if (value !== undefined) headers[name] = value;
    const answer = await decode(server({ token: TOKEN }), JSON.stringify(await sealedBody()), headers);
    expect(answer.statusCode).toBe(status);
    expect(answer.body).not.toContain('payloads');
  });

  test.each([
    ['an invalid body', '{"payloads": [{"data": 7}]}', 400],
    ['incomplete JSON', '{"payloads": [', 400],
    ['a body of more than eight megabytes', `{"payloads": "${'x'.repeat(8 * 1024 * 1024)}"}`, 413],
  ])('refuses %s', async (_what, payload, status) => {
    expect((await decode(server(), payload)).statusCode).toBe(status);
  });

  test('answers 400 with the id of a missing key', async () => {
    const answer = await decode(server({ codec: createPayloadCodec([NEW]) }), await sealedBody());
    expect([answer.statusCode, answer.json()]).toEqual([400, { error: 'There is no payload key key-1 here.' }]);
  });

  test('answers pages of its origin that send the token and the namespace, and lets no other page read it', async () => {
    const app = server({ token: TOKEN });
    const preflight = await app.inject({
      method: 'OPTIONS',
      url: '/decode',
      headers: { origin: UI, 'access-control-request-method': 'POST' },
    });
    expect(preflight.statusCode).toBe(204);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': UI,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'authorization, content-type, x-namespace',
      vary: 'Origin',
      'cache-control': 'no-store',
    });
    const answer = await decode(app, await sealedBody(), { ...HEADERS, authorization: `Bearer ${TOKEN}` });
    expect([answer.statusCode, answer.headers['access-control-allow-origin'], decoded(answer)]).toEqual([
      200,
      UI,
      JSON.stringify({ settlementId: SECRET }),
    ]);
  });

  test('answers a program, which sends no origin and leaves out what is empty', async () => {
    const answer = await decode(server(), await sealedBody(), { 'x-namespace': '' });
    expect([answer.statusCode, decoded(answer)]).toEqual([200, JSON.stringify({ settlementId: SECRET })]);
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
    const empty = await decode(server(), {}, {});
    expect([empty.statusCode, empty.json()]).toEqual([200, { payloads: [] }]);
  });

  test('opens what it has sealed', async () => {
    const app = server();
    const sealed = await app.inject({
      method: 'POST',
      url: '/encode',
      headers: HEADERS,
      payload: { payloads: [payloadToJSON(plain({ outcome: 'paid' }))] },
    });
    expect(decoded(sealed)).toMatch(/^key-1\.[\w-]+$/);
    expect(decoded(await decode(app, sealed.json()))).toBe('{"outcome":"paid"}');
  });
});

describe('the codec command', () => {
  const keys = { TEMPORAL_PAYLOAD_KEYS: `key-1:${OLD.key.toString('base64')}` };
  /** Runs the command with a server that only notes how it was started. */
  const run = async (args: readonly string[], env: NodeJS.ProcessEnv) => {
    const warned: string[] = [];
    const started: (CodecOptions & Address)[] = [];
    const program = codecProgram(env, async (options, address) => {
      started.push({ ...options, ...address });
      return 'http://127.0.0.1:8082';
    });
    const output = { print: () => undefined, warn: (line: string) => warned.push(line) };
    const exitCode = await runProgram(program, args, output, (act, printer) => act(printer));
    return { exitCode, warned, started };
  };

  test.for<[string, string[], NodeJS.ProcessEnv, number, string]>([
    ['no key', [], {}, 78, 'TEMPORAL_PAYLOAD_KEYS is not set: there is nothing to open.'],
    ['any origin', ['--origin', '*'], keys, 2, '--origin must be <scheme>://<host>[:<port>], without a path.'],
    [
      'an origin with a path',
      ['--origin', `${UI}/`],
      keys,
      2,
      '--origin must be <scheme>://<host>[:<port>], without a',
    ],
    ['another address and no token', ['--host', '0.0.0.0'], keys, 78, 'CODEC_TOKEN is required when --host is not'],
    [
      'a short token',
      [],
      { ...keys, CODEC_TOKEN: 'x'.repeat(31) },
      78,
      'CODEC_TOKEN must have at least 32 characters.',
    ],
    ['an invalid port', ['--port', 'http'], keys, 2, '--port must be a whole number from 0 to 65535.'],
  ])('does not start with %s', async ([, args, env, exitCode, fault]) => {
    const refused = await run(args, env);
    expect(refused).toMatchObject({ exitCode, started: [] });
    expect(refused.warned[0]).toContain(fault);
  });

  test('starts on the loopback address, for the namespace of the service', async () => {
    const token = 'x'.repeat(32);
    const env = { ...keys, TEMPORAL_NAMESPACE: 'settlement', CODEC_TOKEN: token };
    const { exitCode, started } = await run(['--origin', UI], env);
    expect(exitCode).toBe(0);
    expect(started).toMatchObject([{ host: '127.0.0.1', port: 8082, namespace: 'settlement', origins: [UI], token }]);
  });
});
