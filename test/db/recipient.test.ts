import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRecipient, deactivateRecipient } from '../../db/commands/recipient.ts';
import { getRecipient, getRecipientForShare, lockRecipient } from '../../db/queries/recipient.ts';
import type { Recipient } from '../../domain/recipient.ts';
import { createTestApi, type TestApi } from '../support/api.ts';
import { untilBlocked } from '../support/database.ts';

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());

async function newRecipient(): Promise<Recipient> {
  const { orgId } = await api.createCaller();
  const bankDetails = { bank_name: 'National Commercial Bank', account_number: '404123456', currency: 'JMD' };
  const draft = {
    kind: 'vendor',
    entityType: 'business',
    name: 'Acme',
    country: 'JM',
    email: null,
    phone: null,
    bankDetails,
    mobileDetails: null,
    metadata: {},
  } as const;
  return await createRecipient(api.deps, orgId, draft);
}

describe('a recipient', () => {
  test('is found by its organization alone, however it is read', async () => {
    const { orgId, recipientId } = await newRecipient();
    const other = await api.createCaller();
    const { db } = api.connection;
    for (const read of [getRecipient, getRecipientForShare, lockRecipient]) {
      await expect(db.transaction((tx) => read(tx, other.orgId, recipientId))).rejects.toMatchObject({
        code: 'not_found',
      });
      await expect(db.transaction((tx) => read(tx, orgId, recipientId))).resolves.toMatchObject({ recipientId });
    }
  });

  test('never leaves the table with its sealed account number', async () => {
    const recipient = await newRecipient();
    const found = await getRecipient(api.connection.db, recipient.orgId, recipient.recipientId);
    expect(found).toEqual(recipient);
    for (const shown of [recipient, found]) expect(shown).not.toHaveProperty('accountNumberSealed');
  });

  test('that a settlement is being accepted for is deactivated after it, not during it', async () => {
    const { orgId, recipientId } = await newRecipient();
    const { db, pool } = api.connection;
    const steps: string[] = [];
    let deactivated: Promise<void> | undefined;
    await db.transaction(async (tx) => {
      await getRecipientForShare(tx, orgId, recipientId);
      deactivated = deactivateRecipient(api.deps, orgId, recipientId, 'test').then(() => {
        steps.push('deactivated');
      });
      await untilBlocked(pool, 1);
      expect((await getRecipientForShare(tx, orgId, recipientId)).isActive).toBe(true);
      steps.push('accepted');
    });
    await deactivated;
    expect(steps).toEqual(['accepted', 'deactivated']);
  });

  test('can be held by any number of settlements at once', async () => {
    const { orgId, recipientId } = await newRecipient();
    const { db } = api.connection;
    await db.transaction(async (tx) => {
      await getRecipientForShare(tx, orgId, recipientId);
      await db.transaction((other) => getRecipientForShare(other, orgId, recipientId));
    });
  });
});
