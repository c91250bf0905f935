/** Organizations (contract §3). */
import { describe, expect } from 'vitest';
import type { TestApi } from '../support/api.ts';
import { dumpTables } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { callerOf, jsonOf } from '../support/partner.ts';

const BODY = { name: 'Acme Remit Ltd', country: 'JM', contact_email: 'ops@acme.example' };
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

const test = withApi();

const create = (api: TestApi, body: unknown) => api.call(null, 'POST', '/v1/orgs', body);

describe('POST /v1/orgs', () => {
  test('201 with the organization and its first key, which is a full key and works at once', async ({ api }) => {
    const answer = await create(api, BODY);
    expect([answer.statusCode, answer.headers['cache-control']]).toEqual([201, 'no-store']);
    const created = jsonOf(answer);
    expect(created).toEqual({
      org_id: expect.stringMatching(UUID_V7),
      ...BODY,
      status: 'active',
      environment: 'local sandbox',
      created_at: expect.stringMatching(MOMENT),
      key_id: expect.stringMatching(UUID_V7),
      api_key: expect.stringMatching(/^sk_local_[0-9A-Za-z]{49}$/),
    });
    const [key] = jsonOf(await api.call(callerOf(created), 'GET', `/v1/orgs/${created.org_id}/keys`));
    expect(key).toMatchObject({
      key_id: created.key_id,
      scope: 'full',
      status: 'active',
      prefix: created.api_key.slice(0, 12),
      expires_at: null,
    });
  });

  test('201 with the secret key only once: no read shows it and the database does not contain it', async ({ api }) => {
    const caller = callerOf(jsonOf(await create(api, BODY)));
    const reads = await Promise.all([
      api.call(caller, 'GET', `/v1/orgs/${caller.orgId}`),
      api.call(caller, 'GET', `/v1/orgs/${caller.orgId}/keys`),
    ]);
    const secret = caller.apiKey.slice(12);
    expect(reads.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    expect(reads.map(({ body }) => body).join()).not.toContain(secret);
    expect(await dumpTables(api.connection.pool)).not.toContain(secret);
  });

  test('201 with a name of 120 characters of any script', async ({ api }) => {
    const name = '🏝'.repeat(120);
    const answer = await create(api, { ...BODY, name });
    expect([answer.statusCode, jsonOf(answer).name]).toEqual([201, name]);
  });

  test.for([
    ['remote-sandbox', 'remote sandbox', 'sk_test_'],
    ['production', 'production', 'sk_live_'],
  ] as const)(
    '201 in %s with an organization and a key of that environment',
    async ([runtime, environment, prefix], { newApi }) => {
      const remote = await newApi({ runtime });
      const created = jsonOf(await remote.call(null, 'POST', '/v1/orgs', BODY));
      expect(created).toMatchObject({ environment, api_key: expect.stringContaining(prefix) });
    },
  );
});

describe('GET /v1/orgs/{org_id}', () => {
  test('200 with the organization and without its keys, for every scope', async ({ api }) => {
    const created = jsonOf(await create(api, BODY));
    const { key_id: _keyId, api_key: _apiKey, ...organization } = created;
    const reader = await api.createKey(created.org_id, 'read');
    const answer = await api.call(reader, 'GET', `/v1/orgs/${created.org_id}`);
    expect(answer.statusCode).toBe(200);
    expect(jsonOf(answer)).toEqual(organization);
  });
});
