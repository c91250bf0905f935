/**
 * The deliveries of one subscription (contract §11). It runs while something is pending: a round delivers what is due,
 * then the workflow waits until the next attempt is due, or until it is woken. PostgreSQL holds the state. A busy
 * subscription is not woken for each event: a round stays for a moment and finds them itself.
 */
import { condition, continueAsNew, setHandler } from '@temporalio/workflow';
import type { RoundResult } from '../activities/webhook-subscription.ts';
import { subscriptionAdvice } from '../domain/operator-advice.ts';
import { PENDING_COUNT_MAX } from '../domain/webhook.ts';
import { round } from './activities.ts';
import { deliveriesCommitted, type WebhookSubscriptionInput } from './contract.ts';
import { publishDetails } from './details.ts';
import { uncancelable } from './uncancelable.ts';

/** Then the workflow continues as a new run, so that no history grows without end. */
const ROUNDS_MAX = 500;

export const webhookSubscription = uncancelable(deliverAll);

async function deliverAll({ webhookId, orgId, ...input }: WebhookSubscriptionInput): Promise<void> {
  let isWoken = false;
  let { inFlight } = input;
  setHandler(deliveriesCommitted, () => {
    isWoken = true;
  });
  for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
    isWoken = false;
    const known = inFlight === undefined ? {} : { inFlight };
    const result = await round('Deliver what is due').deliverDue({ webhookId, orgId, nowMs: Date.now(), ...known });
    inFlight = result.inFlight;
    // A round has its own row in Temporal UI. Details are for what waits.
    if (result.waitMs === null && !isWoken) return;
    if (result.waitMs === null || result.waitMs === 0) continue;
    publishStatus(result);
    await condition(() => isWoken, result.waitMs, { summary: 'Waiting until the next attempt is due' });
  }
  await continueAsNew<typeof deliverAll>({ webhookId, orgId, ...(inFlight === undefined ? {} : { inFlight }) });
}

/** Shows operators, in Temporal UI, the subscription's status after a round, and what they do next. */
function publishStatus({ standing }: RoundResult): void {
  if (standing === null) return;
  const { status, disabledReason, pending, failingSince, nextAttemptAt, lastOutcome } = standing;
  publishDetails(
    [
      `Subscription: **${status}**${disabledReason === null ? '' : ` (${disabledReason})`}`,
      `Pending deliveries: **${pending >= PENDING_COUNT_MAX ? `${PENDING_COUNT_MAX} or more` : pending}**`,
      `Failing since: ${failingSince ?? 'not failing'}`,
      `Next attempt at: ${nextAttemptAt ?? 'none'}`,
      `Last outcome: ${lastOutcome ?? 'none in the last round'}`,
    ],
    subscriptionAdvice({
      status: status === 'deleted' ? 'disabled' : status,
      disabledReason,
      isDeleted: status === 'deleted',
      isFailing: failingSince !== null,
    }),
  );
}
