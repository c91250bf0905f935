/**
 * Outbound webhooks (contract §11): subscriptions, the deliveries of events to them, and when an attempt is repeated.
 * The schedule is data; what happens after an attempt is decided here, from what is known, without a clock.
 */
import type { EventType } from './event.ts';

export const SUBSCRIPTIONS_MAX = 20;
export const DESCRIPTION_LENGTH_MAX = 500;
/** A subscription to every type, those of the future included. */
export const ALL_EVENTS = '*';
export type EventFilter = EventType | typeof ALL_EVENTS;

export const WEBHOOK_STATUSES = ['enabled', 'disabled'] as const;
export type WebhookStatus = (typeof WEBHOOK_STATUSES)[number];

/** `requested` by the partner, `gone` by a 410, `failing` by days of nothing but failure. */
export const DISABLED_REASONS = ['requested', 'gone', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

export type Webhook = {
  readonly webhookId: string;
  readonly orgId: string;
  readonly url: string;
  readonly eventTypes: readonly EventFilter[];
  readonly description: string | null;
  readonly status: WebhookStatus;
  readonly disabledReason: DisabledReason | null;
  /** When the first of the failures happened that no success has followed. */
  readonly failingSince: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

export const DELIVERY_STATUSES = ['pending', 'succeeded', 'exhausted', 'skipped', 'canceled'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** `pending` while the request is under way, or when a crash took the answer and it will be sent again. */
export const ATTEMPT_OUTCOMES = ['pending', 'succeeded', 'failed'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** Why an attempt failed; a word, so that nothing of an answer reaches the history. */
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

export type Delivery = {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly orgId: string;
  readonly eventId: string;
  readonly eventType: EventType;
  readonly status: DeliveryStatus;
  /** Counts from 1 how often the delivery was begun: by its event, then by each redelivery. */
  readonly generation: number;
  /** Begun by the partner: its first attempt is sent even to a disabled subscription. */
  readonly requested: boolean;
  /** Attempts of earlier generations. */
  readonly priorAttempts: number;
  readonly nextAttemptAt: Date | null;
  readonly requestId: string;
  readonly createdAt: Date;
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** How long after each failed attempt the next one comes; after the last there is none. */
export const RETRY_STEPS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
] as const;
export const ATTEMPTS_MAX = RETRY_STEPS_MS.length + 1;
export const RETRY_JITTER = 0.1;
const RETRY_AFTER_FACTOR_MAX = 2;

/** Both secrets sign for this long after a rotation. */
export const ROTATION_OVERLAP_MS = 24 * HOUR_MS;
/** Nothing but failure for this long disables the subscription. */
export const FAILING_WINDOW_MS = 5 * 24 * HOUR_MS;
/** Attempts under way to one subscription, in all processes together. */
export const IN_FLIGHT_MAX = 4;

/**
 * How long to wait after a failed attempt.
 *
 * @param attempt counts from 1 within its generation
 * @param random in [0, 1), spreads subscribers' retries
 * @returns undefined after the last attempt
 */
export function retryDelayMs(attempt: number, random: number, retryAfterMs: number | null): number | undefined {
  const stepMs = RETRY_STEPS_MS[attempt - 1];
  if (stepMs === undefined) return undefined;
  if (retryAfterMs === null) return Math.round(stepMs * (1 - RETRY_JITTER + 2 * RETRY_JITTER * random));
  const mostMs = stepMs * RETRY_AFTER_FACTOR_MAX;
  const askedMs = Math.min(mostMs, Math.max(stepMs, retryAfterMs));
  // Never before the time that was asked for: the spread goes up alone.
  return Math.round(Math.min(mostMs, askedMs * (1 + RETRY_JITTER * random)));
}

/** Whether a subscription that has failed since then is to be disabled at this failure. */
export const hasFailedTooLong = (failingSince: Date | null, at: Date): boolean =>
  failingSince !== null && at.getTime() - failingSince.getTime() >= FAILING_WINDOW_MS;

const PLACE_WAIT_MS = 15 * SECOND_MS;
const PLACE_WAIT_MAX_MS = 10 * MINUTE_MS;

/**
 * When a delivery that found no place looks again by itself. A place that becomes free is told of at once; this only
 * makes up for a process that died holding one, so those further behind look less often.
 *
 * @param waiting how many wait for the same subscription, this one included
 */
export function placeWaitMs(waiting: number, random: number): number {
  return Math.round(Math.min(PLACE_WAIT_MAX_MS, PLACE_WAIT_MS * Math.ceil(waiting / IN_FLIGHT_MAX)) * (1 + random));
}
