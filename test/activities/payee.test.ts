/** A settlement pays who was its recipient when it was accepted (contract §4, §6). */
import { describe, expect } from 'vitest';
import type { TestApi } from '../support/api.ts';
import { dumpTables, withoutTriggers } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import type { Json } from '../support/partner.ts';
import { BY_WIRE, type Steps } from '../support/settlement.ts';

const test = withApi();

const OTHER_BANK = { bank_name: 'Other Bank', account_number: '999988887777', currency: 'JMD' };

const change = (api: TestApi, partner: Parameters<TestApi['call']>[0], recipientId: string, body: Json) =>
  api.call(partner, 'PUT', `/v1/recipients/${recipientId}`, body);

/** Runs an internally funded settlement to its end. */
const runToEnd = async (steps: Steps, id: string): Promise<Json> => {
  await steps.activities.admitSettlement(steps.step(id));
  await steps.activities.sendPayout(steps.step(id));
  return await steps.read(id);
};

test('the payee is shown to its owner with the last digits of the account', async ({ steps }) => {
  const id = await steps.acceptInternal({ name: 'Marcia Brown' });
  expect((await steps.read(id)).payee).toEqual({
    name: 'Marcia Brown',
    country: 'JM',
    rail: 'bank_transfer',
    account_last4: '6789',
  });
});

describe('a recipient that is changed after acceptance', () => {
  test.for(['SANCTIONED Brown', 'PAYOUT REFUSED Brown'])(
    'changed to the name %s: the payee of acceptance is screened and paid',
    async (name, { api, partner, steps }) => {
      const id = await steps.acceptInternal({ name: 'Marcia Brown' });
      const { recipientId } = await steps.stored(id);
      await change(api, partner, recipientId, { name, bank_details: OTHER_BANK });
      const settled = await runToEnd(steps, id);
      expect([settled.status, settled.payee]).toEqual([
        'settled',
        { name: 'Marcia Brown', country: 'JM', rail: 'bank_transfer', account_last4: '6789' },
      ]);
    },
  );
});

describe('a payee at rest', () => {
  test('the account number of a payee is in no table in clear', async ({ api, steps }) => {
    await steps.acceptInternal({ bank_details: { ...OTHER_BANK, account_number: 'CANARY55512345' } });
    expect(await dumpTables(api.connection.pool)).not.toContain('CANARY55512345');
  });

  test.for([
    ['its digest', `UPDATE settlements SET payee_sha256 = 'other' WHERE settlement_id = $1`, /permanent/],
    ['its sealed text', `UPDATE settlements SET payee_sealed = 'other' WHERE settlement_id = $1`, /permanent/],
    ['its sealed text taken away', `UPDATE settlements SET payee_sealed = NULL WHERE settlement_id = $1`, /permanent/],
    ['the amount', 'UPDATE settlements SET amount_minor = amount_minor + 1 WHERE settlement_id = $1', /permanent/],
  ] as const)('the database refuses to change %s', async ([, statement, refusal], { api, steps }) => {
    const id = await steps.acceptInternal();
    await expect(api.owner.pool.query(statement, [id])).rejects.toThrow(refusal);
  });

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

describe('the database refuses to end a settlement', () => {
  test.for([
    [
      'while money is held for it',
      `INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at) VALUES
        ($1, 'collection:x', 0, 'bank_clearing', 'USD', 100, now()), ($1, 'collection:x', 1, 'settlement_funds', 'USD', -100, now())`,
    ],
    [
      'while money that came in is not booked',
      'UPDATE settlements SET amount_received_minor = 100 WHERE settlement_id = $1',
    ],
    [
      'while evidence is pending',
      `INSERT INTO evidence (evidence_id, settlement_id, provider, event_id, kind, sha256, pending, reversed_minor, received_at)
        VALUES ('pending-' || $1::text, $1, 'bankledger', 'pending-' || $1::text, 'collection_failed', '', true, 0, now())`,
    ],
  ] as const)('%s', async ([rule, statement], { api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    await api.connection.pool.query(statement, [id]);
    const end = `WITH moved AS (
        UPDATE settlements SET status = 'canceled', version = version + 1 WHERE settlement_id = $1 RETURNING version
      ) INSERT INTO settlement_transitions (settlement_id, sequence, from_status, to_status, at)
      SELECT $1, version, 'awaiting_funds', 'canceled', now() FROM moved`;
    await expect(api.connection.pool.query(end, [id])).rejects.toThrow(rule);
    expect((await steps.stored(id)).status).toBe('awaiting_funds');
  });
});
