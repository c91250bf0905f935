/**
 * One attempt to deliver an event (contract §11). The attempt is written before its request is sent and completed
 * after, each in a transaction under the subscription's lock: a crash in between sends the same bytes again under the
 * same number and the same webhook-id. What a subscriber does is data; only our own dependencies make an attempt fail.
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

/** `attempt` counts from 1 within the generation; `nowMs` and `random` are the workflow's. */
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
 * Where a delivery stands; `waitMs` until the next attempt, null when there is none. A deferred one found no place and
 * made no attempt.
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

type Sendable = {
  readonly delivery: DeliveryRow;
  readonly number: number;
  readonly body: Buffer;
  readonly subscription: Subscription;
};

export function webhookDeliveryActivities(deps: ActivityDeps) {
  const inTurn = createTurns();
  return {
    /** Sends an event once, unless it no longer is to be sent or the subscription has too many requests under way. */
    attemptDelivery: async (input: AttemptInput): Promise<DeliveryState> => {
      const begun = await inTurn(input.webhookId, () => commit(deps, (tx) => begin(tx, input)));
      if ('state' in begun) return begun.state;
      const answer = await send(deps, begun);
      const asked = answer.status === TOO_MANY_REQUESTS || answer.status === UNAVAILABLE;
      const retryAfterMs = asked ? retryAfterMsOf(answer.retryAfter, deps.now().getTime()) : null;
      return await inTurn(input.webhookId, () =>
        commit(deps, (tx) => complete(tx, input, begun.number, answer, retryAfterMs)),
      );
    },

    /** Whether a delivery is still to be made. */
    readDelivery: (input: {
      readonly orgId: string;
      readonly deliveryId: string;
      readonly generation: number;
    }): Promise<DeliveryStatus> => getDeliveryStatus(deps.db, input.orgId, input),
  };
}

const over = (status: DeliveryStatus): DeliveryState => ({ status, waitMs: null, deferred: false });

/** Where a delivery stands whose attempt is complete. */
function stateOf({ status, nextAttemptAt }: DeliveryRow, nowMs: number): DeliveryState {
  return nextAttemptAt === null
    ? over(status)
    : { status, waitMs: Math.max(0, nextAttemptAt.getTime() - nowMs), deferred: false };
}

async function begin(tx: Tx, input: AttemptInput): Promise<Sendable | { readonly state: DeliveryState }> {
  const at = new Date(input.nowMs);
  const subscription = await lockSubscription(tx, input.orgId, input.webhookId, at);
  const { delivery, body } = await getDeliveryToSend(tx, input.orgId, input.deliveryId);
  if (delivery.generation !== input.generation) return { state: over('skipped') };
  if (delivery.status !== 'pending') return { state: over(delivery.status) };
  const number = delivery.priorAttempts + input.attempt;
  const outcome = await findAttemptOutcome(tx, { deliveryId: delivery.deliveryId, number });
  if (outcome !== undefined && outcome !== 'pending') return { state: stateOf(delivery, input.nowMs) };
  if (subscription.deleted)
    return {
      state: stateOf(await moveDelivery(tx, delivery, { status: 'canceled', nextAttemptAt: null }), input.nowMs),
    };
  const askedFor = delivery.requested && input.attempt === 1;
  if (subscription.webhook.status === 'disabled' && !askedFor) {
    return {
      state: stateOf(await moveDelivery(tx, delivery, { status: 'skipped', nextAttemptAt: null }), input.nowMs),
    };
  }
  if (await beginAttempt(tx, delivery, number, at)) return { delivery, number, body, subscription };
  const waiting = await waitForPlace(tx, delivery);
  return { state: { status: 'pending', waitMs: placeWaitMs(waiting, input.random), deferred: true } };
}

async function send(deps: ActivityDeps, { delivery, body, subscription }: Sendable): Promise<GuardedAnswer> {
  const { webhook, secretsSealed } = subscription;
  const secrets = secretsSealed.map((sealed) => {
    const secret = deps.sealer.open(sealed, webhookSecretBinding(webhook.webhookId));
    if (!secret) throw new Error(`no key opens the secret of webhook ${webhook.webhookId}`);
    return secret;
  });
  // Subscribers compare the timestamp with their own clock: it is the time of sending, whatever delayed this step.
  const timestamp = Math.floor(deps.now().getTime() / 1_000);
  return await deps.guardedHttp.post(webhook.url, body, {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'webhook-id': delivery.eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook(secrets, { id: delivery.eventId, timestamp, body }),
  });
}

async function complete(
  tx: Tx,
  input: AttemptInput,
  number: number,
  answer: GuardedAnswer,
  retryAfterMs: number | null,
): Promise<DeliveryState> {
  const endMs = input.nowMs + answer.durationMs;
  const { webhook, deleted } = await lockSubscription(tx, input.orgId, input.webhookId, new Date(endMs));
  const { delivery } = await getDeliveryToSend(tx, input.orgId, input.deliveryId);
  const first = await completeAttempt(tx, { deliveryId: input.deliveryId, number }, recordOf(answer));
  if (first) await signalLongestWaiting(tx, input.webhookId);
  if (delivery.generation !== input.generation) return over('skipped');
  if (!first) return stateOf(delivery, input.nowMs);
  if (answer.error !== null) {
    const nextMs = retryDelayMs(input.attempt, input.random, retryAfterMs);
    return stateOf(
      await fail(tx, webhook, delivery, {
        answer,
        at: new Date(endMs),
        nextAttemptAt: nextMs === undefined ? null : new Date(endMs + nextMs),
      }),
      endMs,
    );
  }
  await setFailingSince(tx, webhook, null);
  // One that was skipped while its request was under way has arrived all the same.
  return stateOf(
    await moveDelivery(tx, delivery, { status: deleted ? 'canceled' : 'succeeded', nextAttemptAt: null }),
    endMs,
  );
}

type Failed = { readonly answer: GuardedAnswer; readonly at: Date; readonly nextAttemptAt: Date | null };

/** What follows from a failed attempt, for the subscription and for this delivery. */
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
