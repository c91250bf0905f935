import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Caller } from '../support/api.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';

let stack: TestStack;
let caller: Caller;

beforeAll(async () => {
  stack = await startStack();
  caller = await stack.api.createCaller();
});
afterAll(() => stack.close());

const settle = async (overrides: Record<string, unknown> = {}, name = 'Marcia Brown') => {
  const recipientId = await createRecipient(stack, caller, { name });
  const answer = await stack.api.call(caller, 'POST', '/v2/settle', settleBody(recipientId, overrides), { 'idempotency-key': crypto.randomUUID() });
  expect(answer.statusCode, answer.body).toBe(202);
  return jsonOf(answer);
};

describe('a card settlement over HTTP', () => {
  test('tok_visa goes from accepted to settled, with a certificate', async () => {
    const { settlement_id } = await settle();
    const settled = await untilStatus(stack, caller, settlement_id, 'settled');
    expect(settled.timeline.map((entry: { status: string }) => entry.status)).toEqual(['accepted', 'awaiting_funds', 'funded', 'paying_out', 'settled']);
    expect(settled.certificate_id).toMatch(/^CERT-[0-9A-F]{32}$/);
    expect(settled.amount_received).toBe('250.00');
  });
});
