/** What a lane knows of a subscription, and how many of its requests may be in flight. */
import type { Database } from '../db/client.ts';
import type { JudgedResult } from '../db/commands/webhook-attempt.ts';
import type { ClaimedDelivery } from '../db/queries/webhook-attempt.ts';
import { findTarget, type Target } from '../db/queries/webhook-lane.ts';
import { IN_FLIGHT, LANE_IN_FLIGHT_MAX, type LaneReport } from '../domain/webhook.ts';
import type { SecretsOf } from './webhook-attempt.ts';

/** A subscription with none in flight gets as many as a new one, until it has proved to take more than this. */
const LEARNED = 2 * IN_FLIGHT.first;
/**
 * How many deliveries are claimed before they can be sent, to a subscription that answers well: at most as many as it
 * takes in this time, because they are sent without another look at it. What has waited longer, because it has become
 * slow or its host is busy, is compared with it first.
 */
const QUEUED = { most: 224, ms: 500 } as const;
/** How many subscriptions a report names. */
const SLOWEST_MAX = 5;

/** A claimed delivery, and since when it waits in this process. */
export type Queued = { readonly delivery: ClaimedDelivery; readonly sinceMs: number };
export type Subscriber = ReturnType<typeof createSubscriber>;

export const createSubscriber = ({ webhookId, orgId }: ClaimedDelivery, secretsOf: SecretsOf) => ({
  webhookId,
  orgId,
  secretsOf,
  inFlight: 0,
  inFlightMax: IN_FLIGHT.first as number,
  isFailing: false,
  /** When it last had no free place, or a failure that was not recorded yet, by `performance.now()`. */
  fullAtMs: Number.NEGATIVE_INFINITY,
  /** Claimed, and sent as soon as fewer are in flight. */
  queue: [] as Queued[],
  /** When the subscription was last read, and the answer: what has waited is compared with it. */
  look: { atMs: Number.NEGATIVE_INFINITY, target: undefined as Promise<Target | undefined> | undefined },
  /** Sends what is queued, once its host has a place. */
  whenFree: (): void => undefined,
  /** Results that may change the subscription; they are recorded one group after the other. */
  judged: [] as JudgedResult[],
  isRecording: false,
  /** Of the last of these results. */
  requestId: '',
  /** In this minute. */
  requests: 0,
  totalMs: 0,
});

/**
 * Whether a delivery may still be sent as it was claimed. Its subscription may have been disabled, deleted, moved or
 * given another secret since. One look serves all that waits, for as long as a delivery may wait without one.
 */
export async function isCurrent(db: Database, subscriber: Subscriber, { delivery, sinceMs }: Queued): Promise<boolean> {
  const nowMs = performance.now();
  if (nowMs - sinceMs <= QUEUED.ms) return true;
  if (nowMs - subscriber.look.atMs > QUEUED.ms)
    subscriber.look = { atMs: nowMs, target: findTarget(db, subscriber.webhookId).catch(() => undefined) };
  const target = await subscriber.look.target;
  const [secretSealed] = delivery.secretsSealed;
  return target?.url === delivery.url && target.endings === delivery.endings && target.secretSealed === secretSealed;
}

/**
 * How many more requests may be under way to each subscription that has some, or that has proved fast.
 *
 * @param inFlight of the lane
 */
export function freePlaces(subscribers: Iterable<Subscriber>, inFlight: number): Map<string, number> {
  const all = [...subscribers];
  const ofOrganizations = new Map<string, number>();
  for (const { orgId, inFlight: own } of all)
    if (own > 0) ofOrganizations.set(orgId, (ofOrganizations.get(orgId) ?? 0) + own);
  const free = new Map<string, number>();
  for (const subscriber of all) {
    const { webhookId, orgId, inFlight: own, inFlightMax, queue, judged } = subscriber;
    const places = inFlightMax + queuedMax(subscriber) - own - queue.length;
    if (places <= 0 || judged.length > 0) subscriber.fullAtMs = performance.now();
    // A failure is recorded first: it may disable the subscription.
    if (judged.length > 0) free.set(webhookId, 0);
    else if (own > 0 || queue.length > 0 || inFlightMax > LEARNED) {
      const ofOrganization = LANE_IN_FLIGHT_MAX - inFlight - (ofOrganizations.get(orgId) ?? 0);
      free.set(webhookId, Math.max(0, Math.min(places, ofOrganization)));
    }
  }
  return free;
}

/** How many deliveries may wait for a place. */
function queuedMax({ inFlightMax, requests, totalMs }: Subscriber): number {
  if (inFlightMax < IN_FLIGHT.most || requests === 0) return 0;
  const meanMs = Math.max(1, totalMs / requests);
  return Math.min(QUEUED.most, Math.floor((inFlightMax * QUEUED.ms) / meanMs));
}

/** Begins another minute, and forgets those with nothing to do. @returns those whose requests took longest in total */
export function endMinute(subscribers: Map<string, Subscriber>): LaneReport['slowest'] {
  const slowest = [...subscribers.values()]
    .filter(({ requests }) => requests > 0)
    .sort((a, b) => b.totalMs - a.totalMs)
    .slice(0, SLOWEST_MAX)
    .map(({ webhookId, requests, totalMs }) => ({ webhookId, requests, meanMs: Math.round(totalMs / requests) }));
  for (const [webhookId, subscriber] of subscribers) {
    subscriber.requests = 0;
    subscriber.totalMs = 0;
    if (subscriber.inFlight === 0 && subscriber.queue.length === 0 && subscriber.judged.length === 0)
      subscribers.delete(webhookId);
  }
  return slowest;
}
