/**
 * The retries of one subscription after the first one, which is its lane's (contract §11). It runs while a retry waits
 * or a replay runs: it sends what is due, then it waits until the next one is due, or until it is woken for an earlier
 * one. PostgreSQL holds the state.
 */
import { condition, setHandler, workflowInfo } from '@temporalio/workflow';
import type { RetryResult } from '../activities/webhook-subscription.ts';
import { subscriptionAdvice } from '../domain/operator-advice.ts';
import { PENDING_COUNT_MAX } from '../domain/webhook.ts';
import { round, untilMs } from './activities.ts';
import { retriesAdded, type WebhookSubscriptionInput } from './contract.ts';
import { publishDetails } from './details.ts';
import { continueAsNewRun } from './new-run.ts';
import { uncancelable } from './uncancelable.ts';

export const webhookSubscription = uncancelable(retryAll);

async function retryAll(input: WebhookSubscriptionInput): Promise<void> {
  let isWoken = false;
  setHandler(retriesAdded, () => {
    isWoken = true;
  });
  while (!workflowInfo().continueAsNewSuggested) {
    isWoken = false;
    const { waitMs, found } = await round('Deliver what is due').deliverRetries({ ...input, nowMs: Date.now() });
    const { nextAttemptAt } = found;
    if (nextAttemptAt === null && !isWoken) return;
    if (nextAttemptAt === null || waitMs === 0) continue;
    publishFound(input.webhookId, found);
    await condition(() => isWoken, untilMs(Date.parse(nextAttemptAt)), {
      summary: 'Waiting until the next retry is due',
    });
  }
  await continueAsNewRun(input);
}

/** Shows operators, in Temporal UI, the subscription's status after a round, and what they do next. */
function publishFound(
  webhookId: string,
  { status, disabledReason, waiting, failingSince, nextAttemptAt, lastOutcome }: RetryResult['found'],
) {
  publishDetails(
    [
      `Subscription: **${status}**${disabledReason === null ? '' : ` (${disabledReason})`}`,
      `Waiting retries: **${waiting >= PENDING_COUNT_MAX ? `${PENDING_COUNT_MAX} or more` : waiting}**`,
      `Failing since: ${failingSince ?? 'not failing'}`,
      `Next attempt at: ${nextAttemptAt ?? 'none'}`,
      `Last outcome: ${lastOutcome ?? 'none in the last round'}`,
    ],
    subscriptionAdvice({
      webhookId,
      status: status === 'deleted' ? 'disabled' : status,
      disabledReason,
      isDeleted: status === 'deleted',
      isFailing: failingSince !== null,
    }),
  );
}
