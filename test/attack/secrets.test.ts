/**
 * Nothing secret or personal that a caller sends, or is given, stands in a log line or in a refusal, at the most
 * talkative level, also when the database fails in the middle of the work.
 */
import { Writable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newId } from '../../db/id.ts';
import { createLogger } from '../../process/logger.ts';
import { createTestApi, TEST_SECRETS, type TestApi } from '../support/api.ts';
import type { SeenAnswer } from '../support/conformance.ts';
import type { DescribedOperation } from './document.ts';
import { bodyOf, headersOf, urlOf } from './sample.ts';
import { type Attack, createAttack, type Tenant } from './world.ts';

/** Each value is valid where it is put, and stands nowhere else. */
const PLANTED = {
  name: 'Zenobia Quillfeather',
  email: 'zenobia.quillfeather@planted.example',
  contact_email: 'owner.quillfeather@planted.example',
  phone: '+18765559173',
  phone_number: '+18765559173',
  account_number: 'PLANTED90817263',
  card_token: 'tok_planted_5f2c81',
  reference: 'Planted reference 77',
  verified_name: 'Zenobia Verified Quillfeather',
  user_reference: 'planted-payer-4411',
  idempotency_key: 'planted-key-0123456789abcdef',
} as const;

let api: TestApi;
let attack: Attack;
let tenant: Tenant;
let lines: string;
const secrets = new Map<string, string>(Object.entries(PLANTED));

beforeAll(async () => {
  lines = '';
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines += chunk.toString();
      done();
    },
  });
  api = await createTestApi({ logger: createLogger({ level: 'trace', name: 'api' }, sink) });
  attack = createAttack(api);
  secrets.set("the processor's secret", TEST_SECRETS.cardproc);
});
beforeEach(async () => {
  tenant = await attack.createTenant();
  for (const [name, value] of Object.entries({
    'api key': tenant.partner.apiKey,
    session: tenant.sessionToken,
    'bank token': tenant.partnerIds.banklink_account_token,
  })) {
    secrets.set(`${name} ${secrets.size}`, value);
  }
});
afterAll(() => api.close());

const idsOf = ({ access }: DescribedOperation) => (access.auth === 'session' ? tenant.consumerIds : tenant.partnerIds);

/** A digit here and there is in every id, so that a code counts only where it stands alone. */
const foundIn = (text: string): string[] =>
  [...secrets]
    .filter(([, value]) => (/^[0-9]{6}$/.test(value) ? new RegExp(`\\b${value}\\b`).test(text) : text.includes(value)))
    .map(([name]) => name);

/** Fields of answers that are shown once. */
const SHOWN_ONCE = [
  'api_key',
  'secret',
  'access_token',
  'sdk_access_token',
  'sandbox_code',
  'sandbox_public_token',
  'link_token',
];

/** What no refusal says: where it happened, and in which words the database was asked. */
const INTERNALS = /\bat .+:\d+|node_modules|\.ts\b|\bselect\b.+\bfrom\b|insert into|relation "|drizzle|postgres/i;

function learn(answer: SeenAnswer): void {
  if (answer.statusCode >= 300 || answer.body === '') return;
  const shown = JSON.parse(answer.body);
  for (const field of SHOWN_ONCE)
    if (typeof shown[field] === 'string') secrets.set(`${field} ${secrets.size}`, shown[field]);
}

/** They end the caller's own credential, so they come last. */
const ENDING = ['POST /v1/orgs/keys/{key_id}/rotate', 'DELETE /v1/orgs/keys/{key_id}', 'POST /consumer/auth/logout'];

/** Every operation, with every planted value that it has a place for, and then with one thing wrong. */
async function callEverything(): Promise<Map<number, number>> {
  const seen = new Map<number, number>();
  const signed = (operation: DescribedOperation) => operation.access.auth === 'signature';
  const ending = ({ name }: DescribedOperation) => ENDING.includes(name);
  for (const operation of [...attack.operations.filter((each) => !ending(each)), ...attack.operations.filter(ending)]) {
    const url = urlOf(operation, idsOf(operation));
    const planted = bodyOf(
      operation,
      { ...PLANTED, ...idsOf(operation) },
      Object.keys(PLANTED).filter((field) => Object.hasOwn(operation.body?.properties ?? {}, field)),
    );
    const text = JSON.stringify({ ...PLANTED, ...Object(planted) });
    const key = { ...headersOf(operation), 'idempotency-key': `${PLANTED.idempotency_key}-${newId()}` };
    const attempts: readonly { body?: unknown; headers?: Record<string, string> }[] =
      operation.method === 'GET'
        ? [{}, { headers: { 'x-request-id': `${PLANTED.email} ` } }]
        : [
            ...(operation.body ? [{ body: planted }, { body: bodyOf(operation, idsOf(operation)) }] : [{}]),
            { body: text },
            { body: text.slice(0, -1) },
            { body: text.replaceAll('"', `"${PLANTED.account_number}`) },
            { body: text, headers: { 'content-type': 'text/plain' } },
          ];
    for (const { body, headers } of attempts) {
      for (const caller of signed(operation) ? [tenant] : [tenant, null]) {
        const answer = await attack.send(operation, caller, { url, body, headers: { ...key, ...headers } });
        learn(answer);
        seen.set(answer.statusCode, (seen.get(answer.statusCode) ?? 0) + 1);
        if (answer.statusCode < 400) continue;
        expect([operation.name, foundIn(answer.body)]).toEqual([operation.name, []]);
        expect([operation.name, answer.body]).toEqual([operation.name, expect.not.stringMatching(INTERNALS)]);
      }
    }
  }
  return seen;
}

const logged = (message: string) => lines.split('\n').filter((line) => line.includes(`"msg":"${message}"`)).length;

test('no secret and nothing personal is in any log line or refusal, whether it goes well or not', async () => {
  const seen = await callEverything();
  expect([200, 201, 202, 401, 415, 422].filter((status) => !seen.has(status))).toEqual([]);
  expect(seen.has(500)).toBe(false);
  expect(logged('request')).toBeGreaterThan(attack.operations.length);
  expect(secrets.size).toBeGreaterThan(Object.keys(PLANTED).length + 10);
  expect(foundIn(lines)).toEqual([]);
});

test('nor when the database refuses in the middle: 500, with what failed in the log and nothing of what was sent', async () => {
  const { rows } = await api.connection.pool.query<{ name: string }>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_name <> ALL ($1)`,
    [['api_keys', 'rate_limits', 'consumers', 'consumer_sessions', 'organizations']],
  );
  for (const { name } of rows)
    await api.connection.pool.query(`ALTER TABLE ${name} RENAME TO ${name.slice(0, 40)}_away`);
  const seen = await callEverything();
  expect(seen.get(500)).toBeGreaterThan(20);
  expect(logged('a request failed unexpectedly')).toBeGreaterThan(20);
  expect(foundIn(lines)).toEqual([]);
  expect(lines).not.toMatch(/insert into|select .+ from/i);
});
