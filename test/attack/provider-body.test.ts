/**
 * What a stranger can make the service read and hold at the webhooks of providers and at its probes (contract §9, §15):
 * no body without a signature's form, a bounded number of bytes, and no query for each probe.
 */
import { connect, type Socket } from 'node:net';
import { describe, expect, vi } from 'vitest';
import { BODIES_IN_FLIGHT_BYTES_MAX, SIGNED_BODY_BYTES_MAX } from '../../api/plugins/signed-body.ts';
import { asProcess } from '../../db/tenant.ts';
import { untilBlocked, whileLocked } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { sendRaw } from '../support/raw-request.ts';
import { recordStatements } from '../support/statement-count.ts';
import { SIGNATURES } from './world.ts';

const DIGEST = 'a'.repeat(64);
const LENGTH = 'Content-Length: 1000';
const nowSeconds = () => Math.floor(Date.now() / 1_000);

const test = withApi()
  /** Sends a head that declares a body, and no body. */
  .extend('sendHead', ({ port, onTestFinished }) => (path: string, lines: readonly string[], declared = LENGTH) => {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const seen = { socket, text: '', isClosed: false };
    socket.on('data', (part: Buffer) => {
      seen.text += part.toString();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      seen.isClosed = true;
    });
    const head = [`POST ${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', declared];
    socket.write(`${[...head, ...lines].join('\r\n')}\r\n\r\n`);
    return seen as { readonly socket: Socket; readonly text: string; readonly isClosed: boolean };
  });

describe('the body of a provider event', () => {
  test.for<[string, string, () => string[]]>([
    ['no signature', 'cardproc', () => []],
    ['no time', 'cardproc', () => [`Cardproc-Signature: v1=${DIGEST}`]],
    ['no digest', 'cardproc', () => [`Cardproc-Signature: t=${nowSeconds()}`]],
    ['a digest of no form', 'cardproc', () => [`Cardproc-Signature: t=${nowSeconds()},v1=xyz`]],
    ['an old time', 'cardproc', () => [`Cardproc-Signature: t=${nowSeconds() - 301},v1=${DIGEST}`]],
    ['a time of the future', 'cardproc', () => [`Cardproc-Signature: t=${nowSeconds() + 310},v1=${DIGEST}`]],
    ['two times', 'cardproc', () => [`Cardproc-Signature: t=${nowSeconds()},t=${nowSeconds()},v1=${DIGEST}`]],
    ['nine digests', 'cardproc', () => [`Cardproc-Signature: t=${nowSeconds()}${`,v1=${DIGEST}`.repeat(9)}`]],
    ['no signature', 'bankledger', () => []],
    ['two signatures', 'bankledger', () => [`X-Signature: ${DIGEST}`, `X-Signature: ${DIGEST}`]],
    ['a digest of no form', 'bankledger', () => ['X-Signature: xyz']],
    ['no algorithm', 'idverify', () => [`X-Payload-Digest: ${DIGEST}`]],
    ['another algorithm', 'idverify', () => [`X-Payload-Digest: ${DIGEST}`, 'X-Payload-Digest-Alg: HMAC_SHA1_HEX']],
  ])('is not read with %s at %s', async ([_case, name, lines], { sendHead }) => {
    const answer = sendHead(`/v2/webhooks/${name}`, lines());
    await vi.waitUntil(() => answer.text.includes('signature_invalid'), WAIT);
    expect(answer.text).toMatch(/^HTTP\/1\.1 401 /);
  });

  test.for(['cardproc', 'bankledger', 'idverify'])(
    'is read up to 256 KiB, whatever its content type, and 413 beyond, at %s',
    async (name, { api }) => {
      const url = `/v2/webhooks/${name}`;
      const post = async (length: number) => {
        const payload = Buffer.alloc(length, ' ');
        payload.write('{"id":"evt_most","event":"unknown","correlationId":"evt_most","type":"unknown"}');
        const headers = { 'content-type': 'text/plain', ...SIGNATURES[`POST ${url}`]?.(payload) };
        return await api.app.inject({ method: 'POST', url, payload, headers });
      };
      const [most, more] = [await post(SIGNED_BODY_BYTES_MAX), await post(SIGNED_BODY_BYTES_MAX + 1)];
      expect([most.statusCode, jsonOf(most).matched]).toEqual([200, false]);
      expect([more.statusCode, jsonOf(more).code]).toEqual([413, 'payload_too_large']);
      expect(SIGNED_BODY_BYTES_MAX).toBe(256 * 1024);
    },
  );

  test.for(['json', 'application/', ''])('is read although its content type is %j', async (type, { api }) => {
    const url = '/v2/webhooks/bankledger';
    const payload = Buffer.from(JSON.stringify({ id: `evt_of_type_${type}`, event: 'unknown' }));
    const headers = { 'content-type': type, ...SIGNATURES[`POST ${url}`]?.(payload) };
    const { statusCode, body } = await api.app.inject({ method: 'POST', url, payload, headers });
    expect([statusCode, JSON.parse(body)]).toMatchObject([200, { received: true, duplicate: false }]);
  });

  test.for([
    ['two content types', ['Content-Type', 'text/plain']],
    ['a content encoding', ['Content-Encoding', 'identity']],
  ] as const)('is read although it has %s', async ([what, lines], { port }) => {
    const path = '/v2/webhooks/bankledger';
    const body = JSON.stringify({ id: `evt_with_${what}`, event: 'unknown' });
    const signed = Object.entries(SIGNATURES[`POST ${path}`]?.(Buffer.from(body)) ?? {}).flat();
    const sent = { method: 'POST', path, lines: [...lines, ...signed], body };
    const answer = await sendRaw(new URL(`http://127.0.0.1:${port}`), sent, false);
    expect([answer.status, answer.body]).toMatchObject([200, { received: true, duplicate: false }]);
  });

  test('that declares more than all of them may have is 413, as every other that is too large', async ({
    sendHead,
  }) => {
    const declared = `Content-Length: ${2 * BODIES_IN_FLIGHT_BYTES_MAX}`;
    const answer = sendHead('/v2/webhooks/bankledger', [`X-Signature: ${DIGEST}`], declared);
    await vi.waitUntil(() => answer.text.includes('payload_too_large'), WAIT);
  });

  test.for([
    ['the most', `Content-Length: ${SIGNED_BODY_BYTES_MAX}`],
    ['no length', 'Transfer-Encoding: chunked'],
  ] as const)(
    'that declares %s is ended when newer ones need its room, so that held bodies refuse nobody',
    async ([, declared], { api, sendHead }) => {
      const url = '/v2/webhooks/bankledger';
      const fits = BODIES_IN_FLIGHT_BYTES_MAX / SIGNED_BODY_BYTES_MAX;
      const held = Array.from({ length: fits + 10 }, () => sendHead(url, [`X-Signature: ${DIGEST}`], declared));
      await vi.waitUntil(() => held.filter(({ isClosed }) => isClosed).length === 10, WAIT);
      const payload = '{"id":"evt_1","event":"unknown"}';
      const headers = { 'content-type': 'application/json', ...SIGNATURES[`POST ${url}`]?.(Buffer.from(payload)) };
      const answer = await api.app.inject({ method: 'POST', url, payload, headers });
      expect([answer.statusCode, jsonOf(answer).matched]).toEqual([200, false]);
    },
  );
});

describe('a provider event that was read and waits for the database', () => {
  const url = '/v2/webhooks/bankledger';
  const LOCK = 'LOCK TABLE provider_events IN EXCLUSIVE MODE';
  const fits = BODIES_IN_FLIGHT_BYTES_MAX / SIGNED_BODY_BYTES_MAX;
  const signed = (length: number) => {
    const payload = Buffer.alloc(length, ' ');
    payload.write(`{"id":"evt_${length}","event":"unknown"}`);
    return { payload, headers: { 'content-type': 'application/json', ...SIGNATURES[`POST ${url}`]?.(payload) } };
  };

  test('is answered, however many bodies are held after it', async ({ api, port, sendHead }) => {
    const { payload: body, headers } = signed(100);
    const { answer } = await whileLocked(api.owner.pool, LOCK, async () => {
      const sent = fetch(`http://127.0.0.1:${port}${url}`, { method: 'POST', body, headers });
      await untilBlocked(api.owner.pool, 1);
      const declared = `Content-Length: ${SIGNED_BODY_BYTES_MAX}`;
      const held = Array.from({ length: fits + 10 }, () => sendHead(url, [`X-Signature: ${DIGEST}`], declared));
      await vi.waitUntil(() => held.filter(({ isClosed }) => isClosed).length >= 10, WAIT);
      return { answer: sent };
    });
    expect((await answer).status).toBe(200);
  });

  test('counts as a body in flight until it is answered: the next one is 503', async ({ api, port }) => {
    const post = async ({ payload: body, headers }: ReturnType<typeof signed>) =>
      (await fetch(`http://127.0.0.1:${port}${url}`, { method: 'POST', body, headers })).status;
    const { pool, waiting } = api.connection;
    const held = await Promise.all(Array.from({ length: pool.options.max }, () => asProcess(() => pool.connect())));
    const sent = Array.from({ length: fits }, () => post(signed(SIGNED_BODY_BYTES_MAX)));
    try {
      await vi.waitUntil(() => waiting() === fits, WAIT);
      expect(await post(signed(200))).toBe(503);
    } finally {
      for (const client of held) client.release();
      await Promise.all(sent);
    }
    expect(await post(signed(200))).toBe(200);
  });
});

describe('readiness', () => {
  test('is asked of PostgreSQL once a second at most, however often it is read', async ({ api, clock }) => {
    clock.stop(new Date());
    const recorded = recordStatements(api.connection.pool);
    const read = async () => (await api.app.inject('/health/ready')).statusCode;
    const statuses = await Promise.all(Array.from({ length: 50 }, read));
    clock.advance(999);
    statuses.push(await read());
    clock.advance(1);
    statuses.push(await read());
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(recorded()).toHaveLength(2);
  });
});
