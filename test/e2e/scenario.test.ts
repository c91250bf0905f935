/** Every scenario of the sandbox, over HTTP against the real stack: what the list says is what happens. */
import { createHmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCENARIOS, type Scenario, type ScenarioStep } from '../../domain/sandbox/scenario.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { resolveReview } from '../../workflows/contract.ts';
import { type Caller, TEST_SECRETS } from '../support/api.ts';
import { type Json, recipientBody } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';

const WAIT_MS = 45_000;
const POLL_MS = 40;

let stack: TestStack;
let caller: Caller;

beforeAll(async () => {
  stack = await startStack();
  caller = await stack.api.createCaller('full');
});
afterAll(() => stack.close());

async function call(
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; json: Json }> {
  const response = await fetch(`${stack.baseUrl}${path}`, {
    method,
    headers: {
      'x-api-key': caller.apiKey,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: await response.json() };
}

async function must(status: number, ...request: Parameters<typeof call>): Promise<Json> {
  const answer = await call(...request);
  expect(answer.status, `${request[0]} ${request[1]}: ${JSON.stringify(answer.json)}`).toBe(status);
  return answer.json;
}

async function begin({ given }: Scenario): Promise<{ settlementId: string; recipientId: string }> {
  const { recipient_name, public_token, ...request } = given;
  const { recipient_id } = await must(201, 'POST', '/v1/recipients', recipientBody({ name: recipient_name }));
  const linked =
    public_token === undefined ? undefined : await must(200, 'POST', '/v2/banklink/exchange', { public_token });
  const body = { ...request, recipient_id, ...(linked ? { banklink_account_token: linked.access_token } : {}) };
  const { settlement_id } = await must(202, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
  return { settlementId: settlement_id, recipientId: recipient_id };
}

/** Reads until the settlement is as wanted; what it was like last otherwise. */
async function until(settlementId: string, isWanted: (settlement: Json) => boolean): Promise<Json> {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const settlement = await must(200, 'GET', `/v2/settle/${settlementId}`);
    if (isWanted(settlement) || Date.now() > end) return settlement;
    await delay(POLL_MS);
  }
}

async function take(step: ScenarioStep, settlementId: string, recipientId: string): Promise<void> {
  const { when, received } = step;
  const ready = await until(
    settlementId,
    (settlement) => settlement.status === when && (received === undefined || settlement.amount_received === received),
  );
  expect(ready, JSON.stringify(ready.timeline)).toMatchObject({
    status: when,
    ...(received === undefined ? {} : { amount_received: received }),
  });
  const helper = `/v2/test-helpers/settlements/${settlementId}`;
  switch (step.do) {
    case 'send_event':
      return await must(202, 'POST', `${helper}/events`, {
        event: step.event,
        ...(step.amount === undefined ? {} : { amount: step.amount }),
      });
    case 'advance_clock':
      return await must(202, 'POST', `${helper}/advance`, step.by === undefined ? undefined : { by: step.by });
    case 'cancel':
      return await must(200, 'POST', `/v2/settle/${settlementId}/cancel`);
    case 'decide_verification': {
      const { verification_id } = await must(201, 'POST', '/v1/kyc/verify', {
        recipient_id: recipientId,
        org_id: caller.orgId,
      });
      const reason = step.decision === 'rejected' ? { rejection_reason: 'The document is not readable.' } : {};
      return await must(200, 'POST', `/v1/kyc/${verification_id}/complete`, { status: step.decision, ...reason });
    }
    case 'resolve_review': {
      const resolution = { outcome: step.outcome, operator: 'pat', note: 'The bank confirmed it by phone.' };
      await stack.temporal.workflow
        .getHandle(settlementWorkflowId(settlementId))
        .executeUpdate(resolveReview, { args: [resolution] });
      return;
    }
    case 'post_bankledger_event': {
      const { event, amount_reconciled, currency } = step;
      const metadata = { settlement_id: settlementId };
      const data = {
        id: 'ep_1',
        object: 'expected_payment',
        live_mode: false,
        status: event,
        amount_reconciled,
        currency,
        type: 'wire',
        metadata,
      };
      const body = { id: crypto.randomUUID(), event, data };
      const signature = createHmac('sha256', TEST_SECRETS.bankledger).update(JSON.stringify(body)).digest('hex');
      expect(await must(200, 'POST', '/v2/webhooks/bankledger', body, { 'x-signature': signature })).toMatchObject({
        matched: true,
      });
      return;
    }
  }
}

const shown = (settlement: Json) => ({
  path: settlement.timeline.map((entry: Json) => entry.status),
  exceptions: settlement.exceptions.map((entry: Json) => entry.type),
  failure_code: settlement.failure?.code ?? null,
});

describe('the list of scenarios', () => {
  test('is served as it is', async () => {
    expect(await must(200, 'GET', '/v2/test-helpers/scenarios')).toEqual(SCENARIOS);
  });

  test('names every scenario once', () => {
    expect(new Set(SCENARIOS.map((scenario) => scenario.name)).size).toBe(SCENARIOS.length);
  });
});

describe.concurrent('leads where the list says', () => {
  test.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
    '%s',
    async (_name, scenario) => {
      const { settlementId, recipientId } = await begin(scenario);
      for (const step of scenario.steps) await take(step, settlementId, recipientId);
      const { path, exceptions, failure_code } = scenario;
      const arrived = await until(
        settlementId,
        (settlement) => JSON.stringify(shown(settlement)) === JSON.stringify({ path, exceptions, failure_code }),
      );
      expect(shown(arrived)).toEqual({ path, exceptions, failure_code });
    },
    120_000,
  );
});
