/** One line for each request (contract §1): who sent it, from which network, and its result. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { newId } from '../../db/id.ts';
import { createLogger } from '../../process/logger.ts';
import { recipientBody } from '../../scripts/sandbox/partner.ts';
import { callAs, createConsumerRecipient, signIn } from '../support/consumer.ts';
import { untilBlocked, whileLocked } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf, settle } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';

const lines: Record<string, unknown>[] = [];
const logger = createLogger(
  { level: 'trace', name: 'api' },
  { write: (line: string) => void lines.push(JSON.parse(line)) },
);

const test = withApi({ logger });
test.beforeEach(() => void lines.splice(0));

const ofRoute = (route: string) => lines.filter((line) => line['msg'] === 'request' && line['route'] === route);

test('a leaked key can be traced: the line has its id and the network, and never the address', async ({
  api,
  partner,
}) => {
  for (const remoteAddress of ['203.0.113.77', '2001:db8:1:2:3:4:5:6'])
    await api.app.inject({
      method: 'GET',
      url: '/v2/payment-methods',
      remoteAddress,
      headers: { 'x-api-key': partner.apiKey },
    });
  await expect.poll(() => ofRoute('/v2/payment-methods')).toHaveLength(2);
  expect(ofRoute('/v2/payment-methods')).toEqual([
    expect.objectContaining({ key_id: partner.keyId, org_id: partner.orgId, client: '203.0.113.0', status: 200 }),
    expect.objectContaining({ key_id: partner.keyId, client: '2001:db8:1::', status: 200 }),
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/203\.0\.113\.77|2001:db8:1:2/);
});

test('an id in the address is logged if the service can have made it, and no other text', async ({ api, partner }) => {
  const [settlementId, verificationId] = [`stl_${'a'.repeat(32)}`, newId()];
  const [settlements, verifications] = ['/v2/settle/:settlement_id', '/v1/kyc/:verification_id'];
  for (const url of [`/v2/settle/${settlementId}`, '/v2/settle/Marcia', `/v1/kyc/${verificationId}`, '/v1/kyc/Marcia'])
    await api.call(partner, 'GET', url);
  await expect.poll(() => [ofRoute(settlements), ofRoute(verifications)].flat()).toHaveLength(4);
  expect(ofRoute(settlements)[0]).toMatchObject({
    settlement_id: settlementId,
    workflow_id: `settlement:${settlementId}`,
  });
  expect(ofRoute(verifications)[0]).toMatchObject({
    verification_id: verificationId,
    workflow_id: `verification:${verificationId}`,
  });
  expect(JSON.stringify(lines)).not.toContain('Marcia');
});

test("a consumer's requests about a transfer and a verification have the ids by which a partner's are found", async ({
  api,
}) => {
  const consumer = await signIn(api);
  const recipientId = await createConsumerRecipient(api, consumer);
  const order = { corridor: 'US-JM', amount: '250.00', payment_method: 'wire', recipient_id: recipientId };
  const key = { 'idempotency-key': newId() };
  const transfer = jsonOf(await callAs(api, consumer, 'POST', '/consumer/transfers', order, key));
  const path = `/consumer/transfers/${transfer.transfer_id}`;
  await callAs(api, consumer, 'GET', path);
  await callAs(api, consumer, 'GET', `${path}/certificate`);
  await callAs(api, consumer, 'POST', `${path}/cancel`);
  const route = '/consumer/transfers/:transfer_id';
  const about = ['/consumer/transfers', route, `${route}/certificate`, `${route}/cancel`];
  await expect.poll(() => about.flatMap(ofRoute)).toHaveLength(about.length);
  for (const line of about.flatMap(ofRoute))
    expect(line).toMatchObject({ settlement_id: transfer.settlement_id, workflow_id: transfer.workflow_id });
  const verify = '/consumer/recipients/:recipient_id/verify';
  const opened = jsonOf(await callAs(api, consumer, 'POST', verify.replace(':recipient_id', recipientId)));
  await expect.poll(() => ofRoute(verify)).toHaveLength(1);
  expect(ofRoute(verify)[0]).toMatchObject({ verification_id: opened.verification_id });
});

test('a key that is used from where it is not allowed is logged by its id and the network, and answered as unknown', async ({
  api,
  partner,
}) => {
  const { apiKey, keyId } = await api.createKey(partner.orgId, 'read', { allowedCidrs: ['203.0.113.0/24'] });
  const read = { url: '/v1/wallets', remoteAddress: '198.51.100.7', headers: { 'x-api-key': apiKey } };
  expect((await api.app.inject(read)).statusCode).toBe(401);
  const warned = lines.filter(({ msg }) => msg === 'an API key does not allow this address');
  expect(warned).toEqual([expect.objectContaining({ key_id: keyId, org_id: partner.orgId, client: '198.51.100.0' })]);
});

test('a caller that goes away has a line, and is not taken for a fault of the database', async ({
  api,
  partner,
  port,
}) => {
  const half = connect(port, '127.0.0.1');
  await once(half, 'connect');
  const arrived: Promise<IncomingMessage[]> = once(api.app.server, 'request');
  half.write(
    `POST /v1/wallets HTTP/1.1\r\nHost: x\r\nX-API-Key: ${partner.apiKey}\r\nContent-Type: application/json\r\n` +
      'Content-Length: 1000\r\n\r\n{"name":',
  );
  const [received] = await arrived;
  // Its key is known, and its body is asked for.
  await vi.waitUntil(() => (received?.listenerCount('data') ?? 0) > 0, WAIT);
  half.destroy();
  await expect
    .poll(() => ofRoute('/v1/wallets'))
    .toEqual([expect.objectContaining({ status: 499, key_id: partner.keyId })]);

  const id = await settle(api, partner);
  const waiting = connect(port, '127.0.0.1');
  await once(waiting, 'connect');
  const subscribe = vi.spyOn(api.deps.changes, 'subscribe');
  waiting.write(`GET /v2/settle/${id} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${partner.apiKey}\r\nPrefer: wait=20\r\n\r\n`);
  await vi.waitUntil(() => subscribe.mock.calls.length === 1, WAIT);
  subscribe.mockRestore();
  waiting.destroy();
  await expect.poll(() => ofRoute('/v2/settle/:settlement_id')).toEqual([expect.objectContaining({ status: 499 })]);

  await whileLocked(api.owner.pool, 'LOCK TABLE recipients IN EXCLUSIVE MODE', async () => {
    const caller = new AbortController();
    const headers = { 'x-api-key': partner.apiKey, 'content-type': 'application/json' };
    const sent = { method: 'POST', headers, body: JSON.stringify(recipientBody()), signal: caller.signal };
    const begun = once(api.app.server, 'request');
    const asked = fetch(`http://127.0.0.1:${port}/v1/recipients`, sent);
    const [, response] = await begun;
    // Its key is known then.
    await untilBlocked(api.owner.pool, 1);
    const ended = once(response, 'close');
    caller.abort();
    await asked.catch(() => undefined);
    // Otherwise it could be answered before the API sees that its caller has gone.
    await ended;
  });
  await expect.poll(() => ofRoute('/v1/recipients').at(-1)).toMatchObject({ status: 499, key_id: partner.keyId });
  await delay(200);
  const others = lines.filter((line) => Number(line['level']) > 30);
  expect(others).toEqual([]);
});
