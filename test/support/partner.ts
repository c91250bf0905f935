/** What a partner's developer does, as short calls for tests. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LightMyRequestResponse } from 'fastify';
import type { Caller } from './api.ts';
import type { TestStack } from './stack.ts';

const STATUS_WAIT_MS = 20_000;
const STATUS_POLL_MS = 25;

// biome-ignore lint/suspicious/noExplicitAny: a test reads any field of an answer and asserts on it.
export type Json = any;

export const jsonOf = (answer: LightMyRequestResponse): Json => answer.json();

export const recipientBody = (overrides: Record<string, unknown> = {}) => ({
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'National Commercial Bank', account_number: '123456789', currency: 'JMD' },
  ...overrides,
});

export async function createRecipient(
  stack: Pick<TestStack, 'api'>,
  caller: Caller,
  overrides: Record<string, unknown> = {},
): Promise<string> {
  const answer = await stack.api.call(caller, 'POST', '/v1/recipients', recipientBody(overrides));
  if (answer.statusCode !== 201) throw new Error(`recipient refused: ${answer.body}`);
  return jsonOf(answer).recipient_id;
}

export const settleBody = (recipientId: string, overrides: Record<string, unknown> = {}) => ({
  corridor: 'US-JM',
  amount: '250.00',
  recipient_id: recipientId,
  payment_method: 'card',
  payout_rail: 'bank_transfer',
  card_token: 'tok_visa',
  ...overrides,
});

export async function readSettlement(
  stack: Pick<TestStack, 'api'>,
  caller: Caller,
  settlementId: string,
): Promise<Json> {
  return jsonOf(await stack.api.call(caller, 'GET', `/v2/settle/${settlementId}`));
}

/** Reads until the settlement has this status. */
export async function untilStatus(
  stack: Pick<TestStack, 'api'>,
  caller: Caller,
  settlementId: string,
  status: string,
): Promise<Json> {
  const end = Date.now() + STATUS_WAIT_MS;
  for (;;) {
    const settlement = await readSettlement(stack, caller, settlementId);
    if (settlement.status === status) return settlement;
    if (Date.now() > end)
      throw new Error(`settlement stayed ${settlement.status}, not ${status}: ${JSON.stringify(settlement.timeline)}`);
    await delay(STATUS_POLL_MS);
  }
}
