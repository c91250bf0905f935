/**
 * Credentials, on every operation that takes an API key (contract §2, §3). Each is called with a body that no schema
 * accepts: what answers before validation answers first.
 */
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateApiKey } from '../../api/http/api-key.ts';
import { newId } from '../../db/id.ts';
import { SCOPES, type Scope, scopeCovers } from '../../domain/scope.ts';
import { nameOf, OPERATIONS, type OperationRow } from '../contract/operations.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';

const UNREADABLE_BODY = '{"amount": 1,';
const HOUR_MS = 3_600_000;
const ANYTHING: Record<string, string> = { cert_id: `CERT-${'0'.repeat(32)}` };

let api: TestApi;
let origin: URL;
let valid: Caller;
/** A valid key of each scope, of the same organization. */
let keys: Record<Scope, string>;
/** Keys that are not valid, by what is wrong with them. */
let invalid: Record<string, string>;
/** No test of this file writes anything. */
let untouched: Record<string, string>;
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  api = await createTestApi();
  origin = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
  valid = await api.createCaller('full');
  const { orgId, apiKey } = valid;
  const before = new Date(Date.now() - HOUR_MS);
  const stored = async (values: Parameters<TestApi['createKey']>[2]) =>
    (await api.createKey(orgId, 'full', values)).apiKey;
  invalid = {
    'of no form at all': 'not-a-key',
    'with a wrong check': `${apiKey.slice(0, -1)}${apiKey.endsWith('0') ? '1' : '0'}`,
    'with another case': apiKey.replace('sk_local_', 'SK_local_'),
    'that is longer by a space within': `${apiKey.slice(0, 20)} ${apiKey.slice(20)}`,
    unknown: generateApiKey('local-sandbox'),
    revoked: await stored({ status: 'revoked', revokedAt: before }),
    rotated: await stored({ status: 'rotated', rotatedTo: newId() }),
    expired: await stored({ expiresAt: before }),
    'of another environment by its text': generateApiKey('production'),
    'of another environment by its record': await stored({ environment: 'remote sandbox' }),
  };
  const keyOf = async (scope: Scope) => (await api.createKey(orgId, scope)).apiKey;
  keys = {
    read: await keyOf('read'),
    recipients: await keyOf('recipients'),
    compliance: await keyOf('compliance'),
    settle: await keyOf('settle'),
    full: apiKey,
  };
  untouched = await digestTables(api.connection.pool);
});
afterAll(async () => {
  agent.destroy();
  await api.close();
});

const urlOf = (row: OperationRow): string =>
  row.path.replace(/\{([a-z_]+)\}/g, (_, name: string) => ANYTHING[name] ?? newId());
const hasBody = ({ method }: OperationRow): boolean => method !== 'GET' && method !== 'DELETE';

/** Calls with exactly these header lines. */
async function send(
  row: OperationRow,
  keyLines: readonly string[],
  url = urlOf(row),
): Promise<{ status: number; headers: Record<string, unknown>; body: Record<string, unknown> }> {
  const headers = [
    'Host',
    origin.host,
    ...keyLines,
    ...(hasBody(row) ? ['Content-Type', 'application/json', 'Content-Length', String(UNREADABLE_BODY.length)] : []),
  ];
  const request = httpRequest({
    host: origin.hostname,
    port: origin.port,
    method: row.method,
    path: url,
    headers,
    agent,
  });
  request.end(hasBody(row) ? UNREADABLE_BODY : undefined);
  const [response] = await once(request, 'response');
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return { status: response.statusCode, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
}

const refusal = ({ status, headers, body }: Awaited<ReturnType<typeof send>>) => ({
  status,
  code: body['code'],
  type: headers['content-type'],
  challenge: headers['www-authenticate'],
});

const unauthorized = (code: string) => ({
  status: 401,
  code,
  type: 'application/problem+json; charset=utf-8',
  challenge: 'ApiKey realm="settlement", header="X-API-Key"',
});

const partnerOperations = OPERATIONS.filter(({ auth }) => auth === 'api_key').map((row) => [nameOf(row), row] as const);

describe.each(partnerOperations)('%s', (_name, row) => {
  test('401 credential_missing without a key, whatever else carries one, and nothing is written', async () => {
    for (const lines of [
      [],
      ['X-API-Key', ''],
      ['Authorization', `Bearer ${valid.apiKey}`],
      ['X_API_Key', valid.apiKey],
    ]) {
      expect(refusal(await send(row, lines))).toEqual(unauthorized('credential_missing'));
    }
    expect(refusal(await send(row, [], `${urlOf(row)}?api_key=${valid.apiKey}`))).toEqual(
      unauthorized('credential_missing'),
    );
    expect(await digestTables(api.connection.pool)).toEqual(untouched);
  });

  test('401 credential_ambiguous for two header lines or two keys in one, even when they are the same valid key', async () => {
    const { apiKey } = valid;
    for (const lines of [
      ['X-API-Key', apiKey, 'X-API-Key', apiKey],
      ['X-API-Key', apiKey, 'x-api-key', 'not-a-key'],
      ['X-API-Key', `${apiKey}, ${apiKey}`],
      ['X-API-Key', `${apiKey},`],
    ]) {
      expect(refusal(await send(row, lines))).toEqual(unauthorized('credential_ambiguous'));
    }
  });

  test('401 with one and the same body for every key that is not valid, and nothing is written', async () => {
    const url = urlOf(row);
    const bodies = new Set<string>();
    for (const apiKey of Object.values(invalid)) {
      const answer = await send(row, ['X-API-Key', apiKey], url);
      expect(refusal(answer)).toEqual(unauthorized('credential_invalid'));
      const { request_id: requestId, ...same } = answer.body;
      expect(requestId).toBe(answer.headers['x-request-id']);
      bodies.add(JSON.stringify(same));
    }
    expect(bodies.size).toBe(1);
    expect(await digestTables(api.connection.pool)).toEqual(untouched);
  });

  test('403 scope_insufficient for every scope that does not cover it, naming the one that it needs, and nothing is written', async () => {
    const tooNarrow = SCOPES.filter((scope) => row.scope !== undefined && !scopeCovers(scope, row.scope));
    const answers = await Promise.all(tooNarrow.map((scope) => send(row, ['X-API-Key', keys[scope]])));
    expect(answers.map(({ status, body }) => [status, body['code'], body['required_scope']])).toEqual(
      tooNarrow.map(() => [403, 'scope_insufficient', row.scope]),
    );
    expect(await digestTables(api.connection.pool)).toEqual(untouched);
  });

  test('with a key whose scope covers it, the same request gets past both', async () => {
    for (const scope of SCOPES.filter(
      (held) => row.scope !== undefined && scopeCovers(held, leastScopeFor(row, row.scope)),
    )) {
      const { status, body } = await send(row, ['X-API-Key', keys[scope]]);
      if (hasBody(row))
        expect([status, body]).toEqual([422, { detail: [expect.objectContaining({ type: 'json_invalid' })] }]);
      else expect([401, 403]).not.toContain(status);
    }
  });
});

/** Every key may rotate itself, but the key that is asked for here is another one. */
const leastScopeFor = ({ path }: OperationRow, declared: Scope): Scope =>
  path === '/v1/orgs/keys/{key_id}/rotate' ? 'full' : declared;

test('401 from the moment that a key expires, by the clock of the service', async () => {
  let now = new Date('2026-11-21T08:00:00.000Z');
  const timed = await createTestApi({ deps: { now: () => now } });
  const { orgId } = await timed.createCaller();
  const key = await timed.createKey(orgId, 'read', { expiresAt: new Date('2026-11-21T09:00:00.000Z') });
  const read = async () => (await timed.call(key, 'GET', `/v1/orgs/${orgId}`)).statusCode;
  now = new Date('2026-11-21T08:59:59.999Z');
  expect(await read()).toBe(200);
  now = new Date('2026-11-21T09:00:00.000Z');
  expect(await read()).toBe(401);
  await timed.close();
});
