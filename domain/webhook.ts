/**
 * Outbound webhooks (contract §11): subscriptions, the deliveries of events to them, and when a failed attempt is
 * retried. The schedule is data.
 */
import type { EventType } from './event.ts';

export const SUBSCRIPTIONS_MAX = 20;
export const DESCRIPTION_LENGTH_MAX = 500;
/** Subscribes to every event type, future ones included. */
export const ALL_EVENTS = '*';
export type EventFilter = EventType | typeof ALL_EVENTS;

export const WEBHOOK_STATUSES = ['enabled', 'disabled'] as const;
export type WebhookStatus = (typeof WEBHOOK_STATUSES)[number];

/** By the partner, after an answer of 410, after five days without a success, by an operator of the service. */
export const DISABLED_REASONS = ['requested', 'gone', 'failing', 'operator'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

export type Webhook = {
  readonly webhookId: string;
  readonly orgId: string;
  readonly url: string;
  readonly eventTypes: readonly EventFilter[];
  readonly description: string | null;
  readonly status: WebhookStatus;
  readonly disabledReason: DisabledReason | null;
  /** The first failure since the last success; null if there is none. */
  readonly failingSince: Date | null;
  readonly lastFailedAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

export const DELIVERY_STATUSES = ['pending', 'succeeded', 'exhausted', 'skipped', 'canceled'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/**
 * `pending` while the request is under way, and for at most two minutes after a crash that loses the answer. Unless its
 * delivery has ended, the request is repeated.
 */
export const ATTEMPT_OUTCOMES = ['pending', 'succeeded', 'failed'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** Why an attempt failed. Only these words are stored, never a part of the subscriber's answer. */
export const ATTEMPT_ERRORS = [
  'blocked_target',
  'dns',
  'connect',
  'tls',
  'connection_lost',
  'timeout',
  'invalid_response',
  'response_too_large',
  'redirect',
  'http_status',
] as const;
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

export type Attempt = {
  readonly number: number;
  readonly at: Date;
  readonly outcome: AttemptOutcome;
  readonly responseStatus: number | null;
  readonly durationMs: number | null;
  readonly error: AttemptError | null;
};

/** How many attempts of a delivery are shown. */
export const SHOWN_ATTEMPTS_MAX = 10;
/** How many attempts a delivery had, and the last of them, in their order. */
export type Attempts = { readonly count: number; readonly last: readonly Attempt[] };
export const NO_ATTEMPTS: Attempts = { count: 0, last: [] };

export type Delivery = {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly orgId: string;
  readonly eventId: string;
  readonly eventType: EventType;
  readonly status: DeliveryStatus;
  /** 1 for the delivery of the event itself. Each redelivery adds 1. */
  readonly generation: number;
  /** The number of attempts in earlier generations. */
  readonly priorAttempts: number;
  /** How many attempts have ended. */
  readonly attemptCount: number;
  /** Since when an attempt is under way; null if none is. */
  readonly claimedAt: Date | null;
  readonly nextAttemptAt: Date | null;
  /** When its last generations began, at most `REDELIVERIES_MAX` of them; null if it was never redelivered. */
  readonly redeliveredAt: readonly Date[] | null;
  readonly requestId: string;
  readonly createdAt: Date;
};

/** Deliveries that are sent again, oldest first, by the workflow of their subscription. */
export const REPLAY_STATUSES = ['running', 'completed', 'canceled'] as const;
export type ReplayStatus = (typeof REPLAY_STATUSES)[number];

/** Which deliveries of a subscription are sent again. */
export type ReplaySelection = {
  readonly since: Date;
  /** Exclusive; null for all that were created before the replay. */
  readonly until: Date | null;
  readonly statuses: readonly DeliveryStatus[];
  /** Null for all. */
  readonly eventTypes: readonly EventType[] | null;
};

export type Replay = ReplaySelection & {
  readonly replayId: string;
  readonly webhookId: string;
  readonly orgId: string;
  readonly status: ReplayStatus;
  /** How many deliveries were sent again, and how many were left out because of `REDELIVERIES_MAX`. */
  readonly sent: number;
  readonly skipped: number;
  /** What was created before this time is done. */
  readonly reachedAt: Date;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
};

/** How many deliveries one step of a replay looks at. */
export const REPLAY_STEP = 500;

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** The delay after each failed attempt but the last. After the last one there is no retry. */
export const RETRY_DELAYS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
] as const;
export const ATTEMPTS_MAX = RETRY_DELAYS_MS.length + 1;
export const RETRY_JITTER = 0.1;
const RETRY_AFTER_FACTOR_MAX = 2;
/** Its waits take a delivery that is exhausted so long at most: more than a day without `Retry-After` already. */
export const WAITS_MAX_MS = RETRY_AFTER_FACTOR_MAX * RETRY_DELAYS_MS.reduce((sum: number, delayMs) => sum + delayMs, 0);

/** How many generations of one delivery its owner may begin in this time. */
export const REDELIVERIES_MAX = 5;
export const REDELIVERY_WINDOW_MS = 24 * HOUR_MS;

/** When the next generation of a delivery may begin; null when it may now. */
export function redeliverableAt({ redeliveredAt }: Pick<Delivery, 'redeliveredAt'>, now: Date): Date | null {
  const first = redeliveredAt?.at(-REDELIVERIES_MAX);
  const atMs = first === undefined ? 0 : first.getTime() + REDELIVERY_WINDOW_MS;
  return atMs > now.getTime() ? new Date(atMs) : null;
}

/** For this long after its own rotation, an earlier secret signs each request too. */
export const ROTATION_OVERLAP_MS = 24 * HOUR_MS;
/** How many earlier secrets sign at once. */
export const EARLIER_SECRETS_MAX = 5;
/** A subscription that fails for this long, without a success, is disabled. */
const FAILING_WINDOW_MS = 5 * 24 * HOUR_MS;
/** Longer than any wait for a retry. A failure after such a pause begins a new span. */
const FAILING_GAP_MS = 24 * HOUR_MS;
/** The stored time of the latest failure is renewed at most so often. */
const FAILED_AT_PRECISION_MS = HOUR_MS;

/**
 * How long to wait after a failed attempt.
 *
 * @param attempt counts from 1 within its generation
 * @param random in [0, 1): spreads the retries
 * @returns undefined after the last attempt
 */
export function retryDelayMs(attempt: number, random: number, retryAfterMs: number | null): number | undefined {
  const baseMs = RETRY_DELAYS_MS[attempt - 1];
  if (baseMs === undefined) return undefined;
  if (retryAfterMs === null) return Math.round(baseMs * (1 - RETRY_JITTER + 2 * RETRY_JITTER * random));
  const mostMs = baseMs * RETRY_AFTER_FACTOR_MAX;
  const wantedMs = Math.min(mostMs, Math.max(baseMs, retryAfterMs));
  // The random part is only added: a retry is never earlier than the subscriber asked for.
  return Math.round(Math.min(mostMs, wantedMs * (1 + RETRY_JITTER * random)));
}

/** Since when a subscription fails, and when it last failed; both null for one that works. */
export type FailingSpan = Pick<Webhook, 'failingSince' | 'lastFailedAt'>;

export const WORKING: FailingSpan = { failingSince: null, lastFailedAt: null };

/** The span that a failure at this time belongs to. */
export function afterFailure({ failingSince, lastFailedAt }: FailingSpan, at: Date): FailingSpan {
  const isOver = lastFailedAt !== null && at.getTime() - lastFailedAt.getTime() > FAILING_GAP_MS;
  return { failingSince: isOver ? at : (failingSince ?? at), lastFailedAt: at };
}

/** Whether the stored span has to be written again. */
export const isOtherSpan = (stored: FailingSpan, span: FailingSpan): boolean =>
  stored.failingSince?.getTime() !== span.failingSince?.getTime() ||
  (span.lastFailedAt !== null &&
    span.lastFailedAt.getTime() - (stored.lastFailedAt?.getTime() ?? 0) >= FAILED_AT_PRECISION_MS);

/** Whether a failure at this time disables a subscription that has been failing since `failingSince`. */
export const hasFailedTooLong = (failingSince: Date | null, at: Date): boolean =>
  failingSince !== null && at.getTime() - failingSince.getTime() >= FAILING_WINDOW_MS;

/** How many lanes there are. */
export const LANES = 4;
export const ALL_LANES: readonly number[] = [...Array(LANES).keys()];
/**
 * A lane makes so many attempts of a generation. The subscription's workflow makes the others, whose waits are long.
 */
export const LANE_ATTEMPTS = 2;
/** Each organization has one of so many keys. A lane sends to a range of them. */
export const LANE_KEYS = 256;
/** The key of an organization's subscriptions: the last byte of its id, which is random. */
export const laneKeyOf = (orgId: string): number => Number.parseInt(orgId.slice(-2), 16);
/** The lane that sends to an organization's subscriptions. */
export const laneOf = (orgId: string): number => Math.floor(((laneKeyOf(orgId) + 1) * LANES - 1) / LANE_KEYS);

/** How many requests of one lane are in flight at most. */
export const LANE_IN_FLIGHT_MAX = 512;
/** How many requests to one subscription are in flight: at first, at most, and while it is failing. */
export const IN_FLIGHT = { first: 4, most: 32, failing: 1 } as const;
/** An answer that takes longer does not let more requests be in flight. */
const FAST_MS = 500;

/** How many requests may be in flight after one was answered: one more while the endpoint answers well and fast. */
export function nextInFlight(
  inFlight: number,
  { failed, durationMs }: { failed: boolean; durationMs: number },
): number {
  if (failed) return IN_FLIGHT.failing;
  if (durationMs > FAST_MS) return Math.max(Math.min(inFlight, IN_FLIGHT.first), inFlight - 1);
  return Math.min(IN_FLIGHT.most, inFlight + 1);
}

/** The pending deliveries of a subscription are counted for operators, up to this many. */
export const PENDING_COUNT_MAX = 1_000;

/** What a lane did in the last minute, as operators see it. */
export type LaneReport = {
  readonly at: string;
  readonly inFlight: number;
  readonly sent: number;
  readonly failed: number;
  /** Since when the oldest delivery waits that the lane has not taken. */
  readonly oldestDueAt: string | null;
  /** The subscriptions whose requests took longest in total. */
  readonly slowest: readonly { readonly webhookId: string; readonly requests: number; readonly meanMs: number }[];
};
