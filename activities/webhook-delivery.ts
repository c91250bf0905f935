/**
 * One attempt to deliver an event (contract §11). The attempt is recorded before its request is sent and completed
 * after it, each in one transaction under the subscription's lock. After a crash in between, the same bytes are sent
 * again with the same number and the same webhook-id. A subscriber's failure is data; only our own dependencies fail
 * the activity.
 */
import type { Tx } from '../db/client.ts';
import { commit } from '../db/commands/commit.ts';
import {
  disableWebhook,
  lockSubscription,
  type Subscription,
  setFailingSince,
  webhookSecretBinding,
} from '../db/queries/webhook.ts';
import {
  type AttemptRecord,
  beginAttempt,
  completeAttempt,
  findAttemptOutcome,
  getDeliveryToSend,
  moveDelivery,
  signalLongestWaiting,
  waitForPlace,
} from '../db/queries/webhook-attempt.ts';
import { type DeliveryRow, getDeliveryStatus } from '../db/queries/webhook-delivery.ts';
import { type DeliveryStatus, hasFailedTooLong, placeWaitMs, retryDelayMs, type Webhook } from '../domain/webhook.ts';
import type { ActivityDeps } from './deps.ts';
import type { GuardedAnswer } from './providers/guarded-http.ts';
import { retryAfterMsOf } from './providers/retry-after.ts';
import { signWebhook } from './webhook-signature.ts';
import { createTurns } from './webhook-turn.ts';

/** `attempt` counts from 1 within the generation. `nowMs` (epoch milliseconds) and `random` come from the workflow. */
export type AttemptInput = {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly orgId: string;
  readonly generation: number;
  readonly attempt: number;
  readonly nowMs: number;
  readonly random: number;
};

/**
 * The state of a delivery. `waitMs` until the next attempt, null when there is none. A deferred delivery found no free
 * request slot of its subscription and made no attempt.
 */
export type DeliveryState = {
  readonly status: DeliveryStatus;
  readonly waitMs: number | null;
  readonly deferred: boolean;
};

const USER_AGENT = 'settlement-service-webhooks/2.0';
const TOO_MANY_REQUESTS = 429;
const UNAVAILABLE = 503;
const GONE = 410;

/** An attempt that is recorded and not yet sent. */
type BegunAttempt = {
  readonly delivery: DeliveryRow;
  readonly number: number;
  readonly body: Buffer;
  readonly subscription: Subscription;
};

export function webhookDeliveryActivities(deps: ActivityDeps) {
  const inTurn = createTurns();
  return {
    /** Sends an event once, unless the delivery has ended or its subscription has no free request slot. */
    attemptDelivery: async (input: AttemptInput): Promise<DeliveryState> => {
      const begun = await inTurn(input.webhookId, () =>
        commit(deps, 'delivery.begin_attempt', (tx) => beginDelivery(tx, input)),
      );
      if ('state' in begun) return begun.state;
      const answer = await send(deps, begun);
      const isBusy = answer.status === TOO_MANY_REQUESTS || answer.status === UNAVAILABLE;
      const retryAfterMs = isBusy ? retryAfterMsOf(answer.retryAfter, deps.now().getTime()) : null;
      const result = { number: begun.number, answer, retryAfterMs };
      return await inTurn(input.webhookId, () =>
        commit(deps, 'delivery.record_attempt', (tx) => completeDelivery(tx, input, result)),
      );
    },

    /** The delivery's status, without an attempt. */
    readDelivery: (input: {
      readonly orgId: string;
      readonly deliveryId: string;
      readonly generation: number;
    }): Promise<DeliveryStatus> => getDeliveryStatus(deps.db, input.orgId, input),
  };
}

const ended = (status: DeliveryStatus): DeliveryState => ({ status, waitMs: null, deferred: false });

/** The state of a delivery without an attempt under way. */
function stateOf({ status, nextAttemptAt }: DeliveryRow, nowMs: number): DeliveryState {
  return nextAttemptAt === null
    ? ended(status)
    : { status, waitMs: Math.max(0, nextAttemptAt.getTime() - nowMs), deferred: false };
}

async function beginDelivery(tx: Tx, input: AttemptInput): Promise<BegunAttempt | { readonly state: DeliveryState }> {
  const at = new Date(input.nowMs);
  const subscription = await lockSubscription(tx, input.orgId, input.webhookId, at);
  const { delivery, body } = await getDeliveryToSend(tx, input.orgId, input.deliveryId);
  if (delivery.generation !== input.generation) return { state: ended('skipped') };
  if (delivery.status !== 'pending') return { state: ended(delivery.status) };
  const number = delivery.priorAttempts + input.attempt;
  const outcome = await findAttemptOutcome(tx, { deliveryId: delivery.deliveryId, number });
  if (outcome !== undefined && outcome !== 'pending') return { state: stateOf(delivery, input.nowMs) };
  const endAs = async (status: 'canceled' | 'skipped') => ({
    state: stateOf(await moveDelivery(tx, delivery, { status, nextAttemptAt: null }), input.nowMs),
  });
  if (subscription.deleted) return await endAs('canceled');
  const isRequested = delivery.requested && input.attempt === 1;
  if (subscription.webhook.status === 'disabled' && !isRequested) return await endAs('skipped');
  if (await beginAttempt(tx, delivery, number, at)) return { delivery, number, body, subscription };
  const waiting = await waitForPlace(tx, delivery);
  return { state: { status: 'pending', waitMs: placeWaitMs(waiting, input.random), deferred: true } };
}

async function send(deps: ActivityDeps, { delivery, body, subscription }: BegunAttempt): Promise<GuardedAnswer> {
  const { webhook, secretsSealed } = subscription;
  const secrets = secretsSealed.map((sealed) => deps.sealer.open(sealed, webhookSecretBinding(webhook.webhookId)));
  // Subscribers compare the timestamp with their own clock, so it is the real time of sending.
  const timestamp = Math.floor(deps.now().getTime() / 1_000);
  deps.crash?.('webhook_post:before');
  const answer = await deps.guardedHttp.post(webhook.url, body, {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'webhook-id': delivery.eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook(secrets, { id: delivery.eventId, timestamp, body }),
  });
  deps.crash?.('webhook_post:after');
  return answer;
}

/** The result of an attempt's request. `retryAfterMs` is the wait that a busy subscriber requested. */
type AttemptResult = {
  readonly number: number;
  readonly answer: GuardedAnswer;
  readonly retryAfterMs: number | null;
};

async function completeDelivery(
  tx: Tx,
  input: AttemptInput,
  { number, answer, retryAfterMs }: AttemptResult,
): Promise<DeliveryState> {
  const endMs = input.nowMs + answer.durationMs;
  const at = new Date(endMs);
  const { webhook, deleted } = await lockSubscription(tx, input.orgId, input.webhookId, at);
  const { delivery } = await getDeliveryToSend(tx, input.orgId, input.deliveryId);
  const completed = await completeAttempt(tx, { deliveryId: input.deliveryId, number }, recordOf(answer));
  if (completed) await signalLongestWaiting(tx, input.webhookId);
  if (delivery.generation !== input.generation) return ended('skipped');
  // It was completed before: an earlier run of this activity did the rest.
  if (!completed) return stateOf(delivery, input.nowMs);
  if (answer.error !== null) {
    const delayMs = retryDelayMs(input.attempt, input.random, retryAfterMs);
    const nextAttemptAt = delayMs === undefined ? null : new Date(endMs + delayMs);
    return stateOf(await fail(tx, webhook, delivery, { answer, at, nextAttemptAt }), endMs);
  }
  await setFailingSince(tx, webhook, null);
  // A delivery that was skipped during its request has arrived nevertheless.
  const status = deleted ? 'canceled' : 'succeeded';
  return stateOf(await moveDelivery(tx, delivery, { status, nextAttemptAt: null }), endMs);
}

type Failed = { readonly answer: GuardedAnswer; readonly at: Date; readonly nextAttemptAt: Date | null };

/** Applies a failed attempt to the subscription, which it may disable, and to the delivery. */
async function fail(
  tx: Tx,
  webhook: Webhook,
  delivery: DeliveryRow,
  { answer, at, nextAttemptAt }: Failed,
): Promise<DeliveryRow> {
  await setFailingSince(tx, webhook, webhook.failingSince ?? at);
  const reason = answer.status === GONE ? 'gone' : hasFailedTooLong(webhook.failingSince, at) ? 'failing' : undefined;
  if (webhook.status === 'enabled' && reason) await disableWebhook(tx, webhook, reason, at);
  if (delivery.status !== 'pending') return delivery;
  if (webhook.status === 'disabled' || reason)
    return await moveDelivery(tx, delivery, { status: 'skipped', nextAttemptAt: null });
  return await moveDelivery(tx, delivery, { status: nextAttemptAt === null ? 'exhausted' : 'pending', nextAttemptAt });
}

const recordOf = ({ status, error, bytes, sha256, durationMs }: GuardedAnswer): AttemptRecord => ({
  outcome: error === null ? 'succeeded' : 'failed',
  responseStatus: status,
  responseBytes: bytes,
  responseSha256: sha256,
  durationMs,
  error,
});
