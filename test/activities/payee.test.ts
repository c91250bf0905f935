/** A settlement pays who was its recipient when it was accepted (contract §4, §6). */
import { describe, expect } from 'vitest';
import { RAILS, type Rail } from '../../domain/corridor.ts';
import { freezePayee } from '../../domain/payee.ts';
import { withoutTriggers } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';

const test = withApi();

const OTHER_BANK = { bank_name: 'Other Bank', account_number: '999988887777', currency: 'JMD' };

test('a frozen payee keeps only the details of its rail', () => {
  const details = { bankDetails: OTHER_BANK, mobileDetails: { provider: 'MonCash', phone_number: '+50934101234' } };
  const person = { name: 'Marcia Brown', email: 'marcia@brown.example', phone: null, ...details };
  const kept = (rail: Rail) => freezePayee({ country: 'JM', entityType: 'individual' }, person, rail);
  const common = {
    name: 'Marcia Brown',
    country: 'JM',
    entityType: 'individual',
    bankDetails: null,
    mobileDetails: null,
  };
  expect(RAILS.map(kept)).toEqual([
    { ...common, rail: 'bank_transfer', bankDetails: details.bankDetails },
    { ...common, rail: 'mobile_money', mobileDetails: details.mobileDetails },
    { ...common, rail: 'cash_pickup' },
  ]);
});

describe('a recipient that is changed after acceptance', () => {
  test.for(['SANCTIONED Brown', 'PAYOUT REFUSED Brown'])(
    'changed to the name %s: the payee of acceptance is screened, paid and shown, with the last digits of its account',
    async (name, { api, partner, steps }) => {
      const id = await steps.acceptInternal({ name: 'Marcia Brown' });
      const { recipientId } = await steps.stored(id);
      await api.call(partner, 'PUT', `/v1/recipients/${recipientId}`, { name, bank_details: OTHER_BANK });
      await steps.activities.admitSettlement(steps.step(id));
      await steps.activities.sendPayout(steps.step(id));
      const settled = await steps.read(id);
      expect([settled.status, settled.payee]).toEqual([
        'settled',
        { name: 'Marcia Brown', country: 'JM', rail: 'bank_transfer', account_last4: '6789' },
      ]);
    },
  );
});

describe('a payee at rest', () => {
  test('a payee that no key opens is no payee of another name: the step fails and is tried again', async ({
    api,
    steps,
  }) => {
    const [first, second] = [await steps.acceptInternal(), await steps.acceptInternal()];
    const exchange = `UPDATE settlements SET payee_sealed =
      (SELECT payee_sealed FROM settlements WHERE settlement_id = $2) WHERE settlement_id = $1`;
    await withoutTriggers(api.owner.pool, (client) => client.query(exchange, [first, second]));
    await expect(steps.activities.admitSettlement(steps.step(first))).rejects.toThrow(/cannot be opened/);
    expect((await steps.stored(first)).status).toBe('accepted');
  });
});
