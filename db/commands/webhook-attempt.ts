/** What the results of attempts decide about subscriptions. */
import {
  afterFailure,
  type DisabledReason,
  type FailingSpan,
  hasFailedTooLong,
  isOtherSpan,
  type Webhook,
  WORKING,
} from '../../domain/webhook.ts';
import { disableWebhook, lockSubscriptions, setFailingSpans } from '../queries/webhook.ts';
import { type AttemptResult, type ClaimedDelivery, recordResults } from '../queries/webhook-attempt.ts';
import { holdForRetry, wakeSubscriptions } from '../queries/webhook-retry.ts';
import { type CommitDeps, commit } from './commit.ts';

const GONE = 410;

/** A result that may change its subscription, and the URL that was asked. */
export type JudgedResult = AttemptResult & Pick<ClaimedDelivery, 'url'>;

/** Results of one subscription's deliveries, in the order in which they came. */
export type SubscriptionResults = {
  readonly webhookId: string;
  /** Of the last of these deliveries. */
  readonly requestId: string;
  readonly results: readonly JudgedResult[];
};

/**
 * Judges subscriptions that fail or have failed by their results, and records the results: a subscription may be
 * disabled, or its failing may end. What leaves its lane, and is to be retried, wakes its subscription's workflow. Many
 * subscriptions take as many statements as one, except that each disabling takes its own.
 *
 * @returns the ids of those that are failing now
 */
export async function judgeAndRecord(
  deps: CommitDeps,
  claimant: number,
  all: readonly SubscriptionResults[],
): Promise<ReadonlySet<string>> {
  const byId = new Map(all.map((each) => [each.webhookId, each]));
  return await commit(deps, 'subscription.record', async (tx) => {
    const webhooks = await lockSubscriptions(tx, [...byId.keys()]);
    const judged = webhooks.map((webhook) => judge(webhook, byId.get(webhook.webhookId)));
    await setFailingSpans(tx, judged.filter(isChanged));
    for (const { webhook, disabled } of judged)
      if (disabled) await disableWebhook(tx, webhook, disabled.reason, disabled.at);
    await recordResults(
      tx,
      claimant,
      judged.flatMap(({ results }) => results),
    );
    await wakeSubscriptions(
      tx,
      judged.flatMap(({ webhook, wakeAt: at, requestId }) => (at ? [{ webhook, at, requestId }] : [])),
    );
    return new Set(judged.flatMap(({ webhook, span }) => (span.failingSince ? [webhook.webhookId] : [])));
  });
}

type Disabling = { readonly reason: Extract<DisabledReason, 'gone' | 'failing'>; readonly at: Date };
type Judged = ReturnType<typeof judge>;

/** What becomes of a locked subscription. */
function judge(webhook: Webhook, { results = [], requestId = '' }: Partial<SubscriptionResults> = {}) {
  let span: FailingSpan = webhook;
  let disabled: Disabling | undefined;
  // The answer of an earlier URL says nothing of the present one.
  const own = results.filter(({ url }) => url === webhook.url);
  for (const { outcome, at: startedAt, duration_ms, response_status } of own) {
    const at = new Date(Date.parse(startedAt) + duration_ms);
    span = outcome === 'succeeded' ? WORKING : afterFailure(span, at);
    const reason = response_status === GONE ? 'gone' : hasFailedTooLong(span.failingSince, at) ? 'failing' : undefined;
    if (reason && webhook.status === 'enabled') disabled ??= { reason, at };
  }
  // What was pending when it was disabled is ended by its workflow too.
  const wakeAt = disabled?.at ?? earliestRetry(results);
  return { webhook, results, requestId, span, disabled, wakeAt };
}

const isChanged = ({ webhook, span }: Judged): boolean => isOtherSpan(webhook, span);

function earliestRetry(results: readonly JudgedResult[]): Date | undefined {
  const leaving = results.filter(({ stays_in_lane }) => !stays_in_lane);
  const times = leaving.flatMap(({ next_attempt_at: at }) => (at === null ? [] : [Date.parse(at)]));
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

/** Gives a claimed delivery, which could not be sent, to its subscription's workflow. */
export async function handOverDelivery(
  deps: CommitDeps,
  delivery: Pick<ClaimedDelivery, 'deliveryId' | 'webhookId' | 'orgId' | 'requestId'>,
  claimant: number,
): Promise<void> {
  const { requestId } = delivery;
  await commit(deps, 'subscription.hand_over', async (tx) => {
    const webhooks = await lockSubscriptions(tx, [delivery.webhookId]);
    await holdForRetry(tx, delivery.deliveryId, claimant);
    await wakeSubscriptions(
      tx,
      webhooks.map((webhook) => ({ webhook, requestId })),
    );
  });
}
