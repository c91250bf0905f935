/**
 * Runs of open settlements that were terminated: what starts them again. Real PostgreSQL and a real Temporal server.
 */
import { expect, vi } from 'vitest';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';

const test = withStack().extend('lost', FILE, ({ stack, partner }) => {
  const run = (id: string) => stack.temporal.workflow.getHandle(settlementWorkflowId(id));
  return {
    run,
    /** A wire of 250.00 that waits for its money. */
    waiting: async (): Promise<string> => {
      const wire = { payment_method: 'wire', card_token: undefined };
      const body = settleBody(await createRecipient(stack.api, partner), wire);
      const key = { 'idempotency-key': crypto.randomUUID() };
      const id: string = jsonOf(await stack.api.call(partner, 'POST', '/v2/settle', body, key)).settlement_id;
      await untilStatus(stack.api, partner, id, 'awaiting_funds');
      return id;
    },
  };
});
// Starts the servers in a hook: its timeout is longer than a test's.
test.beforeAll(({ lost: _ }) => undefined);

test("a provider's event starts a terminated run again, and the settlement settles", async ({
  stack,
  partner,
  lost,
}) => {
  const id = await lost.waiting();
  await lost.run(id).terminate();
  expect(jsonOf(await sendBankledger(stack.api, bankledgerBody(id)))).toMatchObject({ matched: true });
  await untilStatus(stack.api, partner, id, 'settled');
  expect(await lost.run(id).result()).toEqual({ status: 'settled', failure: null });
});

test('a cancel ends a settlement whose run was terminated, and no run is left', async ({ stack, partner, lost }) => {
  const id = await lost.waiting();
  await lost.run(id).terminate();
  expect((await stack.api.call(partner, 'POST', `/v2/settle/${id}/cancel`)).statusCode).toBe(200);
  const canceled = { status: 'canceled', failure: null };
  await vi.waitFor(async () => expect(await lost.run(id).result()).toEqual(canceled), { timeout: 10_000 });
});
