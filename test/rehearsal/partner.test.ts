import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { createPartner, Fault, type Partner } from './partner.ts';

type Reply = (request: IncomingMessage, response: ServerResponse) => void;

const servers: Server[] = [];
let partner: Partner | undefined;

afterEach(async () => {
  await partner?.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const json =
  (status: number, body: object, headers: Record<string, string> = {}): Reply =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

/** Two APIs that answer what a partner needs to begin, and `/try` with these replies, one after the other. */
async function partnerBefore(...replies: Reply[]): Promise<{ partner: Partner; tries: () => number }> {
  let tries = 0;
  const answer: Reply = (request, response) => {
    request.resume();
    if (request.url === '/v1/orgs') return json(201, { org_id: 'org', api_key: 'key' })(request, response);
    if (request.url === '/v1/recipients') return json(201, { recipient_id: 'recipient' })(request, response);
    if (request.url !== '/try') return json(200, { status: 'ready' })(request, response);
    tries += 1;
    return replies[tries - 1]?.(request, response);
  };
  const urls: string[] = [];
  for (const server of [createServer(answer), createServer(answer)]) {
    servers.push(server.listen(0, '127.0.0.1'));
    await once(server, 'listening');
    const address = server.address();
    urls.push(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
  }
  partner = await createPartner(urls, new AbortController().signal);
  partner.report();
  return { partner, tries: () => tries };
}

const attempt = (careful: Partner) => careful.call({ method: 'POST', path: '/try', body: {} });
const good = json(200, { done: true });
const hangUp: Reply = (request) => void request.socket.destroy();
const breakOff: Reply = (_request, response) => {
  response.writeHead(200, { 'content-length': '100' }).write('{"do');
  setTimeout(() => response.socket?.destroy(), 20);
};

test.each([
  ['500', json(500, { code: 'internal_error' }), '500 {"code":"internal_error"}'],
  ['503 without Retry-After', json(503, {}), '503 {}'],
  ['404', json(404, {}), '404 {}'],
  ['an answer that breaks off', breakOff, 'the answer 200 broke off'],
])('%s is a fault: it is not repeated, and it is in the report', async (_what, reply, words) => {
  const { partner: careful, tries } = await partnerBefore(reply, good);
  await expect(attempt(careful)).rejects.toThrow(Fault);
  expect(tries()).toBe(1);
  const { outcomes, faults } = careful.report();
  expect(outcomes).toMatchObject({ answered: 0, fault: 1 });
  expect(faults).toEqual([expect.stringContaining(words)]);
});

test.each([
  ['a connection that ends before an answer', hangUp, 'reset before an answer'],
  ['503 with Retry-After', json(503, {}, { 'retry-after': '1' }), '503 with Retry-After'],
  ['429 with Retry-After', json(429, {}, { 'retry-after': '1' }), '429 with Retry-After'],
])('%s is counted and repeated', async (_what, reply, outcome) => {
  const { partner: careful } = await partnerBefore(reply, good);
  expect(await attempt(careful)).toEqual({ done: true });
  expect(careful.report().outcomes).toMatchObject({ answered: 1, [outcome]: 1, fault: 0 });
});

test('a request goes to another API when one takes no connection', async () => {
  const { partner: careful } = await partnerBefore(good, good, good, good);
  servers[0]?.closeAllConnections();
  servers[0]?.close();
  expect(await Promise.all([attempt(careful), attempt(careful)])).toEqual([{ done: true }, { done: true }]);
  expect(careful.report().outcomes.fault).toBe(0);
});
