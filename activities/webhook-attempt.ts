/**
 * One attempt of a delivery: the bytes of its event, signed with each secret that signs, to the subscriber's URL. A
 * subscriber's failure is data.
 */
import { webhookSecretBinding } from '../db/queries/webhook.ts';
import type { AttemptResult, ClaimedDelivery } from '../db/queries/webhook-attempt.ts';
import { inTrace } from '../db/traceparent.ts';
import { LANE_ATTEMPTS, retryDelayMs } from '../domain/webhook.ts';
import type { ActivityDeps } from './deps.ts';
import type { GuardedAnswer, KeptConnections } from './providers/guarded-http.ts';
import { retryAfterMsOf } from './providers/retry-after.ts';
import { signWebhook } from './webhook-signature.ts';

const USER_AGENT = 'settlement-service-webhooks/2.0';
const TOO_MANY_REQUESTS = 429;
const UNAVAILABLE = 503;

/** The secrets that sign a delivery. @throws SealError when no key of this process opens one of them */
export type SecretsOf = (delivery: Pick<ClaimedDelivery, 'webhookId' | 'secretsSealed'>) => readonly Buffer[];

/** For the deliveries of one subscription: its secrets are opened again only when they have changed. */
export function openSecrets({ sealer }: Pick<ActivityDeps, 'sealer'>): SecretsOf {
  let opened: { readonly from: string; readonly secrets: readonly Buffer[] } = { from: '', secrets: [] };
  return ({ webhookId, secretsSealed }) => {
    const from = secretsSealed.join();
    if (from !== opened.from)
      opened = { from, secrets: secretsSealed.map((text) => sealer.open(text, webhookSecretBinding(webhookId))) };
    return opened.secrets;
  };
}

type AttemptContext = {
  readonly connections: KeptConnections;
  /** Since the claim. */
  readonly waitedMs: number;
  /** A workflow's time, if its clock says when the retry is due. Absent: the database's clock says it. */
  readonly at?: Date;
};

export async function sendDelivery(
  deps: Pick<ActivityDeps, 'guardedHttp' | 'crash'>,
  delivery: ClaimedDelivery,
  secretsOf: SecretsOf,
  { connections, waitedMs, at }: AttemptContext,
): Promise<AttemptResult> {
  const { eventId: id, body, url, traceparent } = delivery;
  const secrets = secretsOf(delivery);
  // Subscribers compare the timestamp with their own clock, so it is the real time of sending. That is the database's:
  // with a process whose clock is wrong, each of them would refuse all that it sends.
  const realMs = Date.parse(delivery.claimedAt) + waitedMs;
  const timestamp = Math.floor(realMs / 1_000);
  const headers = {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook(secrets, { id, timestamp, body }),
  };
  const post = () => deps.guardedHttp.post(url, body, headers, connections);
  deps.crash?.('webhook_post:before');
  const answer = traceparent === null ? await post() : await inTrace(traceparent, post);
  deps.crash?.('webhook_post:after');
  // A retry may also be due by the database's clock. A workflow's clock behind it must not shorten the wait for the next.
  const sentAt = new Date(Math.max(at?.getTime() ?? 0, realMs));
  return resultOf(delivery, sentAt, answer, realMs);
}

function resultOf(
  { webhookId, deliveryId, claimedAt, attempt, isInLane }: ClaimedDelivery,
  at: Date,
  { status, error, bytes, sha256, durationMs, lostMs, retryAfter }: GuardedAnswer,
  realMs: number,
): AttemptResult {
  const tookMs = (lostMs ?? 0) + durationMs;
  const isBusy = status === TOO_MANY_REQUESTS || status === UNAVAILABLE;
  const retryAfterMs = isBusy ? retryAfterMsOf(retryAfter, realMs + tookMs) : null;
  const delayMs = error === null ? undefined : retryDelayMs(attempt, Math.random(), retryAfterMs);
  return {
    webhook_id: webhookId,
    delivery_id: deliveryId,
    claimed_at: claimedAt,
    at: at.toISOString(),
    outcome: error === null ? 'succeeded' : 'failed',
    response_status: status,
    response_bytes: bytes,
    response_sha256: sha256?.toString('hex') ?? null,
    duration_ms: durationMs,
    error,
    lost_ms: lostMs,
    next_attempt_at: delayMs === undefined ? null : new Date(at.getTime() + tookMs + delayMs).toISOString(),
    stays_in_lane: isInLane && attempt < LANE_ATTEMPTS,
  };
}
