/**
 * No log line and no refusal contains a secret or personal data that a caller sends or receives: at the most detailed
 * log level, and also when the database fails during a request.
 */
import { Writable } from 'node:stream';
import { expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { createLogger } from '../../process/logger.ts';
import { TEST_SECRETS } from '../support/api.ts';
import type { SeenAnswer } from '../support/conformance.ts';
import type { DescribedOperation } from './document.ts';
import { withAttack } from './fixture.ts';
import { foundIn, PERSON, SHOWN_ONCE } from './planted.ts';
import { bodyOf, headersOf, type Ids, urlOf } from './sample.ts';
import { type Attack, idsOf, type Tenant } from './world.ts';

/** Each value is valid in its field, and appears nowhere else by chance. */
const PLANTED = {
  ...PERSON,
  contact_email: 'owner.quillfeather@planted.example',
  reference: 'Planted reference 77',
  user_reference: 'planted-payer-4411',
  idempotency_key: 'planted-key-0123456789abcdef',
} as const;

/**
 * What must not appear anywhere, by what it is, and the lines that were logged. Each is collected over the whole file.
 */
const secrets = new Map<string, string>([
  ...Object.entries(PLANTED),
  ["the processor's secret", TEST_SECRETS.cardproc],
]);
let lines = '';
const sink = new Writable({
  write: (chunk: Buffer, _encoding, done) => {
    lines += chunk.toString();
    done();
  },
});

/** The tenant is a new one in each test: some operations end its credentials. */
const test = withAttack({ logger: createLogger({ level: 'trace', name: 'api' }, sink) }).extend(
  'callEverything',
  async ({ attack }) => {
    const tenant = await attack.createTenant();
    secrets.set(`api key ${secrets.size}`, tenant.partner.apiKey);
    secrets.set(`session ${secrets.size}`, tenant.sessionToken);
    secrets.set(`bank token ${secrets.size}`, tenant.partnerIds.banklink_account_token);
    return () => callEverything(attack, tenant);
  },
);

/** No refusal contains a stack trace, a file name or a statement. */
const INTERNALS = /\bat .+:\d+|node_modules|\.ts\b|\bselect\b.+\bfrom\b|insert into|relation "|drizzle|postgres/i;

function learn(answer: SeenAnswer): void {
  if (answer.statusCode >= 300 || answer.body === '') return;
  const shown = JSON.parse(answer.body);
  for (const field of [...SHOWN_ONCE, 'link_token'])
    if (typeof shown[field] === 'string') secrets.set(`${field} ${secrets.size}`, shown[field]);
}

/** These end the caller's own credential, so they come last. */
const ENDING = ['POST /v1/orgs/keys/{key_id}/rotate', 'DELETE /v1/orgs/keys/{key_id}', 'POST /consumer/auth/logout'];

/** The requests of an operation: one with every planted value that it has a field for, then each with one fault. */
function attemptsOf(operation: DescribedOperation, ids: Ids): { body?: unknown; headers?: Record<string, string> }[] {
  if (operation.method === 'GET') return [{}, { headers: { 'x-request-id': `${PLANTED.email} ` } }];
  const planted = bodyOf(
    operation,
    { ...PLANTED, ...ids },
    Object.keys(PLANTED).filter((field) => Object.hasOwn(operation.body?.properties ?? {}, field)),
  );
  const text = JSON.stringify({ ...PLANTED, ...Object(planted) });
  return [
    ...(operation.body ? [{ body: planted }, { body: bodyOf(operation, ids) }] : [{}]),
    { body: text },
    { body: text.slice(0, -1) },
    { body: text.replaceAll('"', `"${PLANTED.account_number}`) },
    { body: text, headers: { 'content-type': 'text/plain' } },
  ];
}

/** Calls every operation in every way, with and without a credential. Gives how often each status was answered. */
async function callEverything(attack: Attack, tenant: Tenant): Promise<Map<number, number>> {
  const seen = new Map<number, number>();
  const ending = ({ name }: DescribedOperation) => ENDING.includes(name);
  for (const operation of [...attack.operations.filter((each) => !ending(each)), ...attack.operations.filter(ending)]) {
    const ids = idsOf(tenant, operation);
    const url = urlOf(operation, ids);
    const key = { ...headersOf(operation), 'idempotency-key': `${PLANTED.idempotency_key}-${newId()}` };
    const callers = operation.access.auth === 'signature' ? [tenant] : [tenant, null];
    for (const { body, headers } of attemptsOf(operation, ids)) {
      for (const caller of callers) {
        const answer = await attack.send(operation, caller, { url, body, headers: { ...key, ...headers } });
        learn(answer);
        seen.set(answer.statusCode, (seen.get(answer.statusCode) ?? 0) + 1);
        if (answer.statusCode < 400) continue;
        expect([operation.name, foundIn(answer.body, secrets)]).toEqual([operation.name, []]);
        expect([operation.name, answer.body]).toEqual([operation.name, expect.not.stringMatching(INTERNALS)]);
      }
    }
  }
  return seen;
}

const logged = (message: string) => lines.split('\n').filter((line) => line.includes(`"msg":"${message}"`)).length;

test('no secret and no personal data in any log line or refusal', async ({ attack, callEverything }) => {
  const seen = await callEverything();
  expect([200, 201, 202, 401, 415, 422].filter((status) => !seen.has(status))).toEqual([]);
  expect(seen.has(500)).toBe(false);
  expect(logged('request')).toBeGreaterThan(attack.operations.length);
  expect(secrets.size).toBeGreaterThan(Object.keys(PLANTED).length + 10);
  expect(foundIn(lines, secrets)).toEqual([]);
});

// It calls every operation against a broken database: 4 s alone, over 20 s on a machine with other work.
test('500 when the database fails, with the error in the log but no secret and no personal data', async ({
  api,
  callEverything,
}) => {
  const { rows } = await api.connection.pool.query<{ name: string }>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables
     WHERE table_schema = 'public' AND table_name <> ALL ($1)`,
    [['api_keys', 'rate_limits', 'consumers', 'consumer_sessions', 'organizations']],
  );
  for (const { name } of rows) await api.owner.pool.query(`ALTER TABLE ${name} RENAME TO ${name.slice(0, 40)}_away`);
  const seen = await callEverything();
  expect(seen.get(500)).toBeGreaterThan(20);
  expect(logged('a request failed unexpectedly')).toBeGreaterThan(20);
  expect(foundIn(lines, secrets)).toEqual([]);
  expect(lines).not.toMatch(/insert into|select .+ from/i);
});
