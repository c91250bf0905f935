/**
 * A verification and the settlements that wait for it, over their whole lives: real PostgreSQL, and a clock that jumps.
 */
import { describe, expect, vi } from 'vitest';
import { settlementWorkflowId, verificationWorkflowId } from '../../domain/workflow-id.ts';
import { createApplicant, redispatched, TASK_QUEUE } from '../../workflows/contract.ts';
import { losingOutboxRows } from '../support/database.ts';
import { FILE } from '../support/fixture.ts';
import { createRecipient, type Json, settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { complete, openVerification, statusOf } from '../support/verification.ts';
import { createBarrier, detailsOf, untilTimers, withJumpingClock } from './fixture.ts';

const DAY_MS = 24 * 60 * 60_000;

const test = withJumpingClock().extend('world', FILE, ({ api, partner, steps, time }) => ({
  recipient: () => createRecipient(api, partner),
  open: async (recipientId: string): Promise<string> =>
    (await openVerification(api, partner, recipientId)).verification_id,
  complete: (verificationId: string, body: Record<string, unknown>) => complete(api, partner, verificationId, body),
  verificationStatus: async (recipientId: string): Promise<string> =>
    (await statusOf(api, partner, recipientId)).verification_status,
  /** Until the workflow of the verification has set its timer. */
  untilOpen: (verificationId: string) => untilTimers(time, verificationWorkflowId(verificationId)),
  resultOf: (verificationId: string) => time.client.workflow.getHandle(verificationWorkflowId(verificationId)).result(),
  untilExpired: (recipientId: string) =>
    vi.waitUntil(async () => (await statusOf(api, partner, recipientId)).latest?.status === 'expired', WAIT),
  settle: (recipientId: string, amount: string) => settle(api, partner, { recipient_id: recipientId, amount }),
  read: steps.read,
  untilStatus: (settlementId: string, status: string) => untilStatus(api, partner, settlementId, status),
  /** Until the settlement is held and its workflow has set its timer. */
  untilHeld: async (settlementId: string): Promise<void> => {
    await untilStatus(api, partner, settlementId, 'compliance_hold');
    await untilTimers(time, settlementWorkflowId(settlementId));
  },
  /** The settlement once it has left a status. */
  untilLeft: (settlementId: string, status: string): Promise<Json> =>
    vi.waitUntil(async () => {
      const settlement = await steps.read(settlementId);
      return settlement.status !== status && settlement;
    }, WAIT),
}));
// Starts the servers in a hook: its timeout is longer than a test's.
test.beforeAll(({ world: _ }) => undefined);

test('a run of sweep sweeps every 20 seconds, so that sweeps do not fill the list of workflows', async ({ time }) => {
  const options = { workflowId: 'sweep', taskQueue: TASK_QUEUE, args: [{ sweeps: 2 }] } as const;
  const run = await time.client.workflow.start('sweep', options);
  await untilTimers(time, 'sweep');
  await time.advance(20_000);
  expect(await run.result()).toMatchObject({ settlement: 0, verification: 0 });
});

const statusesOf = ({ timeline }: { timeline: { status: string }[] }) => timeline.map(({ status }) => status);

describe('a verification', () => {
  test('expires after thirty days, not a minute before, and its workflow ends', async ({ world, time }) => {
    const recipientId = await world.recipient();
    const id = await world.open(recipientId);
    await world.untilOpen(id);
    const details = await detailsOf(time.client.workflow.getHandle(verificationWorkflowId(id)));
    expect(details).toMatch(
      /^\*\*pending\*\*\n\nWaits for a \*\*verification decision\*\* until \d{4}-[-\dT:.]+Z\n\n\*\*Next/,
    );
    expect(details).toMatch(/Next\*\*: None: the partner decides it before \d{4}-[-\dT:.]+Z, or it expires\.$/);
    await time.advance(30 * DAY_MS - 60_000);
    expect(await world.verificationStatus(recipientId)).toBe('pending');
    await time.advance(61_000);
    await world.untilExpired(recipientId);
    expect(await world.verificationStatus(recipientId)).toBe('expired');
    expect(await world.resultOf(id)).toEqual({ status: 'expired' });
  });

  test('asks a provider that fails often in the first minutes, then every five minutes; a decision ends its workflow', async ({
    world,
    time,
  }) => {
    const id = await world.open(await world.recipient());
    await world.untilOpen(id);
    const askedMs: number[] = [];
    time.override.createApplicant = async () => {
      askedMs.push(await time.now());
      throw new Error('The provider hangs.');
    };
    await time.client.workflow
      .getHandle(verificationWorkflowId(id))
      .startUpdate(createApplicant, { waitForStage: 'ACCEPTED' });
    await vi.waitUntil(() => askedMs.length > 0, WAIT);
    for (let minutes = 0; minutes < 20; minutes += 1) await time.advance(60_000);
    const waits = askedMs.slice(1).map((at, index) => Math.round((at - (askedMs[index] ?? at)) / 1_000));
    expect(waits.filter((seconds) => seconds <= 60).length).toBeGreaterThan(7);
    expect(waits.slice(-2).map((seconds) => Math.round(seconds / 10))).toEqual([30, 30]);
    time.restore();
    await time.advance(5 * 60_000);
    await world.complete(id, { status: 'verified' });
    expect(await world.resultOf(id)).toEqual({ status: 'verified' });
  });

  test('that is decided while its applicant is created ends once that is done, and its request is answered', async ({
    world,
    time,
  }) => {
    const id = await world.open(await world.recipient());
    await world.untilOpen(id);
    const { opened, open } = createBarrier();
    time.override.createApplicant = () => opened;
    const run = time.client.workflow.getHandle(verificationWorkflowId(id));
    const asked = await run.startUpdate(createApplicant, { waitForStage: 'ACCEPTED' });
    await world.complete(id, { status: 'verified' });
    await vi.waitUntil(async () => (await detailsOf(run)).startsWith('**verified**'), WAIT);
    open();
    expect(await asked.result()).toBeUndefined();
    time.restore();
    expect(await world.resultOf(id)).toEqual({ status: 'verified' });
  });

  test('whose signal was lost is found decided when its time is over', async ({ world, api, time }) => {
    const recipientId = await world.recipient();
    const id = await world.open(recipientId);
    await world.untilOpen(id);
    await losingOutboxRows(api.owner.pool, () =>
      world.complete(id, { status: 'rejected', rejection_reason: 'blurred' }),
    );
    await time.advance(30 * DAY_MS + 1_000);
    expect(await world.resultOf(id)).toEqual({ status: 'rejected' });
    expect(await world.verificationStatus(recipientId)).toBe('rejected');
  });

  test('whose signal was lost is found decided when it is redispatched', async ({ world, api, time }) => {
    const id = await world.open(await world.recipient());
    await world.untilOpen(id);
    const run = time.client.workflow.getHandle(verificationWorkflowId(id));
    // Without cause it waits on.
    await run.signal(redispatched);
    await untilTimers(time, run.workflowId, 2);
    await losingOutboxRows(api.owner.pool, () => world.complete(id, { status: 'verified' }));
    await run.signal(redispatched);
    expect(await world.resultOf(id)).toEqual({ status: 'verified' });
  });
});

describe('a settlement of 1 000.00', () => {
  test('is held for seven days and expires; the verification stays open', async ({ world, time }) => {
    const recipientId = await world.recipient();
    await world.untilOpen(await world.open(recipientId));
    const id = await world.settle(recipientId, '1000.00');
    await world.untilHeld(id);
    await time.advance(7 * DAY_MS - 60_000);
    expect((await world.read(id)).status).toBe('compliance_hold');
    await time.advance(61_000);
    const expired = await world.untilStatus(id, 'expired');
    expect(expired.failure).toMatchObject({ code: 'verification_timeout' });
    expect(await world.verificationStatus(recipientId)).toBe('pending');
  });

  test('stays held when its verification expires, until another one is decided', async ({ world, time }) => {
    const recipientId = await world.recipient();
    await world.untilOpen(await world.open(recipientId));
    await time.advance(26 * DAY_MS);
    const id = await world.settle(recipientId, '1000.00');
    await world.untilHeld(id);
    await time.advance(4 * DAY_MS + 60_000);
    await world.untilExpired(recipientId);
    await world.complete(await world.open(recipientId), { status: 'verified' });
    const after = await world.untilLeft(id, 'compliance_hold');
    expect(statusesOf(after).slice(0, 3)).toEqual(['accepted', 'compliance_hold', 'awaiting_funds']);
  });
});
