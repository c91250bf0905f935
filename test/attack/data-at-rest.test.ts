/**
 * Personal data and secrets are in no place where data rests or leaves (contract §4): the tables, the histories of
 * workflows, the logs of the processes and the bodies that subscribers get. The whole interface is called with planted
 * values. Then every byte is searched: as text, decoded and in hex, and for digests that could be found by trying.
 */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import { expect, vi } from 'vitest';
import { createGuardedHttp } from '../../activities/providers/guarded-http.ts';
import { newId } from '../../db/id.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { withStack } from '../support/fixture.ts';
import { historyText } from '../support/history.ts';
import { type Json, settleBody, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import type { TestStack } from '../support/stack.ts';
import { startReceiver } from '../support/webhook.ts';
import { foundIn, isCode, PERSON, SHOWN_ONCE } from './planted.ts';
import { bodyOf, headersOf, urlOf } from './sample.ts';
import { createAttack, idsOf } from './world.ts';

const CHANGED = {
  ...PERSON,
  name: 'Isolde Marrowbane',
  email: 'isolde@changed.example',
  account_number: 'CHANGED5566',
};
const CONSUMER = { email: `quillfeather-${newId()}@consumer.example`, phone: '+18765557355' };

let logs = '';
const allowLocal = createGuardedHttp({
  rules: { allowLocal: true },
  resolve: () => Promise.reject(new Error('this test uses no names')),
  timeoutMs: 15_000,
});
const test = withStack({
  deliveries: true,
  activities: { guardedHttp: allowLocal },
  logTo: {
    write: (line: string) => {
      logs += line;
    },
  },
})
  .extend('needles', () => {
    const needles = new Map<string, string>();
    for (const [of, planted] of Object.entries({ planted: PERSON, changed: CHANGED, consumer: CONSUMER }))
      for (const [field, value] of Object.entries(planted)) needles.set(`${of} ${field}`, value);
    needles.set("the processor's secret", TEST_SECRETS.cardproc);
    return needles;
  })
  .extend('receiver', async ({ stack: _running }, { onCleanup }) => {
    const receiver = await startReceiver();
    onCleanup(() => receiver.close());
    return receiver;
  })
  .extend('send', ({ stack, needles }) => {
    /** Over HTTP, so that it is logged. What an answer shows once becomes a needle. */
    return async (method: string, url: string, body?: unknown, headers: Record<string, string> = {}): Promise<Json> => {
      const answer = await fetch(stack.baseUrl + url, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) expect([method, url, foundIn(text, needles)]).toEqual([method, url, []]);
      const shown = /json/.test(answer.headers.get('content-type') ?? '') ? JSON.parse(text) : {};
      for (const field of SHOWN_ONCE)
        if (typeof shown[field] === 'string') needles.set(`${url} ${field} ${needles.size}`, shown[field]);
      return { ...shown, http_status: answer.status };
    };
  });

type Send = (method: string, url: string, body?: unknown, headers?: Record<string, string>) => Promise<Json>;

/** Other forms of the same values: their bytes in hex and base64, and digests that nobody has a key for. */
function formsOf(needles: ReadonlyMap<string, string>): Map<string, string> {
  const forms = new Map<string, string>();
  const digest = (text: string) => createHash('sha256').update(text).digest();
  for (const [name, value] of needles) {
    if (isCode(value)) continue;
    forms.set(`${name} in hex`, Buffer.from(value).toString('hex'));
    forms.set(`${name} in base64`, Buffer.from(value).toString('base64url').slice(0, -2));
    // What is random cannot be found by trying its digest.
    if (!/^(planted|changed|consumer) (?!card_token)/.test(name)) continue;
    forms.set(`${name} as a digest`, digest(value).toString('hex'));
    const field = name.split(' ').at(-1) ?? '';
    forms.set(
      `${name} as the digest of a field`,
      digest(`${field}\0${JSON.stringify(value)}`)
        .toString('base64url')
        .slice(0, 22),
    );
  }
  return forms;
}

/** Every value of every row: as PostgreSQL writes it, and the bytes of `bytea` as text. */
async function dumpEveryByte(pool: pg.Pool): Promise<Map<string, string>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
     WHERE table_schema IN ('public', 'drizzle') AND table_type = 'BASE TABLE'`,
  );
  const dumps = new Map<string, string>();
  for (const { name } of tables) {
    const written = await pool.query<{ line: string }>(`SELECT t::text AS line FROM ${name} t`);
    const { rows } = await pool.query<Record<string, unknown>>(`SELECT * FROM ${name}`);
    const bytes = rows.flatMap((row) => Object.values(row).filter((value) => Buffer.isBuffer(value)));
    dumps.set(name, [...written.rows.map(({ line }) => line), ...bytes.map(String)].join('\n'));
  }
  return dumps;
}

/** What a partner does with a recipient from its beginning to its end. */
async function livePartner(
  send: Send,
  key: Record<string, string>,
  hook: string,
  untilSettled: (settlementId: string) => Promise<unknown>,
): Promise<void> {
  const keyed = () => ({ ...key, 'idempotency-key': newId() });
  await send('POST', '/v1/webhooks', { url: hook, event_types: ['*'] }, keyed());
  const { name, email, phone, phone_number, account_number, verified_name, card_token } = PERSON;
  const person = { kind: 'contractor', entity_type: 'individual', name, country: 'JM', email, phone };
  const bank_details = { bank_name: 'NCB', account_number, currency: 'JMD' };
  const draft = { ...person, bank_details, mobile_details: { provider: 'Lynk', phone_number } };
  const recipient = keyed();
  const { recipient_id: id } = await send('POST', '/v1/recipients', draft, recipient);
  expect((await send('POST', '/v1/recipients', draft, recipient)).recipient_id).toBe(id);
  const other = await send('POST', '/v1/recipients', { ...draft, email: CHANGED.email }, recipient);
  expect(other).toMatchObject({ code: 'idempotency_key_reused', mismatch: ['email'] });
  const verification = await send('POST', '/v1/kyc/verify', { recipient_id: id }, keyed());
  const decision = { status: 'verified', verified_name };
  await send('POST', `/v1/kyc/${verification.verification_id}/complete`, decision, key);
  await send('POST', '/v1/kyc/idverify/applicant', { recipient_id: id, email, phone }, keyed());
  const paid = keyed();
  const order = settleBody(id, { card_token: 'tok_visa' });
  const { settlement_id: settlementId } = await send('POST', '/v2/settle', order, paid);
  expect((await send('GET', `/v2/settle/${settlementId}`, undefined, key)).payee.name).toBe(name);
  await send('POST', '/v2/settle', settleBody(id, { card_token, payout_rail: 'mobile_money' }), keyed());
  // A recipient that is deactivated stops its settlements.
  await untilSettled(settlementId);
  const change = { name: CHANGED.name, email: CHANGED.email, bank_details: { account_number: CHANGED.account_number } };
  await send('PUT', `/v1/recipients/${id}`, change, key);
  await send('DELETE', `/v1/recipients/${id}`, undefined, key);
}

async function liveConsumer(send: Send): Promise<void> {
  for (const contact of [{ email: CONSUMER.email }, { phone: CONSUMER.phone }]) {
    const { challenge_id, sandbox_code: code } = await send('POST', '/consumer/auth/request-otp', contact);
    const session = await send('POST', '/consumer/auth/verify-otp', { challenge_id, code });
    const bearer = { authorization: `Bearer ${session.access_token}`, 'idempotency-key': newId() };
    expect(await send('GET', '/consumer/me', undefined, bearer)).toMatchObject(contact);
    const draft = {
      entity_type: 'individual',
      name: PERSON.name,
      country: 'JM',
      bank_details: { bank_name: 'NCB', account_number: PERSON.account_number, currency: 'JMD' },
    };
    const { recipient_id } = await send('POST', '/consumer/recipients', draft, bearer);
    const terms = { corridor: 'US-JM', amount: '250.00', payment_method: 'card', recipient_id };
    const paying = { ...bearer, 'idempotency-key': newId() };
    await send('POST', '/consumer/transfers', { ...terms, card_token: PERSON.card_token }, paying);
    await send('POST', `/consumer/recipients/${recipient_id}/verify`, undefined, bearer);
  }
}

/** Calls every operation with each planted value that it has a field for. The answers do not matter. */
async function callEverything(stack: TestStack, send: Send): Promise<number> {
  const attack = createAttack(stack.api);
  const tenant = await attack.createTenant();
  const operations = attack.operations.filter(({ path }) => /^\/(v1|v2|consumer)\//.test(path));
  for (const operation of operations) {
    const ids = idsOf(tenant, operation);
    // An organization, a key and a wallet have names too, which are no person's.
    const { name, ...others } = PERSON;
    const planted = operation.path.endsWith('/recipients') ? { ...others, name } : others;
    const fields = Object.keys(planted).filter((field) => Object.hasOwn(operation.body?.properties ?? {}, field));
    const body = bodyOf(operation, { ...planted, ...ids }, fields);
    const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body));
    const headers = {
      'idempotency-key': newId(),
      ...headersOf(operation),
      ...attack.credentialOf(operation, tenant, bytes),
    };
    await send(operation.method, urlOf(operation, ids), bytes.length === 0 ? undefined : bytes.toString(), headers);
  }
  return operations.length;
}

test('no personal data and no secret in any table, history, log line or webhook body', async ({
  stack,
  api,
  partner,
  needles,
  receiver,
  send,
}) => {
  needles.set('the API key', partner.apiKey);
  const untilSettled = (id: string) => untilStatus(api, partner, id, 'settled');
  await livePartner(send, { 'x-api-key': partner.apiKey }, receiver.url, untilSettled);
  await liveConsumer(send);
  expect(await callEverything(stack, send)).toBeGreaterThan(60);
  const bodies = () => receiver.received.map(({ body }) => body.toString()).join('\n');
  for (const type of ['recipient.deactivated', 'verification.verified', 'settlement.settled', 'certificate.issued'])
    await vi.waitFor(() => expect(bodies()).toContain(type), WAIT);
  expect(needles.size).toBeGreaterThan(30);

  const histories: string[] = [];
  for await (const { workflowId } of stack.temporal.workflow.list())
    histories.push(historyText(await stack.temporal.workflow.getHandle(workflowId).fetchHistory()));
  expect(histories.length).toBeGreaterThan(8);
  const places = new Map([
    ...(await dumpEveryByte(api.owner.pool)),
    ['histories', histories.join('\n')],
    ['logs', logs],
    ['webhook bodies', bodies()],
  ]);
  expect(logs).toContain('activity done');
  const all = new Map([...needles, ...formsOf(needles)]);
  expect([...places].flatMap(([place, text]) => foundIn(text, all).map((name) => `${place}: ${name}`))).toEqual([]);
});
