/** What the results of attempts decide about a subscription. */
import { type DisabledReason, hasFailedTooLong } from '../../domain/webhook.ts';
import { disableWebhook, lockSubscription, setFailingSince } from '../queries/webhook.ts';
import { type AttemptResult, type ClaimedDelivery, recordResults } from '../queries/webhook-attempt.ts';
import { holdForRetry, wakeSubscription } from '../queries/webhook-retry.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

const GONE = 410;

type Sender = { readonly webhookId: string; readonly claimant: number; readonly requestId: string };

/**
 * Records results, in the order in which they came, of a subscription that fails or has failed: it may be disabled, or
 * its failing may end. What leaves its lane, and is to be retried, wakes the subscription's workflow.
 *
 * @returns whether it is failing now
 */
export async function recordFailures(
  deps: CommitDeps,
  { webhookId, claimant, requestId }: Sender,
  results: readonly AttemptResult[],
): Promise<{ readonly isFailing: boolean }> {
  return await commit(deps, 'subscription.record', async (tx) => {
    const webhook = await lockSubscription(tx, webhookId);
    let { failingSince } = webhook;
    let disabled: { readonly reason: Extract<DisabledReason, 'gone' | 'failing'>; readonly at: Date } | undefined;
    for (const { outcome, at: startedAt, duration_ms, response_status } of results) {
      const at = new Date(Date.parse(startedAt) + duration_ms);
      const reason = response_status === GONE ? 'gone' : hasFailedTooLong(failingSince, at) ? 'failing' : undefined;
      if (outcome === 'failed' && reason) disabled ??= { reason, at };
      failingSince = outcome === 'succeeded' ? null : (failingSince ?? at);
    }
    await setFailingSince(tx, webhook, failingSince);
    const isDisabled = webhook.status === 'enabled' && disabled !== undefined;
    if (isDisabled && disabled) await disableWebhook(tx, webhook, disabled.reason, disabled.at);
    await recordResults(tx, claimant, results);
    // What was pending when it was disabled is ended by its workflow too.
    const next = isDisabled ? disabled?.at : earliestRetry(results);
    if (next) await wakeSubscription(tx, webhook, next, requestId);
    return { isFailing: failingSince !== null };
  });
}

function earliestRetry(results: readonly AttemptResult[]): Date | undefined {
  const leaving = results.filter(({ stays_in_lane }) => !stays_in_lane);
  const times = leaving.flatMap(({ next_attempt_at: at }) => (at === null ? [] : [Date.parse(at)]));
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

/** Gives a claimed delivery, which could not be sent, to its subscription's workflow. */
export async function handOverDelivery(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  delivery: Pick<ClaimedDelivery, 'deliveryId' | 'webhookId' | 'orgId' | 'requestId'>,
  claimant: number,
): Promise<void> {
  await commit(deps, 'subscription.hand_over', async (tx) => {
    const webhook = await lockSubscription(tx, delivery.webhookId);
    await holdForRetry(tx, delivery.deliveryId, claimant);
    await wakeSubscription(tx, webhook, deps.now(), delivery.requestId);
  });
}
