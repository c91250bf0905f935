/**
 * A settlement whose run was lost, and a cancellation of its run: what the first activities of the next run do. Between
 * the two runs, signals may have been lost.
 */
import { describe, expect } from 'vitest';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { recordEvidence } from '../../db/commands/evidence.ts';
import { lockEvidenceTarget } from '../../db/queries/settlement.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { BY_WIRE } from '../support/settlement.ts';
import { complete, openVerification } from '../support/verification.ts';
import { whileWritesFail } from './failing-write.ts';

const test = withApi().extend('world', FILE, ({ api, partner, steps }) => ({
  deactivate: async (id: string): Promise<void> => {
    const { recipientId } = await steps.stored(id);
    await api.call(partner, 'DELETE', `/v1/recipients/${recipientId}`);
  },
  /** The rail confirms the payout. */
  confirm: (id: string) =>
    api.connection.db.transaction(async (tx) => {
      const settlement = (await lockEvidenceTarget(tx, id)) ?? expect.fail('no settlement');
      await recordEvidence(tx, { settlement, exceptions: [] }, payoutAnswer(id, 'payout_confirmed'), {
        at: new Date(),
        requestId: 'test',
      });
    }),
  /** A payout that was sent, and whose outcome is not known. */
  payingOut: async (): Promise<string> => {
    const id = await steps.acceptInternal({ name: 'PAYOUT PENDING' });
    await steps.activities.admitSettlement(steps.step(id));
    await steps.activities.sendPayout(steps.step(id));
    return id;
  },
}));

describe('a run that starts', () => {
  test('applies in awaiting_funds the evidence that no run has reviewed', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    await sendBankledger(api, bankledgerBody(id));
    expect(await steps.activities.admitSettlement(steps.step(id))).toMatchObject({ status: 'funded' });
  });

  test('sees in compliance_hold the verification, and the money that came meanwhile', async ({
    api,
    partner,
    steps,
  }) => {
    const id = await steps.waiting({ ...BY_WIRE, amount: '2000.00' });
    const { recipientId } = await steps.stored(id);
    const { verification_id: verificationId } = await openVerification(api, partner, recipientId);
    await complete(api, partner, verificationId, { status: 'verified' });
    await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 200_000 }));
    expect(await steps.activities.admitSettlement(steps.step(id))).toMatchObject({ status: 'funded' });
  });

  test('settles in paying_out a payout that was confirmed, although the recipient is inactive now', async ({
    world,
    steps,
  }) => {
    const id = await world.payingOut();
    await world.deactivate(id);
    await world.confirm(id);
    expect(await steps.activities.admitSettlement(steps.step(id))).toMatchObject({ status: 'settled' });
  });

  test('neither fails nor calls the rail in paying_out for a recipient who is inactive now', async ({
    world,
    steps,
  }) => {
    const id = await world.payingOut();
    await world.deactivate(id);
    expect(await steps.activities.admitSettlement(steps.step(id))).toMatchObject({ status: 'paying_out' });
    expect(await steps.activities.sendPayout(steps.step(id))).toMatchObject({
      status: 'paying_out',
      failureCode: null,
    });
  });

  test('asks for a review after three days in paying_out, and sends nothing', async ({ world, steps }) => {
    const id = await world.payingOut();
    await world.deactivate(id);
    const { expiresAt } = await steps.stored(id);
    expect(await steps.activities.sendPayout(steps.step(id, expiresAt?.getTime()))).toMatchObject({
      status: 'needs_review',
    });
  });
});

describe('a cancellation of the run', () => {
  test('carried out twice, changes nothing the second time', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    expect(await steps.activities.cancelOnRequest(steps.step(id))).toEqual({ status: 'canceled' });
    await expectUnchanged(api.connection.pool, async () => {
      expect(await steps.activities.cancelOnRequest(steps.step(id))).toEqual({ status: 'canceled' });
    });
  });

  test('changes nothing past awaiting_funds', async ({ world, api, steps }) => {
    for (const [id, status] of [
      [await world.payingOut(), 'paying_out'],
      [await steps.inReview(), 'needs_review'],
    ] as const) {
      await expectUnchanged(api.connection.pool, async () => {
        expect(await steps.activities.cancelOnRequest(steps.step(id))).toEqual({ status });
      });
    }
  });

  test.for(['settlement_transitions', 'events', 'audit_entries'])(
    'failing while it writes %s, changes nothing, and its retry completes it',
    async (table, { api, steps }) => {
      const id = await steps.waiting(BY_WIRE);
      const canceling = () => steps.activities.cancelOnRequest(steps.step(id));
      await expectUnchanged(api.connection.pool, () =>
        whileWritesFail(api.owner.pool, table, () => expect(canceling()).rejects.toThrow()),
      );
      expect(await canceling()).toEqual({ status: 'canceled' });
    },
  );
});
