/**
 * What a settlement costs, counted, so that growth is noticed (docs/performance.md). The counts are the same on every
 * machine.
 */
import { expect, vi } from 'vitest';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { withStack } from '../support/fixture.ts';
import { historyText } from '../support/history.ts';
import { createRecipient, jsonOf, settle } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { BY_MANUAL_CARD } from '../support/settlement.ts';
import { recordStatements } from '../support/statement-count.ts';

/** One of them counts the rows of the outbox, at most once a second in each process. */
const STATEMENTS_MAX = 26;
const WORKFLOW_TASKS_MAX = 3;
const HISTORY_EVENTS_MAX = 20;

const test = withStack();

test('a card settlement costs at most 26 statements, 3 workflow tasks and 20 history events', async ({
  stack,
  api,
  partner,
}) => {
  const recipientId = await createRecipient(api, partner);
  const recorded = recordStatements(api.connection.pool);
  const settlementId = await settle(api, partner, { ...BY_MANUAL_CARD, recipient_id: recipientId });
  const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(settlementId));
  const eventsOf = async () => (await handle.fetchHistory().catch(() => undefined))?.events ?? [];
  // Temporal is asked, since a read of the API would be counted.
  await vi.waitUntil(async () => (await eventsOf()).some((event) => event.timerStartedEventAttributes), WAIT);
  expect(jsonOf(await sendCardproc(api, cardprocBody(settlementId)))).toMatchObject({ matched: true });
  expect(await handle.result()).toEqual({ status: 'settled', failure: null });

  const statements = recorded();
  expect(statements.length, statements.join('\n')).toBeLessThanOrEqual(STATEMENTS_MAX);
  const events = await eventsOf();
  // What operators read in Temporal UI.
  for (const summary of ['Waiting for card evidence', 'Send the payout'])
    expect(historyText({ events })).toContain(summary);
  expect(events.length).toBeLessThanOrEqual(HISTORY_EVENTS_MAX);
  const tasks = events.filter((event) => event.workflowTaskCompletedEventAttributes);
  expect(tasks.length).toBeLessThanOrEqual(WORKFLOW_TASKS_MAX);
});
