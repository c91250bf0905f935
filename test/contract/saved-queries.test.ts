/**
 * Each saved query of `docs/operations.md` runs on a real server and finds the workflow that its sentence describes.
 */
import { expect } from 'vitest';
import { laneWorkflowId, settlementWorkflowId, webhookSubscriptionWorkflowId } from '../../domain/workflow-id.ts';
import { DELIVERY_TASK_QUEUE, TASK_QUEUE } from '../../workflows/contract.ts';
import { withStack } from '../support/fixture.ts';
import { settle, untilStatus } from '../support/partner.ts';
import { readSource } from '../support/source.ts';

const QUERIES = [...readSource('docs/operations.md').matchAll(/^(.+):\n```sql\n([\s\S]*?)\n```$/gm)].map(
  ([, what = '', query = '']) => ({
    what,
    query,
  }),
);

const test = withStack();
const ids = { unpaid: '', held: '', declined: '', unknown: '' };

/** For each sentence of the page: a workflow that its query must find. It may find others too. */
const FINDS: Record<string, () => string> = {
  'All workflows of one settlement, including its simulated provider': () => `sandbox-collection:${ids.declined}`,
  'Settlements that wait for money': () => settlementWorkflowId(ids.unpaid),
  'Settlements that wait for the card processor': () => settlementWorkflowId(ids.unpaid),
  'Settlements that wait for a verification': () => settlementWorkflowId(ids.held),
  'Payouts with an unknown outcome': () => settlementWorkflowId(ids.unknown),
  'All running workflows of one organization': () => settlementWorkflowId(ids.held),
  'Failed settlements of one corridor': () => settlementWorkflowId(ids.declined),
  'Subscriptions whose endpoint is in trouble': () => 'webhook-subscription:any',
  'The lanes, of which four run': () => 'webhook-lane:0',
  'Workflows that failed because of a fault in the service (there should be none)': () =>
    settlementWorkflowId('stl_none'),
};

test.beforeAll(async ({ stack, api, partner }) => {
  const settleUntil = async (status: string, body: Record<string, unknown>, recipient?: Record<string, unknown>) => {
    const id = await settle(api, partner, body, recipient);
    await untilStatus(api, partner, id, status);
    return id;
  };
  ids.unpaid = await settleUntil('awaiting_funds', { card_token: 'tok_manual' });
  ids.held = await settleUntil('compliance_hold', { amount: '1000.00' });
  ids.declined = await settleUntil('failed', { card_token: 'tok_declined' });
  ids.unknown = await settleUntil('paying_out', {}, { name: 'PAYOUT PENDING' });
  await api.call(partner, 'POST', `/v2/test-helpers/settlements/${ids.unknown}/advance`, {});
  // No worker serves the queue of these.
  const ofDeliveries = { taskQueue: DELIVERY_TASK_QUEUE };
  await stack.temporal.workflow.start('webhookLane', {
    workflowId: laneWorkflowId(0),
    args: [{ lane: 0 }],
    ...ofDeliveries,
  });
  await stack.temporal.workflow.start('webhookSubscription', {
    workflowId: webhookSubscriptionWorkflowId('any'),
    args: [{ webhookId: 'any', orgId: 'any' }],
    ...ofDeliveries,
  });
  const args = [{ settlementId: 'stl_none', orgId: 'none' }];
  await stack.temporal.workflow.start('settlement', {
    workflowId: settlementWorkflowId('stl_none'),
    taskQueue: TASK_QUEUE,
    args,
  });
});

test('every query of the page has an entry above', () => {
  expect(QUERIES.map(({ what }) => what)).toEqual(Object.keys(FINDS));
});

test.for(QUERIES)('the saved query finds: $what', async ({ what, query }, { stack, partner }) => {
  const asked = query.replace('<settlement id>', ids.declined).replace('<organization id>', partner.orgId);
  const found = async () => {
    const workflowIds: string[] = [];
    for await (const { workflowId } of stack.temporal.workflow.list({ query: asked })) workflowIds.push(workflowId);
    return workflowIds.join(' ');
  };
  await expect.poll(found).toContain(FINDS[what]?.() ?? 'an entry above');
});
