import type { ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { SettlementError } from '../../clients/typescript/index.ts';
import { cardSettlementBody } from '../../scripts/sandbox/partner.ts';
import { type HttpServer, type Received, startHttpServer } from '../support/http-server.ts';
import { type CarefulPartner, createCarefulPartner } from './partner.ts';

type Handler = (response: ServerResponse) => unknown;

const servers: HttpServer[] = [];
let partner: CarefulPartner | undefined;

afterEach(async () => {
  partner?.close();
  partner = undefined;
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

const json =
  (status: number, body: object, headers: Record<string, string> = {}): Handler =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
const problem = (status: number, code: string, headers: Record<string, string> = {}): Handler =>
  json(status, { status, code, detail: 'Why.', request_id: 'r-1' }, headers);

/** Two APIs that let a partner sign up, and answer what it tries with these handlers, one after the other. */
async function partnerOf(...handlers: Handler[]): Promise<{ partner: CarefulPartner; attempts: () => number }> {
  let attempts = 0;
  const answer = (response: ServerResponse, { method, path }: Received): unknown => {
    if (path === '/v1/orgs') return json(201, { org_id: 'org', api_key: 'key' })(response);
    if (path === '/v1/recipients') return json(201, { recipient_id: 'recipient' })(response);
    if (method === 'GET') return json(200, { status: 'ready' })(response);
    attempts += 1;
    return handlers[attempts - 1]?.(response);
  };
  servers.push(await startHttpServer(answer), await startHttpServer(answer));
  const urls = servers.map(({ url }) => url);
  partner = await createCarefulPartner(urls, new AbortController().signal);
  return { partner, attempts: () => attempts };
}

/** Sign-up and recipient. */
const ANSWERED_BEFORE = 2;

const post = ({ call, recipientId }: CarefulPartner) =>
  call(({ settlements }) => settlements.create(cardSettlementBody(recipientId)));
const RETRY_LATER = { 'retry-after': '1' };
const good = json(200, { done: true });
const hangUp: Handler = (response) => response.socket?.destroy();
const breakOff: Handler = (response) => {
  response.writeHead(200, { 'content-length': '100' }).write('{"do');
  setTimeout(() => response.socket?.destroy(), 20);
};

test.each([
  ['500', problem(500, 'internal_error'), '500 internal_error: Why. (request r-1)'],
  ['503 without Retry-After', problem(503, 'temporarily_unavailable'), '503 temporarily_unavailable'],
  ['503 that is not a problem', json(503, {}), 'The answer 503 is not one of the API'],
  ['404', problem(404, 'not_found'), '404 not_found'],
  ['an answer that breaks off', breakOff, 'The answer 200 broke off'],
])('%s is a fault: the request is not repeated, and the report names it', async (_what, handler, words) => {
  const { partner: careful, attempts } = await partnerOf(handler, good);
  await expect(post(careful)).rejects.toThrow(SettlementError);
  expect(attempts()).toBe(1);
  const { outcomes, faults } = careful.report;
  expect(outcomes).toMatchObject({ answered: ANSWERED_BEFORE, fault: 1 });
  expect(faults).toEqual([expect.stringContaining(words)]);
});

test.each([
  ['a connection that ends before an answer', hangUp, 'reset before an answer'],
  ['503 with Retry-After', problem(503, 'temporarily_unavailable', RETRY_LATER), '503 with Retry-After'],
  ['429 with Retry-After', problem(429, 'rate_limited', RETRY_LATER), '429 with Retry-After'],
])('%s is counted, and the request is repeated', async (_what, handler, outcome) => {
  const { partner: careful } = await partnerOf(handler, good);
  expect(await post(careful)).toEqual({ done: true });
  expect(careful.report.outcomes).toMatchObject({ answered: ANSWERED_BEFORE + 1, [outcome]: 1, fault: 0 });
});

test('a request goes to another API when one refuses connections', async () => {
  const { partner: careful } = await partnerOf(good, good, good, good);
  await servers[0]?.close();
  const answers = await Promise.all([post(careful), post(careful)]);
  expect(answers).toEqual([{ done: true }, { done: true }]);
  expect(careful.report.outcomes.fault).toBe(0);
});
