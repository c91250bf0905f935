import { describe, expect } from 'vitest';
import { hasOtherFullKey } from '../../db/queries/api-key.ts';
import { lockOrganization } from '../../db/queries/organization.ts';
import { apiKeyStatus } from '../../domain/api-key.ts';
import { withApi } from '../support/fixture.ts';
import { recipientBody } from '../support/partner.ts';

const NOW = new Date('2026-11-21T08:00:00.000Z');
const LATER = new Date(NOW.getTime() + 1);

const test = withApi();

describe('an organization', () => {
  test('can be used by its keys while its row is locked', async ({ api, partner }) => {
    await api.connection.db.transaction(async (tx) => {
      await lockOrganization(tx, partner.orgId);
      expect((await api.call(partner, 'POST', '/v1/recipients', recipientBody())).statusCode).toBe(201);
    });
  });
});

describe('another full key', () => {
  test.for([
    ['of another scope does not count', { scope: 'settle' }, false],
    ['that was rotated does not count', { status: 'rotated' }, false],
    ['that was revoked does not count', { status: 'revoked' }, false],
    ['that expires now does not count', { expiresAt: NOW }, false],
    ['that expires a millisecond later counts', { expiresAt: LATER }, true],
    ['that never expires counts', {}, true],
  ] as const)('%s', async ([_case, stored, counts], { api }) => {
    const { orgId, keyId } = await api.createCaller('full');
    await api.createCaller('full');
    const key = { status: 'active', expiresAt: null, ...stored } as const;
    if (!('scope' in key)) expect(apiKeyStatus(key, NOW) === 'active').toBe(counts);
    await api.createKey(orgId, 'full', stored);
    expect(await api.connection.db.transaction((tx) => hasOtherFullKey(tx, orgId, [keyId], NOW))).toBe(counts);
  });
});
