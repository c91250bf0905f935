/** What a run of a subscription decides about the subscription itself. */
import { type DisabledReason, hasFailedTooLong } from '../../domain/webhook.ts';
import { disableWebhook, lockSubscription, setFailingSince } from '../queries/webhook.ts';
import { type AttemptResult, recordResults } from '../queries/webhook-run.ts';
import { type CommitDeps, commit } from './commit.ts';

const GONE = 410;

/**
 * Records results, in the order in which they came, of a subscription that fails or has failed: it may be disabled, or
 * its failing may end.
 *
 * @returns whether it is failing now, and whether it was disabled by these results
 */
export async function recordFailures(
  deps: CommitDeps,
  webhookId: string,
  results: readonly AttemptResult[],
): Promise<{ readonly isFailing: boolean; readonly isDisabled: boolean }> {
  return await commit(deps, 'subscription.record', async (tx) => {
    const webhook = await lockSubscription(tx, webhookId);
    let { failingSince } = webhook;
    let disabled: { readonly reason: Exclude<DisabledReason, 'requested'>; readonly at: Date } | undefined;
    for (const { outcome, at: startedAt, duration_ms, response_status } of results) {
      const at = new Date(Date.parse(startedAt) + duration_ms);
      const reason = response_status === GONE ? 'gone' : hasFailedTooLong(failingSince, at) ? 'failing' : undefined;
      if (outcome === 'failed' && reason) disabled ??= { reason, at };
      failingSince = outcome === 'succeeded' ? null : (failingSince ?? at);
    }
    const isDisabled = webhook.status === 'enabled' && disabled !== undefined;
    await setFailingSince(tx, webhook, failingSince);
    if (isDisabled && disabled) await disableWebhook(tx, webhook, disabled.reason, disabled.at);
    await recordResults(tx, webhookId, results);
    return { isFailing: failingSince !== null, isDisabled };
  });
}
