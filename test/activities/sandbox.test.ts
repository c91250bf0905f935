/** The simulated providers: what they say is decided by the settlement and the step, so that saying it twice is a duplicate. */
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sandboxActivities } from '../../activities/sandbox.ts';
import { evidence, providerEvents } from '../../db/schema/index.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { linkAccount } from '../support/bankledger.ts';
import { BY_WIRE, createSteps, type Steps } from '../support/settlement.ts';

let api: TestApi;
let caller: Caller;
let steps: Steps;
let sandbox: ReturnType<typeof sandboxActivities>;

beforeAll(async () => {
  api = await createTestApi();
  caller = await api.createCaller();
  steps = createSteps(api, caller);
  const baseUrl = await api.app.listen({ host: '127.0.0.1', port: 0 });
  sandbox = sandboxActivities(activityDeps(api, baseUrl, { nudge: () => undefined }));
});
afterAll(() => api.close());

const input = (settlementId: string) => ({ settlementId, orgId: caller.orgId });
const byAch = async (publicToken: string) => ({
  payment_method: 'ach',
  card_token: undefined,
  banklink_account_token: await linkAccount(api, caller, publicToken),
});
const kindsOf = async (id: string) =>
  (await api.connection.db.select().from(evidence).where(eq(evidence.settlementId, id))).map(({ kind }) => kind);

describe('what a payer stands for', () => {
  test.each([
    ['public-sandbox-checking', ['collection_succeeded']],
    ['public-sandbox-return', ['collection_failed']],
    ['public-sandbox-manual', []],
    ['public-sandbox-returns', ['collection_succeeded']],
  ])('%s: %j', async (publicToken, events) => {
    const id = await steps.waiting(await byAch(publicToken));
    expect((await sandbox.planCollection(input(id))).map(({ event }) => event)).toEqual(events);
  });

  test('a wire waits', async () => {
    expect(await sandbox.planCollection(input(await steps.waiting(BY_WIRE)))).toEqual([]);
  });

  test('an account that was sealed by keys that are gone has its debit returned', async () => {
    const id = await steps.waiting(await byAch('public-sandbox-checking'));
    const blind = sandboxActivities({
      ...activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }),
      sealer: { ...api.deps.sealer, open: () => undefined },
    });
    expect((await blind.planCollection(input(id))).map(({ event }) => event)).toEqual(['collection_failed']);
  });

  test('nothing for a settlement of another organization', async () => {
    const id = await steps.waiting(BY_WIRE);
    await expect(sandbox.planCollection({ settlementId: id, orgId: 'other' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});

describe('sending', () => {
  test('a step of the plan five times at once is one event', async () => {
    const id = await steps.waiting(await byAch('public-sandbox-checking'));
    await Promise.all(Array.from({ length: 5 }, () => sandbox.postCollectionEvent({ ...input(id), step: 0 })));
    expect(await kindsOf(id)).toEqual(['collection_succeeded']);
    expect(
      await api.connection.db
        .select()
        .from(providerEvents)
        .where(eq(providerEvents.eventId, `evt_${id}_0`)),
    ).toHaveLength(1);
  });

  test('a command five times at once is one event, and another command is another', async () => {
    const id = await steps.waiting(BY_WIRE);
    const command = { ...input(id), event: 'collection_partial', amountMinor: '100' } as const;
    await Promise.all(Array.from({ length: 5 }, () => sandbox.sendSandboxEvent({ ...command, commandId: 'one' })));
    await sandbox.sendSandboxEvent({ ...command, commandId: 'two' });
    expect(await kindsOf(id)).toEqual(['collection_partial', 'collection_partial'].map(() => 'collection_succeeded'));
    expect((await steps.activities.reviewFunding(steps.step(id))).status).toBe('awaiting_funds');
    expect((await steps.read(id)).amount_received).toBe('2.00');
  });

  test("the rail's answer twice, or both answers, is one: the first", async () => {
    const id = await steps.waiting(BY_WIRE, { name: 'PAYOUT PENDING' });
    await sandbox.sendSandboxEvent({
      ...input(id),
      commandId: 'paid',
      event: 'collection_succeeded',
      amountMinor: '25000',
    });
    await steps.activities.reviewFunding(steps.step(id));
    await steps.activities.sendPayout(steps.step(id));
    const answer = { ...input(id), amountMinor: '0' };
    await sandbox.sendSandboxEvent({ ...answer, commandId: 'a', event: 'payout_refused' });
    await sandbox.sendSandboxEvent({ ...answer, commandId: 'b', event: 'payout_confirmed' });
    await sandbox.sendSandboxEvent({ ...answer, commandId: 'a', event: 'payout_refused' });
    expect(await kindsOf(id)).toEqual(['collection_succeeded', 'payout_refused']);
    expect((await steps.activities.reviewPayout(steps.step(id))).status).toBe('failed');
  });

  test('fails, to be repeated, while the webhook does not take it', async () => {
    const id = await steps.waiting(BY_WIRE);
    const deps = activityDeps(api, await api.app.listeningOrigin, { nudge: () => undefined });
    const mistaken = sandboxActivities({ ...deps, bankledgerWebhookSecret: 'another secret of thirty-two characters' });
    const command = {
      ...input(id),
      commandId: 'refused',
      event: 'collection_succeeded',
      amountMinor: '25000',
    } as const;
    await expect(mistaken.sendSandboxEvent(command)).rejects.toMatchObject({
      type: 'webhook_refused',
      nonRetryable: false,
    });
    expect(await kindsOf(id)).toEqual([]);
  });
});
