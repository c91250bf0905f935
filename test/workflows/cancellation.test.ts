/**
 * "Request Cancellation" of Temporal UI, on each kind of run (contract §6): real PostgreSQL, and a clock that jumps.
 */
import { describe, expect, vi } from 'vitest';
import { requestResolution } from '../../db/commands/review.ts';
import { sandboxCollectionWorkflowId, settlementWorkflowId, verificationWorkflowId } from '../../domain/workflow-id.ts';
import { createApplicant, resolveReview } from '../../workflows/contract.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { losingOutboxRows, withoutTriggers } from '../support/database.ts';
import { FILE } from '../support/fixture.ts';
import { listAudit } from '../support/ops.ts';
import { createRecipient, type Json, settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { BY_WIRE } from '../support/settlement.ts';
import { complete, openVerification, statusOf } from '../support/verification.ts';
import { createBarrier, untilTimers, withJumpingClock } from './fixture.ts';

const DAY_MS = 24 * 60 * 60_000;

const test = withJumpingClock().extend('world', FILE, ({ api, partner, steps, time }) => {
  const handle = (workflowId: string) => time.client.workflow.getHandle(workflowId);
  const countEvents = async (workflowId: string, attributes: string): Promise<number> => {
    const { events } = await handle(workflowId).fetchHistory();
    return (events ?? []).filter((event) => Reflect.get(event, attributes)).length;
  };
  /** A wire of 250.00 that waits for its money. */
  const waiting = async (recipient: Json = {}): Promise<string> => {
    const id = await settle(api, partner, BY_WIRE, recipient);
    await untilTimers(time, settlementWorkflowId(id));
    return id;
  };
  return {
    settle: () => settle(api, partner),
    waiting,
    /** A wire whose payout has no answer. */
    payingOut: async (): Promise<string> => {
      const id = await waiting({ name: 'PAYOUT PENDING' });
      await sendBankledger(api, bankledgerBody(id));
      await untilTimers(time, settlementWorkflowId(id), 2);
      return id;
    },
    read: steps.read,
    untilStatus: (id: string, status: string) => untilStatus(api, partner, id, status),
    handle,
    /** Requests the cancellation of a run, and waits until its workflow has handled the request. */
    requestCancel: async (workflowId: string): Promise<void> => {
      await handle(workflowId).cancel();
      await vi.waitUntil(async () => {
        const { events } = await handle(workflowId).fetchHistory();
        const kinds = (events ?? []).map((event) => Object.keys(event).find((key) => key.endsWith('Attributes')));
        const requested = kinds.indexOf('workflowExecutionCancelRequestedEventAttributes');
        return requested >= 0 && kinds.indexOf('workflowTaskCompletedEventAttributes', requested) > requested;
      }, WAIT);
    },
    countEvents,
    endOf: async (id: string): Promise<[string, unknown]> => {
      const run = handle(settlementWorkflowId(id));
      const result = await run.result();
      return [(await run.describe()).status.name, result];
    },
    audit: (id: string) => listAudit(api.connection.db, id),
  };
});
// Starts the servers in a hook: its timeout is longer than a test's.
test.beforeAll(({ world: _ }) => undefined);
test.afterEach(({ time }) => time.restore());

const CANCELED = ['COMPLETED', { status: 'canceled', failure: null }];

describe('a cancellation of the run of a settlement', () => {
  test('cancels it in accepted, even while it is being admitted', async ({ world, time, activities }) => {
    const release = createBarrier();
    time.override.admitSettlement = async (input) => {
      await release.opened;
      return await activities.admitSettlement(input);
    };
    const id = await world.settle();
    await vi.waitUntil(
      () =>
        world
          .handle(settlementWorkflowId(id))
          .describe()
          .catch(() => undefined),
      WAIT,
    );
    await world.handle(settlementWorkflowId(id)).cancel();
    expect((await world.untilStatus(id, 'canceled')).timeline.map(({ status }: Json) => status)).toEqual([
      'accepted',
      'canceled',
    ]);
    release.open();
    expect(await world.endOf(id)).toEqual(CANCELED);
  });

  test('cancels it in awaiting_funds, and a part that came is due back', async ({ world, api, partner }) => {
    const id = await world.waiting();
    await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 10_000 }, 'partially_reconciled'));
    await world.handle(settlementWorkflowId(id)).cancel();
    expect(await world.untilStatus(id, 'canceled')).toMatchObject({
      amount_received: '100.00',
      amount_refund_due: '100.00',
    });
    expect(await world.endOf(id)).toEqual(CANCELED);
    expect(await world.audit(id)).toEqual([
      { orgId: partner.orgId, action: 'settlement_cancel', operator: 'unknown', note: 'Temporal UI' },
    ]);
  });

  test('does not interrupt the payout, which is sent once and settles', async ({ world, api, time, activities }) => {
    const release = createBarrier();
    const sent = createBarrier();
    time.override.sendPayout = async (input) => {
      sent.open();
      await release.opened;
      return await activities.sendPayout(input);
    };
    const id = await world.waiting();
    await sendBankledger(api, bankledgerBody(id));
    await sent.opened;
    await world.requestCancel(settlementWorkflowId(id));
    expect((await world.read(id)).status).toBe('awaiting_funds');
    release.open();
    await world.untilStatus(id, 'settled');
    expect(await world.endOf(id)).toEqual(['COMPLETED', { status: 'settled', failure: null }]);
    expect(await world.countEvents(settlementWorkflowId(id), 'activityTaskCancelRequestedEventAttributes')).toBe(0);
    expect(await world.countEvents(settlementWorkflowId(id), 'activityTaskScheduledEventAttributes')).toBe(1);
  });

  test('changes nothing in paying_out, also the second time; the payout is confirmed later', async ({
    world,
    api,
    partner,
  }) => {
    const id = await world.payingOut();
    const before = await world.read(id);
    await world.requestCancel(settlementWorkflowId(id));
    // Temporal may refuse the second request, or record it again.
    await world
      .handle(settlementWorkflowId(id))
      .cancel()
      .catch(() => undefined);
    expect(await world.read(id)).toEqual(before);
    expect((await world.handle(settlementWorkflowId(id)).describe()).status.name).toBe('RUNNING');
    const event = { event: 'payout_confirmed' };
    await api.call(partner, 'POST', `/v2/test-helpers/settlements/${id}/events`, event);
    await world.untilStatus(id, 'settled');
  });

  test('leaves a review to the operators, whose command is carried out', async ({ world, api, time }) => {
    const id = await world.payingOut();
    await time.advance(3 * DAY_MS + 1_000);
    await world.untilStatus(id, 'needs_review');
    await world.requestCancel(settlementWorkflowId(id));
    const asked = { outcome: 'paid', operator: 'pat', note: 'The bank confirmed it.' } as const;
    // Without the signal, by which the run would carry it out by itself.
    await losingOutboxRows(api.owner.pool, () => requestResolution(api.deps, id, asked));
    const run = world.handle(settlementWorkflowId(id));
    expect(await run.executeUpdate(resolveReview)).toEqual({ status: 'settled' });
    expect(await world.endOf(id)).toEqual(['COMPLETED', { status: 'settled', failure: null }]);
  });

  test('ends the run of a settlement that the database has lost', async ({ world, api }) => {
    const id = await world.waiting();
    await withoutTriggers(api.owner.pool, (client) =>
      client.query('DELETE FROM settlements WHERE settlement_id = $1', [id]),
    );
    const run = world.handle(settlementWorkflowId(id));
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ cause: { type: 'not_found' } });
  });
});

describe('a cancellation of another run changes nothing', () => {
  test('a verification stays open, gets its applicant, and can be decided', async ({ world, api, partner, time }) => {
    const recipientId = await createRecipient(api, partner);
    const { verification_id: id } = await openVerification(api, partner, recipientId);
    await untilTimers(time, verificationWorkflowId(id));
    await world.requestCancel(verificationWorkflowId(id));
    expect((await statusOf(api, partner, recipientId)).verification_status).toBe('pending');
    await world.handle(verificationWorkflowId(id)).executeUpdate(createApplicant);
    await complete(api, partner, id, { status: 'verified' });
    expect(await world.handle(verificationWorkflowId(id)).result()).toEqual({ status: 'verified' });
  });

  test('the simulated provider posts its event, and the settlement settles', async ({ world, time }) => {
    const id = await world.settle();
    await untilTimers(time, sandboxCollectionWorkflowId(id));
    await world.requestCancel(sandboxCollectionWorkflowId(id));
    await time.advance(1_000);
    await world.untilStatus(id, 'settled');
    await world.handle(sandboxCollectionWorkflowId(id)).result();
  });
});
