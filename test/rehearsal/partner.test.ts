import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { Fault } from '../../scripts/partner/client.ts';
import { type CarefulPartner, createCarefulPartner } from './partner.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const servers: Server[] = [];
let partner: CarefulPartner | undefined;

afterEach(async () => {
  await partner?.close();
  partner = undefined;
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const json =
  (status: number, body: object, headers: Record<string, string> = {}): Handler =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

/** Two APIs that let a partner sign up, and answer `/try` with these handlers, one after the other. */
async function partnerOf(...handlers: Handler[]): Promise<{ partner: CarefulPartner; attempts: () => number }> {
  let attempts = 0;
  const answer: Handler = (request, response) => {
    request.resume();
    if (request.url === '/v1/orgs') return json(201, { org_id: 'org', api_key: 'key' })(request, response);
    if (request.url === '/v1/recipients') return json(201, { recipient_id: 'recipient' })(request, response);
    if (request.url !== '/try') return json(200, { status: 'ready' })(request, response);
    attempts += 1;
    return handlers[attempts - 1]?.(request, response);
  };
  const urls: string[] = [];
  for (const server of [createServer(answer), createServer(answer)]) {
    servers.push(server.listen(0, '127.0.0.1'));
    await once(server, 'listening');
    const address = server.address();
    urls.push(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
  }
  partner = await createCarefulPartner(urls, new AbortController().signal);
  return { partner, attempts: () => attempts };
}

/** Sign-up and recipient. */
const ANSWERED_BEFORE = 2;

const post = (careful: CarefulPartner) =>
  careful.call({ method: 'POST', path: '/try', idempotencyKey: 'key-of-this-request', body: {} });
const postWithoutKey = (careful: CarefulPartner) => careful.call({ method: 'POST', path: '/try', body: {} });
const good = json(200, { done: true });
const hangUp: Handler = (request) => void request.socket.destroy();
const breakOff: Handler = (_request, response) => {
  response.writeHead(200, { 'content-length': '100' }).write('{"do');
  setTimeout(() => response.socket?.destroy(), 20);
};

test.each([
  ['500', json(500, { code: 'internal_error' }), 'answered 500: {"code":"internal_error"}'],
  ['503 without Retry-After', json(503, {}), 'answered 503: {}'],
  ['404', json(404, {}), 'answered 404: {}'],
  ['an answer that breaks off', breakOff, 'the answer 200 broke off'],
])('%s is a fault: the request is not repeated, and the report names it', async (_what, handler, words) => {
  const { partner: careful, attempts } = await partnerOf(handler, good);
  await expect(post(careful)).rejects.toThrow(Fault);
  expect(attempts()).toBe(1);
  const { outcomes, faults } = careful.report;
  expect(outcomes).toMatchObject({ answered: ANSWERED_BEFORE, fault: 1 });
  expect(faults).toEqual([expect.stringContaining(words)]);
});

test.each([
  ['a connection that ends before an answer', hangUp, 'reset before an answer'],
  ['503 with Retry-After', json(503, {}, { 'retry-after': '1' }), '503 with Retry-After'],
  ['429 with Retry-After', json(429, {}, { 'retry-after': '1' }), '429 with Retry-After'],
])('%s is counted, and the request is repeated', async (_what, handler, outcome) => {
  const { partner: careful } = await partnerOf(handler, good);
  expect((await post(careful)).json).toEqual({ done: true });
  expect(careful.report.outcomes).toMatchObject({ answered: ANSWERED_BEFORE + 1, [outcome]: 1, fault: 0 });
});

test.each([
  ['a connection that ends before an answer', hangUp],
  ['503 with Retry-After', json(503, {}, { 'retry-after': '1' })],
])('a POST without an idempotency key is not repeated after %s: the API may have done it', async (_what, handler) => {
  const { partner: careful, attempts } = await partnerOf(handler, good);
  await expect(postWithoutKey(careful)).rejects.toThrow(Fault);
  expect(attempts()).toBe(1);
});

test('a POST without an idempotency key is repeated after 429, which did nothing', async () => {
  const { partner: careful } = await partnerOf(json(429, {}, { 'retry-after': '1' }), good);
  expect((await postWithoutKey(careful)).json).toEqual({ done: true });
});

test('a request goes to another API when one refuses connections', async () => {
  const { partner: careful } = await partnerOf(good, good, good, good);
  servers[0]?.closeAllConnections();
  servers[0]?.close();
  const answers = await Promise.all([post(careful), post(careful)]);
  expect(answers.map((answer) => answer.json)).toEqual([{ done: true }, { done: true }]);
  expect(careful.report.outcomes.fault).toBe(0);
});
