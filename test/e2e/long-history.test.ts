/**
 * A settlement that is signalled again and again continues as a new run before its history is too long. The tests'
 * Temporal server suggests it after two hundred events.
 */
import { expect, vi } from 'vitest';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';
import { settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { BY_WIRE } from '../support/settlement.ts';

const ACT = ['--operator', 'ana', '--note', 'the bank confirmed it', '--yes'];

const test = withStack().extend('long', FILE, ({ stack, partner }) => {
  const run = (id: string) => stack.temporal.workflow.getHandle(settlementWorkflowId(id));
  return {
    run,
    /** A wire of 250.00 that waits for its money. */
    waiting: async (recipient: Record<string, unknown> = {}): Promise<string> => {
      const id = await settle(stack.api, partner, BY_WIRE, recipient);
      await untilStatus(stack.api, partner, id, 'awaiting_funds');
      return id;
    },
    /** The memo and the search attributes of the current run. */
    shownOf: async (id: string): Promise<object> => {
      const { memo, typedSearchAttributes } = await run(id).describe();
      return { memo, ...Object.fromEntries(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value])) };
    },
    /** Signals the settlement until it has continued as a new run. */
    signalUntilContinued: async (id: string): Promise<void> => {
      const { runId } = await run(id).describe();
      await vi.waitUntil(async () => {
        await run(id).signal('redispatched');
        return (await run(id).describe()).runId !== runId;
      }, WAIT);
    },
  };
});

// Starts the servers in a hook: its timeout is longer than a test's.
test.beforeAll(({ long: _ }) => undefined);

test('the new run of a waiting settlement keeps what operators see, and applies the evidence', async ({
  stack,
  partner,
  long,
}) => {
  const id = await long.waiting();
  const { memo } = await long.run(id).describe();
  await long.signalUntilContinued(id);
  await expect
    .poll(() => long.shownOf(id), WAIT)
    .toMatchObject({
      memo,
      Corridor: 'US-JM',
      OrgId: partner.orgId,
      PaymentMethod: 'wire',
      SettlementId: id,
      SettlementStatus: 'awaiting_funds',
      WaitingFor: 'wire evidence',
    });
  await sendBankledger(stack.api, bankledgerBody(id));
  await untilStatus(stack.api, partner, id, 'settled');
  expect(await long.run(id).result()).toEqual({ status: 'settled', failure: null });
});

test('evidence whose signal is one of the flood is applied at once', async ({ stack, partner, long }) => {
  const id = await long.waiting();
  const [first] = await Promise.all([
    long.run(id).describe(),
    ...Array.from({ length: 250 }, () => long.run(id).signal('redispatched')),
    sendBankledger(stack.api, bankledgerBody(id)),
  ]);
  expect(first.status.name).toBe('RUNNING');
  await untilStatus(stack.api, partner, id, 'settled');
});

test('a payout without an answer stays in its run, which would send it again as a new one, however many signals come', async ({
  stack,
  partner,
  long,
}) => {
  const id = await long.waiting({ name: 'PAYOUT PENDING' });
  await sendBankledger(stack.api, bankledgerBody(id));
  await untilStatus(stack.api, partner, id, 'paying_out');
  const { runId } = await long.run(id).describe();
  await Promise.all(Array.from({ length: 250 }, () => long.run(id).signal('redispatched')));
  await vi.waitUntil(async () => {
    const { events } = await long.run(id).fetchHistory();
    const suggested =
      events?.findIndex((event) => event.workflowTaskStartedEventAttributes?.suggestContinueAsNew) ?? -1;
    return suggested >= 0 && events?.slice(suggested).some((event) => event.workflowTaskCompletedEventAttributes);
  }, WAIT);
  const event = { event: 'payout_confirmed' };
  await stack.api.call(partner, 'POST', `/v2/test-helpers/settlements/${id}/events`, event);
  await untilStatus(stack.api, partner, id, 'settled');
  expect((await long.run(id).describe()).runId).toBe(runId);
});

test('the new run of a settlement in review is resolved by the operator', async ({ stack, partner, long }) => {
  const id = await long.waiting({ name: 'PAYOUT PENDING' });
  await sendBankledger(stack.api, bankledgerBody(id));
  await untilStatus(stack.api, partner, id, 'paying_out');
  await stack.api.call(partner, 'POST', `/v2/test-helpers/settlements/${id}/advance`, {});
  await untilStatus(stack.api, partner, id, 'needs_review');
  await long.signalUntilContinued(id);
  const ops = createOps(stack.api.connection.db, { client: () => stack.temporal });
  await vi.waitUntil(async () => (await ops('resolve', id, 'paid', ...ACT)).exitCode === 0, WAIT);
  await untilStatus(stack.api, partner, id, 'settled');
});
