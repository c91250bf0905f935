/** `refund record`: an operator records what was given back outside of the service (contract §6). */
import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { events } from '../../db/schema/index.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { BY_WIRE, moveToProduction } from '../support/settlement.ts';

const AUDIT_ARGS = ['--operator', 'ana', '--note', 'sent back by wire', '--yes'];

const test = withApi()
  .extend('ops', FILE, ({ api }) => createOps(api.connection.db))
  .extend('overpaid', FILE, ({ api, steps }) => async (): Promise<string> => {
    const settlementId = await steps.waiting(BY_WIRE);
    await sendBankledger(api, bankledgerBody(settlementId, { amount_reconciled: 32_000 }));
    await steps.activities.sendPayout(steps.step(settlementId));
    return settlementId;
  })
  .extend(
    'record',
    FILE,
    ({ ops }) =>
      (settlementId: string, amount: string, reference: string, ...more: string[]) =>
        ops('refund', 'record', settlementId, '--amount', amount, '--reference', reference, ...AUDIT_ARGS, ...more),
  );

test('what is due back falls until nothing is due, and each refund is one event and one audit entry', async ({
  api,
  steps,
  overpaid,
  record,
  partner,
}) => {
  const settlementId = await overpaid();
  expect(await record(settlementId, '50', 'TRX 1')).toEqual({
    exitCode: 0,
    printed: ['Recorded. Still due back: 20.00 USD.'],
    warned: [],
  });
  const { printed } = await record(settlementId, '20.00', 'TRX 2', '--json');
  const answer = { settlement_id: settlementId, amount_refund_due: '0.00', currency: 'USD' };
  expect(printed.map((line) => JSON.parse(line))).toEqual([answer]);
  const money = { amount_received: '320.00', amount_refund_due: '0.00', amount_refunded: '70.00' };
  expect(await steps.read(settlementId)).toMatchObject({ status: 'settled', ...money });
  const written = await api.connection.db.select().from(events).where(eq(events.objectId, settlementId));
  const refunds = written.filter(({ type }) => type === 'settlement.refunded');
  expect(refunds.map(({ body }) => JSON.parse(body.toString()).data)).toMatchObject([
    { amount_refund_due: '20.00', amount_refunded: '50.00' },
    money,
  ]);
  const entry = { orgId: partner.orgId, action: 'refund_record', operator: 'ana' };
  expect(await listAudit(api.connection.db, settlementId)).toEqual([
    { ...entry, note: '50.00 USD by TRX 1: sent back by wire' },
    { ...entry, note: '20.00 USD by TRX 2: sent back by wire' },
  ]);
});

test('a reference is recorded once, and never with another amount', async ({ api, steps, overpaid, record }) => {
  const settlementId = await overpaid();
  await record(settlementId, '50.00', 'TRX 1');
  expect(await record(settlementId, '50.00', ' TRX 1 ')).toMatchObject({
    exitCode: 0,
    printed: ['Recorded. Still due back: 20.00 USD.'],
  });
  expect(await record(settlementId, '10.00', 'TRX 1')).toMatchObject({
    exitCode: 1,
    warned: ['Refused, state_conflict: This reference is recorded with another amount.'],
  });
  expect((await steps.read(settlementId)).amount_refunded).toBe('50.00');
  expect(await listAudit(api.connection.db, settlementId)).toHaveLength(1);
});

test.for<[string, number, string, string]>([
  ['more than is due', 1, '70.01', 'TRX 1'],
  ['nothing', 1, '0.00', 'TRX 1'],
  ['an amount with too many digits', 2, '50.001', 'TRX 1'],
  ['no amount', 2, 'much', 'TRX 1'],
  ['an empty reference', 2, '50.00', ' '],
  ['a reference of two lines', 2, '50.00', 'TRX\n1'],
  ['a reference of 141 characters', 2, '50.00', 'x'.repeat(141)],
])('%s exits with %i, and nothing is written', async ([, exitCode, amount, reference], { api, overpaid, record }) => {
  const settlementId = await overpaid();
  const result = await expectUnchanged(api.connection.pool, () => record(settlementId, amount, reference));
  expect(result).toMatchObject({ exitCode, printed: [] });
});

test('no refund is recorded for a settlement of another environment', async ({ api, overpaid, record }) => {
  const settlementId = await overpaid();
  await moveToProduction(api, settlementId);
  await expectUnchanged(api.connection.pool, async () => {
    expect(await record(settlementId, '50.00', 'TRX 1')).toMatchObject({ exitCode: 1, printed: [] });
  });
});

test('nothing is due of a settlement that holds its money, or that does not exist', async ({ api, steps, record }) => {
  const settlementId = await steps.waiting(BY_WIRE);
  await sendBankledger(api, bankledgerBody(settlementId, { amount_reconciled: 10_000 }));
  await expectUnchanged(api.connection.pool, async () => {
    expect((await record(settlementId, '100.00', 'TRX 1')).exitCode).toBe(1);
    expect((await record('stl_none', '100.00', 'TRX 1')).exitCode).toBe(1);
  });
});
