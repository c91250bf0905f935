/** The simulated providers: their events follow from the settlement and the step, so a second post is a duplicate. */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { sandboxActivities } from '../../activities/sandbox.ts';
import { evidence, providerEvents } from '../../db/schema/index.ts';
import { activityDeps } from '../support/activity.ts';
import { linkAccount } from '../support/bankledger.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { BY_MANUAL_CARD, BY_WIRE } from '../support/settlement.ts';

const test = withApi()
  .extend('deps', FILE, ({ api, port }) => activityDeps(api, `http://127.0.0.1:${port}`))
  .extend('sandbox', FILE, ({ deps }) => sandboxActivities(deps))
  .extend('world', FILE, ({ api, partner }) => ({
    input: (settlementId: string) => ({ settlementId, orgId: partner.orgId }),
    byAch: async (publicToken: string) => ({
      payment_method: 'ach',
      card_token: undefined,
      banklink_account_token: await linkAccount(api, partner, publicToken),
    }),
    /** The kinds of the settlement's evidence. */
    kindsOf: async (id: string) => {
      const rows = await api.connection.db.select().from(evidence).where(eq(evidence.settlementId, id));
      return rows.map(({ kind }) => kind);
    },
  }));

describe('the plan of a payment', () => {
  test.for([
    ['public-sandbox-checking', ['collection_succeeded']],
    ['public-sandbox-return', ['collection_failed']],
    ['public-sandbox-manual', []],
    ['public-sandbox-returns', ['collection_succeeded']],
  ] as const)('%s: %j', async ([publicToken, events], { world, sandbox, steps }) => {
    const id = await steps.waiting(await world.byAch(publicToken));
    expect((await sandbox.planCollection(world.input(id))).map(({ event }) => event)).toEqual(events);
  });

  test('is empty for a wire, which waits', async ({ world, sandbox, steps }) => {
    expect(await sandbox.planCollection(world.input(await steps.waiting(BY_WIRE)))).toEqual([]);
  });

  test('is not found for the settlement of another organization', async ({ sandbox, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    await expect(sandbox.planCollection({ settlementId: id, orgId: 'other' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});

describe("posting a provider's event", () => {
  test('a step of the plan five times at once makes one event', async ({ world, sandbox, api, steps }) => {
    const id = await steps.waiting(await world.byAch('public-sandbox-checking'));
    await Promise.all(Array.from({ length: 5 }, () => sandbox.postCollectionEvent({ ...world.input(id), step: 0 })));
    expect(await world.kindsOf(id)).toEqual(['collection_succeeded']);
    expect(
      await api.connection.db
        .select()
        .from(providerEvents)
        .where(eq(providerEvents.eventId, `evt_${id}_0`)),
    ).toHaveLength(1);
  });

  test('a dispute by tok_dispute waits for the payout, which it would prevent', async ({ world, sandbox, steps }) => {
    const id = await steps.waiting({ card_token: 'tok_dispute' });
    const post = (step: number) => sandbox.postCollectionEvent({ ...world.input(id), step });
    await post(0);
    await expect(post(1)).rejects.toMatchObject({ type: 'before_payout', nonRetryable: false });
    expect((await steps.activities.sendPayout(steps.step(id))).status).toBe('settled');
    await post(1);
    expect((await steps.read(id)).exceptions).toMatchObject([{ type: 'disputed' }]);
  });

  test('a request of a test helper five times at once makes one event, and another request another one', async ({
    world,
    sandbox,
    steps,
  }) => {
    const id = await steps.waiting(BY_WIRE);
    const command = { ...world.input(id), event: 'collection_partial', amountMinor: '100' } as const;
    await Promise.all(Array.from({ length: 5 }, () => sandbox.sendSandboxEvent({ ...command, commandId: 'one' })));
    await sandbox.sendSandboxEvent({ ...command, commandId: 'two' });
    expect(await world.kindsOf(id)).toEqual(
      ['collection_partial', 'collection_partial'].map(() => 'collection_succeeded'),
    );
    expect((await steps.activities.reviewSettlement(steps.step(id))).status).toBe('awaiting_funds');
    expect((await steps.read(id)).amount_received).toBe('2.00');
  });

  test('an answer of the payout rail is recorded once, and a second run changes nothing', async ({ api, steps }) => {
    const id = await steps.inReview();
    await steps.answerPayout(id, 'payout_confirmed');
    await expectUnchanged(api.connection.pool, () => steps.answerPayout(id, 'payout_confirmed'));
  });

  test('a dispute is about its amount, and without one about the whole payment', async ({ world, sandbox, steps }) => {
    for (const [amountMinor, paidMinor, amount] of [
      ['2000', '25000', '20.00'],
      ['0', '25000', '250.00'],
      ['0', '26000', '260.00'],
      ['0', '10000', '100.00'],
    ] as const) {
      const id = await steps.accept(BY_MANUAL_CARD);
      const dispute = { ...world.input(id), commandId: id, event: 'dispute_opened', amountMinor } as const;
      await sandbox.sendSandboxEvent({
        ...dispute,
        commandId: `${id}-paid`,
        event: 'collection_succeeded',
        amountMinor: paidMinor,
      });
      await sandbox.sendSandboxEvent(dispute);
      expect((await steps.read(id)).exceptions).toMatchObject([{ type: 'disputed', amount }]);
    }
  });

  test('fails and can be retried while the webhook refuses the event', async ({ world, deps, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    const mistaken = sandboxActivities({ ...deps, bankledgerWebhookSecret: 'another secret of thirty-two characters' });
    const command = {
      ...world.input(id),
      commandId: 'refused',
      event: 'collection_succeeded',
      amountMinor: '25000',
    } as const;
    await expect(mistaken.sendSandboxEvent(command)).rejects.toMatchObject({
      type: 'webhook_refused',
      nonRetryable: false,
    });
    expect(await world.kindsOf(id)).toEqual([]);
  });
});
