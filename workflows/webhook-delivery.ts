/**
 * The delivery of one event to one subscription: attempts with growing waits between them, until one succeeds, none is
 * left, or the subscription wants no more. PostgreSQL holds what happened; each attempt and each wait is a row of its
 * own in Temporal UI.
 */
import { condition, continueAsNew, setHandler, workflowInfo } from '@temporalio/workflow';
import type { DeliveryState } from '../activities/webhook-delivery.ts';
import { ATTEMPTS_MAX, type DeliveryStatus } from '../domain/webhook.ts';
import { record, sending } from './activities.ts';
import { placeFreed, retryRequested, subscriptionChanged, type WebhookDeliveryInput } from './contract.ts';

export async function webhookDelivery({
  attempt: first = 1,
  ...input
}: WebhookDeliveryInput): Promise<{ status: DeliveryStatus }> {
  const news = listen();
  let attempt = first;
  for (;;) {
    news.retry = news.place = false;
    const summary = `Attempt ${attempt} of ${ATTEMPTS_MAX}`;
    const state = await sending(summary).attemptDelivery({
      ...input,
      attempt,
      nowMs: Date.now(),
      random: Math.random(),
    });
    if (state.waitMs === null) return { status: state.status };
    if (!state.deferred) attempt += 1;
    const status = await wait(input, news, state, attempt);
    if (status !== 'pending') return { status };
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof webhookDelivery>({ ...input, attempt });
  }
}

/** What was rung since it was last looked at. */
type News = { retry: boolean; place: boolean; subscription: boolean };

function listen(): News {
  const news: News = { retry: false, place: false, subscription: false };
  setHandler(retryRequested, () => {
    news.retry = true;
  });
  setHandler(placeFreed, () => {
    news.place = true;
  });
  setHandler(subscriptionChanged, () => {
    news.subscription = true;
  });
  return news;
}

/**
 * Until it is time for the next attempt, one is asked for, or a place is free for one that found none.
 *
 * @returns `pending`, or what became of the delivery meanwhile
 */
async function wait(
  input: WebhookDeliveryInput,
  news: News,
  state: DeliveryState,
  attempt: number,
): Promise<DeliveryStatus> {
  const untilMs = Date.now() + (state.waitMs ?? 0);
  const isTime = () => news.retry || (state.deferred && news.place);
  const summary = state.deferred
    ? 'Waiting for a free place among the requests to this subscription'
    : `Waiting before attempt ${attempt}`;
  for (;;) {
    const leftMs = untilMs - Date.now();
    const rung = leftMs > 0 && (await condition(() => isTime() || news.subscription, leftMs, { summary }));
    if (!news.subscription) return 'pending';
    news.subscription = false;
    const status = await record.readDelivery(input);
    if (status !== 'pending' || isTime() || !rung) return status;
  }
}
