import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasOtherFullKey } from '../../db/queries/api-key.ts';
import { getOrganization, lockOrganization } from '../../db/queries/organization.ts';
import { createTestApi, type TestApi } from '../support/api.ts';
import { recipientBody } from '../support/partner.ts';

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());

const NOW = new Date('2026-11-21T08:00:00.000Z');
const later = new Date(NOW.getTime() + 1);

describe('an organization', () => {
  test('that does not exist is not found', async () => {
    await expect(getOrganization(api.connection.db, 'nobody')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('goes on with its work while its keys are being changed', async () => {
    const caller = await api.createCaller();
    await api.connection.db.transaction(async (tx) => {
      await lockOrganization(tx, caller.orgId);
      expect((await api.call(caller, 'POST', '/v1/recipients', recipientBody())).statusCode).toBe(201);
    });
  });
});

describe('another full key', () => {
  test.each([
    ['of another scope does not count', { scope: 'settle' }, false],
    ['that was rotated does not count', { status: 'rotated' }, false],
    ['that was revoked does not count', { status: 'revoked' }, false],
    ['that expires now does not count', { expiresAt: NOW }, false],
    ['that expires a moment later counts', { expiresAt: later }, true],
    ['that never expires counts', {}, true],
  ] as const)('%s', async (_case, stored, counts) => {
    const { orgId, keyId } = await api.createCaller('full');
    await api.createCaller('full');
    await api.createKey(orgId, 'full', stored);
    expect(await api.connection.db.transaction((tx) => hasOtherFullKey(tx, orgId, keyId, NOW))).toBe(counts);
  });
});
