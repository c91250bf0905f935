/** `erase recipient`: two operators make the personal data of a recipient unreadable, permanently. */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import type { TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { createRecipient, jsonOf, recipientBody, settleBody } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';

const NAME = 'Zenobia Quillfeather';
const RESTRICT_VIOLATION = '23001';

const test = withApi().extend('erase', ({ api, clock }) => {
  const ops = createOps(api.connection.db, { now: clock.now });
  return (recipientId: string, operator: string, ...rest: string[]) =>
    ops('erase', 'recipient', recipientId, '--operator', operator, '--note', 'the person asked', '--yes', ...rest);
});

const deactivate = (api: TestApi, partner: Parameters<TestApi['call']>[0], id: string) =>
  api.call(partner, 'DELETE', `/v1/recipients/${id}`);

test('a second operator erases: reads show no personal data, and what was paid stays readable', async ({
  api,
  partner,
  steps,
  erase,
}) => {
  const key = { 'idempotency-key': newId() };
  const draft = recipientBody({ name: NAME, metadata: { staff: '4711' } });
  const { recipient_id: id } = jsonOf(await api.call(partner, 'POST', '/v1/recipients', draft, key));
  const accepted = await api.call(partner, 'POST', '/v2/settle', settleBody(id), { 'idempotency-key': newId() });
  const { settlement_id: settlementId } = jsonOf(accepted);
  const before = await steps.read(settlementId);
  await api.call(partner, 'POST', `/v2/settle/${settlementId}/cancel`);
  await deactivate(api, partner, id);

  expect((await erase(id, 'ana')).printed[0]).toMatch(/^Requested\./);
  expect((await erase(id, 'bo')).printed[0]).toContain('is erased');
  const shown = jsonOf(await api.call(partner, 'GET', `/v1/recipients/${id}`));
  const nothing = { name: null, email: null, phone: null, bank_details: null, mobile_details: null, metadata: {} };
  expect(shown).toMatchObject({ ...nothing, is_active: false, country: 'JM', erased_at: expect.any(String) });
  const after = await steps.read(settlementId);
  expect(after.payee).toEqual({ ...before.payee, name: null, account_last4: null });
  expect(after.amount).toBe(before.amount);
  expect(jsonOf(await api.call(partner, 'GET', '/v1/recipients'))[0].name).toBeNull();
  const replayed = await api.call(partner, 'POST', '/v1/recipients', draft, key);
  expect(jsonOf(replayed)).toMatchObject({ code: 'idempotency_key_reused', mismatch: [] });
  expect((await api.call(partner, 'PUT', `/v1/recipients/${id}`, { name: NAME })).statusCode).toBe(409);
  expect((await api.call(partner, 'GET', `/v1/kyc/status/${id}`)).statusCode).toBe(200);
  const { rows } = await api.connection.pool.query('SELECT data_key_sealed FROM recipients WHERE recipient_id = $1', [
    id,
  ]);
  expect(rows).toEqual([{ data_key_sealed: null }]);
  expect(await listAudit(api.connection.db, id)).toMatchObject([
    { action: 'recipient_erase_request', operator: 'ana', orgId: partner.orgId },
    { action: 'recipient_erase', operator: 'bo', orgId: partner.orgId },
  ]);
  await expect(
    api.owner.pool.query('UPDATE recipients SET erased_at = NULL WHERE recipient_id = $1', [id]),
  ).rejects.toMatchObject({ code: RESTRICT_VIOLATION });
});

describe('is refused, and nothing is written,', () => {
  test('for an active recipient, one with an open settlement, and an unknown one', async ({ api, partner, erase }) => {
    const [active, paid] = [await createRecipient(api, partner), await createRecipient(api, partner)];
    await api.call(partner, 'POST', '/v2/settle', settleBody(paid), { 'idempotency-key': newId() });
    await deactivate(api, partner, paid);
    await expectUnchanged(api.connection.pool, async () => {
      for (const id of [active, paid, newId()])
        expect(await erase(id, 'ana')).toMatchObject({ exitCode: 1, printed: [] });
    });
  });

  test('for one operator alone, however the name is spelled', async ({ api, partner, erase }) => {
    const id = await createRecipient(api, partner);
    await deactivate(api, partner, id);
    await erase(id, 'ana');
    await expectUnchanged(api.connection.pool, async () => {
      expect(await erase(id, ' ANA ')).toMatchObject({ exitCode: 1, printed: [] });
    });
  });
});
