/**
 * Credentials, on every operation that takes an API key (contract §2, §3). Each operation is called with a body that no
 * schema accepts: a refused credential must be answered before the body is validated.
 */
import { Agent } from 'node:http';
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { SCOPES, type Scope, scopeCovers } from '../../domain/scope.ts';
import { generateApiKey } from '../../process/api-key.ts';
import { nameOf, OPERATIONS, type OperationRow } from '../contract/operations.ts';
import type { TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { type RawAnswer, sendRaw } from '../support/raw-request.ts';

const UNREADABLE_BODY = '{"amount": 1,';
const HOUR_MS = 3_600_000;
const ANYTHING: Record<string, string> = { cert_id: `CERT-${'0'.repeat(32)}` };

const test = withApi()
  .extend('origin', FILE, async ({ api }) => new URL(await api.app.listen({ host: '127.0.0.1', port: 0 })))
  .extend('send', FILE, ({ origin }, { onCleanup }) => {
    const agent = new Agent({ keepAlive: true });
    onCleanup(() => agent.destroy());
    return (row: OperationRow, lines: readonly string[], path = urlOf(row)) =>
      sendRaw(origin, { method: row.method, path, lines, body: hasBody(row) ? UNREADABLE_BODY : undefined }, agent);
  })
  /** A valid key of each scope, of the same organization. */
  .extend('keys', FILE, async ({ api, partner }): Promise<Record<Scope, string>> => {
    const keyOf = async (scope: Scope) => (await api.createKey(partner.orgId, scope)).apiKey;
    return {
      read: await keyOf('read'),
      recipients: await keyOf('recipients'),
      compliance: await keyOf('compliance'),
      settle: await keyOf('settle'),
      full: partner.apiKey,
    };
  })
  /** Keys that are not valid, by what is wrong with them. */
  .extend('invalid', FILE, async ({ api, partner }): Promise<Record<string, string>> => {
    const { orgId, apiKey } = partner;
    const before = new Date(Date.now() - HOUR_MS);
    const stored = async (values: Parameters<TestApi['createKey']>[2]) =>
      (await api.createKey(orgId, 'full', values)).apiKey;
    return {
      'of no known form': 'not-a-key',
      'with a wrong check digit': `${apiKey.slice(0, -1)}${apiKey.endsWith('0') ? '1' : '0'}`,
      'in another case': apiKey.replace('sk_local_', 'SK_local_'),
      'with a space inside': `${apiKey.slice(0, 20)} ${apiKey.slice(20)}`,
      unknown: generateApiKey('local-sandbox'),
      revoked: await stored({ status: 'revoked', revokedAt: before }),
      rotated: await stored({ status: 'rotated', rotatedTo: newId() }),
      expired: await stored({ expiresAt: before }),
      'of another environment by its text': generateApiKey('production'),
      'of another environment by its record': await stored({ environment: 'remote sandbox' }),
    };
  })
  /** The database once all keys exist. */
  .extend('digests', FILE, async ({ api, keys: _keys, invalid: _invalid }) => await digestTables(api.connection.pool));

const urlOf = (row: OperationRow): string =>
  row.path.replace(/\{([a-z_]+)\}/g, (_, name: string) => ANYTHING[name] ?? newId());
const hasBody = ({ method }: OperationRow): boolean => method !== 'GET' && method !== 'DELETE';

const refusal = ({ status, headers, body }: RawAnswer) => ({
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

// Before the first refused request.
test.beforeAll(({ digests: _digests }) => undefined);

describe.each(partnerOperations)('%s', (_name, row) => {
  test('401 credential_missing for a key in any other place', async ({ partner, send }) => {
    for (const lines of [
      [],
      ['X-API-Key', ''],
      ['Authorization', `Bearer ${partner.apiKey}`],
      ['X_API_Key', partner.apiKey],
      ['Content-Encoding', 'gzip'],
    ]) {
      expect(refusal(await send(row, lines))).toEqual(unauthorized('credential_missing'));
    }
    expect(refusal(await send(row, [], `${urlOf(row)}?api_key=${partner.apiKey}`))).toEqual(
      unauthorized('credential_missing'),
    );
  });

  test('401 credential_ambiguous for two keys, even if both are the same valid key', async ({ partner, send }) => {
    const { apiKey } = partner;
    for (const lines of [
      ['X-API-Key', apiKey, 'X-API-Key', apiKey],
      ['X-API-Key', apiKey, 'x-api-key', 'not-a-key'],
      ['X-API-Key', `${apiKey}, ${apiKey}`],
      ['X-API-Key', `${apiKey},`],
    ]) {
      expect(refusal(await send(row, lines))).toEqual(unauthorized('credential_ambiguous'));
    }
  });

  test('401 with the same body for every invalid key', async ({ send, invalid }) => {
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
  });

  test('403 scope_insufficient with the required scope for every lesser scope', async ({ send, keys }) => {
    const tooNarrow = SCOPES.filter((scope) => row.scope !== undefined && !scopeCovers(scope, row.scope));
    const answers = await Promise.all(tooNarrow.map((scope) => send(row, ['X-API-Key', keys[scope]])));
    expect(answers.map(({ status, body }) => [status, body['code'], body['required_scope']])).toEqual(
      tooNarrow.map(() => [403, 'scope_insufficient', row.scope]),
    );
  });

  test('the same request with a key of sufficient scope reaches validation', async ({ send, keys }) => {
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

test('no refused request has written anything', async ({ api, digests }) => {
  expect(await digestTables(api.connection.pool)).toEqual(digests);
});

/** Every key may rotate itself; here the request names another key, which needs a full key. */
const leastScopeFor = ({ path }: OperationRow, declared: Scope): Scope =>
  path === '/v1/orgs/keys/{key_id}/rotate' ? 'full' : declared;

test('401 from the moment that a key expires', async ({ api, clock }) => {
  clock.stop(new Date('2026-11-21T08:00:00.000Z'));
  const { orgId } = await api.createCaller();
  const key = await api.createKey(orgId, 'read', { expiresAt: new Date('2026-11-21T09:00:00.000Z') });
  const read = async () => (await api.call(key, 'GET', `/v1/orgs/${orgId}`)).statusCode;
  clock.stop(new Date('2026-11-21T08:59:59.999Z'));
  expect(await read()).toBe(200);
  clock.stop(new Date('2026-11-21T09:00:00.000Z'));
  expect(await read()).toBe(401);
});
