/**
 * A lane (contract §11): it makes the first attempts and the first retries for its share of all subscriptions, for as
 * long as its process serves it. One statement records what was sent and claims what is sent next, while other requests
 * are under way. A subscriber that hangs holds only its own share: of a subscription a bounded number is in flight, and
 * of an organization at most as many as the lane has free.
 * This file has more than 300 lines, because all parts change the same state and are read together.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { commitStatement, NO_DISPATCHER } from '../db/commands/commit.ts';
import { handOverDelivery, judgeAndRecord } from '../db/commands/webhook-attempt.ts';
import { type AttemptResult, type ClaimedDelivery, openClaimant } from '../db/queries/webhook-attempt.ts';
import {
  exchangeDeliveries,
  findOldestUnclaimed,
  laneKeysOf,
  releaseDeliveries,
  type Turn,
} from '../db/queries/webhook-lane.ts';
import { createWakeUp } from '../db/wake-up.ts';
import { IN_FLIGHT, LANE_IN_FLIGHT_MAX, LANES, type LaneReport, nextInFlight } from '../domain/webhook.ts';
import { laneWorkflowId } from '../domain/workflow-id.ts';
import type { ActivityDeps } from './deps.ts';
import { createDestinations, type Destinations } from './destination.ts';
import { whileHeartbeating } from './long-activity.ts';
import { type OneAtATime, oneAtATime } from './one-at-a-time.ts';
import { keepConnections } from './providers/guarded-http.ts';
import { openSecrets, sendDelivery } from './webhook-attempt.ts';
import {
  createSubscriber,
  endMinute,
  freePlaces,
  isCurrent,
  type Queued,
  type Subscriber,
} from './webhook-subscriber.ts';

/**
 * After this time the activity ends once nothing is in flight, and after twice the time it claims no more: so its
 * workflow can continue as a new run.
 */
const SERVED_MS = 60 * 60_000;
/** How many deliveries one statement claims at most. */
const CLAIMED_AT_ONCE = 128;
/**
 * The least time between two statements, so that each one records many results. New deliveries, and a rest of what was
 * to be claimed, do not wait for it.
 */
const EXCHANGE_MS = 20;
/**
 * After a statement a lane rests: `factor` times as long as the statement took, unless there is more to claim at once.
 * So a busy database gets fewer statements. New deliveries wait for the rest too (docs/performance.md, "Webhooks").
 */
const REST = { factor: 0.5, maxMs: 8 } as const;
/**
 * A delivery is left over when an earlier activity of the lane has claimed it, or a statement whose answer was lost.
 * One statement in this time looks for them. Every statement looks during this time after the activity has begun, after
 * an answer was lost, and after a look that found some: one statement may have no places for all of them.
 */
const TAKE_OVER_MS = 5_000;
/** A lane looks so often without a notification: for retries that are due, and if the listener has lost its connection. */
const LOOK_MS = 500;
/** One transaction records the failures of at most so many subscribers. Hundreds of requests can time out together. */
const JUDGED_TOGETHER = 32;
/** Such a transaction waits this long for more failures: requests that began together time out together. */
const JUDGED_AFTER_MS = 50;
/** At most so many of these transactions run at once, so that the lane never waits for a connection to the database. */
const JUDGED_AT_ONCE = 2;
/** What the lanes of a process need of the database: each exchanges and judges, and waits for no other work. */
export const LANE_CONNECTIONS = LANES * (1 + JUDGED_AT_ONCE);
/** After a failure of the database: the wait, and how many failures in a row end the activity. */
const RECOVER_MS = 1_000;
const FAILURES_MAX = 5;
const REPORT_MS = 60_000;

type Lane = ReturnType<typeof createLane>;

/** @param destinations shared by the lanes of the process */
export function webhookLaneActivities(deps: ActivityDeps, destinations: Destinations = createDestinations()) {
  // One statement of lanes at a time: four at once slow those of requests and settlements down.
  const shared = { destinations, inTurn: oneAtATime() };
  return {
    /** Sends what is due to the subscriptions of a lane. @returns `isServed`: false if there is no such lane now */
    serveLane: async ({ lane }: { readonly lane: number }): Promise<{ readonly isServed: boolean }> => {
      if (lane >= LANES) return { isServed: false };
      await whileHeartbeating(deps, (stop) => serve(deps, shared, lane, stop));
      return { isServed: true };
    },
  };
}

/** What the lanes of a process share. */
type Shared = { readonly destinations: Destinations; readonly inTurn: OneAtATime };

const createLane = (deps: ActivityDeps, shared: Shared, number: number, claimant: number) => ({
  deps,
  ...shared,
  claimant,
  keys: laneKeysOf(number),
  connections: keepConnections(),
  wakeUp: createWakeUp(),
  /** Woken only by new deliveries: they are claimed at once. */
  dueNotice: createWakeUp(),
  subscribers: new Map<string, Subscriber>(),
  /** By delivery whose request is under way, or whose result is not recorded: when it was claimed. */
  known: new Map<string, string>(),
  /** Subscribers with results that are to be judged, the first one first. */
  toJudge: new Set<Subscriber>(),
  judging: 0,
  /** Results that only have to be recorded. */
  finished: [] as AttemptResult[],
  inFlight: 0,
  after: undefined as Turn | undefined,
  /** When it last looked for deliveries that were left over. */
  lookedMs: performance.now(),
  /** When it last found such deliveries, lost the answer of a statement, or began. */
  tookOverMs: performance.now(),
  sent: 0,
  failed: 0,
  wasQuiet: true,
  failure: undefined as { readonly error: unknown } | undefined,
});

async function serve(deps: ActivityDeps, shared: Shared, number: number, stop: AbortSignal): Promise<void> {
  const lane = createLane(deps, shared, number, await openClaimant(deps.db));
  const unsubscribe = deps.deliveriesDue.subscribe(String(number), () => {
    lane.dueNotice.wake();
    lane.wakeUp.wake();
  });
  const report = setInterval(() => void publishReport(lane, number), REPORT_MS);
  stop.addEventListener('abort', lane.wakeUp.wake);
  try {
    await work(lane, stop);
  } finally {
    stop.removeEventListener('abort', lane.wakeUp.wake);
    clearInterval(report);
    unsubscribe();
    // If failures of the database have ended this activity, the next one sends what is queued here.
    for (const { queue } of lane.subscribers.values()) queue.length = 0;
    lane.connections.close();
  }
}

async function work(lane: Lane, stop: AbortSignal): Promise<void> {
  const startedMs = performance.now();
  let failures = 0;
  for (;;) {
    const servedMs = performance.now() - startedMs;
    const isIdle = lane.known.size === 0;
    const mustEnd = stop.aborted || servedMs >= 2 * SERVED_MS;
    if (isIdle && (mustEnd || servedMs >= SERVED_MS)) return;
    const exchangedMs = performance.now();
    let restUntilMs = exchangedMs;
    try {
      // What waits for a host that hangs takes minutes to send. Nobody would serve the lane's other subscribers meanwhile.
      if (mustEnd) await giveBack(lane, [...lane.subscribers.values()]);
      const isMore = await lane.inTurn(() => exchange(lane, mustEnd ? 0 : CLAIMED_AT_ONCE));
      failures = 0;
      if (isMore) continue;
      const endedMs = performance.now();
      restUntilMs = endedMs + Math.min(REST.maxMs, REST.factor * (endedMs - exchangedMs));
    } catch (error) {
      failures += 1;
      if (failures === FAILURES_MAX) throw error;
      await recover(lane, error);
    }
    await lane.wakeUp.wait(LOOK_MS);
    const restMs = restUntilMs - performance.now();
    if (restMs > 0) await delay(restMs);
    const earlyMs = exchangedMs + EXCHANGE_MS - performance.now();
    if (earlyMs > 0) await lane.dueNotice.wait(earlyMs);
  }
}

/**
 * Sends what waited because the lane was full. Then records what was sent, claims up to `limit`, and sends that.
 * @returns whether there may be more to claim at once
 */
async function exchange(lane: Lane, limit: number): Promise<boolean> {
  const { deps, claimant, known, keys, after, failure } = lane;
  if (failure) throw failure.error;
  for (const subscriber of lane.subscribers.values()) sendQueued(lane, subscriber);
  const results = [...lane.finished];
  const free = freePlaces(lane.subscribers.values(), lane.inFlight);
  const nowMs = performance.now();
  const takesOver = nowMs - lane.tookOverMs < TAKE_OVER_MS || nowMs - lane.lookedMs >= TAKE_OVER_MS;
  const claim = {
    claimant,
    takesOver,
    known,
    keys,
    after,
    limit: Math.min(limit, LANE_IN_FLIGHT_MAX - lane.inFlight),
    firstMax: IN_FLIGHT.first,
    free,
  };
  const found = await commitStatement({ ...deps, dispatcher: NO_DISPATCHER }, 'lane.exchange', (db) =>
    exchangeDeliveries(db, results, claim),
  );
  if (takesOver) lane.lookedMs = nowMs;
  if (found.tookOver) lane.tookOverMs = nowMs;
  lane.finished.splice(0, results.length);
  for (const { delivery_id, claimed_at } of results) forget(lane, delivery_id, claimed_at);
  lane.after = found.after;
  for (const delivery of found.claimed) take(lane, delivery);
  return found.isMore;
}

/** A claim has ended. The delivery may have been claimed again before its answer came. */
function forget({ known }: Lane, deliveryId: string, claimedAt: string): void {
  if (known.get(deliveryId) === claimedAt) known.delete(deliveryId);
}

function take(lane: Lane, delivery: ClaimedDelivery): void {
  const subscriber = subscriberOf(lane, delivery);
  subscriber.isFailing ||= delivery.isFailing;
  if (subscriber.isFailing) subscriber.inFlightMax = IN_FLIGHT.failing;
  lane.known.set(delivery.deliveryId, delivery.claimedAt);
  subscriber.queue.push({ delivery, sinceMs: performance.now() });
  sendQueued(lane, subscriber);
}

function sendQueued(lane: Lane, subscriber: Subscriber): void {
  while (subscriber.judged.length === 0 && subscriber.inFlight < subscriber.inFlightMax) {
    const [queued] = subscriber.queue;
    if (!queued || lane.inFlight >= LANE_IN_FLIGHT_MAX) return;
    const destination = { url: queued.delivery.url, isFailing: subscriber.isFailing };
    if (!lane.destinations.take(destination, subscriber.whenFree)) return;
    subscriber.queue.shift();
    void send(lane, subscriber, queued).finally(() => lane.destinations.release(destination));
  }
}

async function send(lane: Lane, subscriber: Subscriber, queued: Queued): Promise<void> {
  lane.inFlight += 1;
  subscriber.inFlight += 1;
  const result = await attempt(lane, subscriber, queued).catch((error: unknown) => ({ error }));
  lane.inFlight -= 1;
  subscriber.inFlight -= 1;
  if (!result) await giveBackOutdated(lane, subscriber, queued);
  else if ('outcome' in result) queueResult(lane, subscriber, queued.delivery, result);
  else await giveUp(lane, queued.delivery, result.error);
  sendQueued(lane, subscriber);
  lane.wakeUp.wake();
}

/** @returns undefined when nothing was sent: the subscription has changed since the claim */
async function attempt(lane: Lane, subscriber: Subscriber, queued: Queued): Promise<AttemptResult | undefined> {
  const { deps, connections } = lane;
  if (!(await isCurrent(deps.db, subscriber, queued))) return undefined;
  const { delivery, sinceMs } = queued;
  const waitedMs = performance.now() - sinceMs;
  const { lateMs } = delivery;
  if (lateMs !== null && !subscriber.isFailing)
    deps.observer?.deliveryTaken((lateMs + waitedMs) / 1_000, sinceMs - lateMs < subscriber.fullAtMs);
  return await sendDelivery(deps, delivery, subscriber.secretsOf, { connections, waitedMs });
}

function queueResult(lane: Lane, subscriber: Subscriber, delivery: ClaimedDelivery, result: AttemptResult): void {
  const { requestId, url } = delivery;
  const failed = result.outcome === 'failed';
  lane.sent += 1;
  if (failed) lane.failed += 1;
  subscriber.requests += 1;
  subscriber.totalMs += result.duration_ms;
  subscriber.inFlightMax = nextInFlight(subscriber.inFlightMax, { failed, durationMs: result.duration_ms });
  subscriber.isFailing ||= failed;
  if (!subscriber.isFailing) lane.finished.push(result);
  else {
    subscriber.judged.push({ ...result, url });
    subscriber.requestId = requestId;
    lane.toJudge.add(subscriber);
    judgeNext(lane);
  }
}

function judgeNext(lane: Lane): void {
  if (lane.judging === JUDGED_AT_ONCE || judgeable(lane).length === 0) return;
  lane.judging += 1;
  void judge(lane).finally(() => {
    lane.judging -= 1;
    lane.wakeUp.wake();
    judgeNext(lane);
  });
}

const judgeable = ({ toJudge }: Lane): Subscriber[] =>
  [...toJudge].filter(({ isRecording }) => !isRecording).slice(0, JUDGED_TOGETHER);

/** Judges subscribers that fail or have failed, and records their results. */
async function judge(lane: Lane): Promise<void> {
  const { deps, claimant, toJudge } = lane;
  await delay(JUDGED_AFTER_MS);
  const group = judgeable(lane);
  if (group.length === 0) return;
  for (const subscriber of group) {
    toJudge.delete(subscriber);
    subscriber.isRecording = true;
  }
  try {
    const recorded = group.map(({ webhookId, requestId, judged }) => ({ webhookId, requestId, results: [...judged] }));
    const failing = await judgeAndRecord(deps, claimant, recorded);
    for (const [index, subscriber] of group.entries()) {
      const results = recorded[index]?.results ?? [];
      subscriber.judged.splice(0, results.length);
      subscriber.isFailing = failing.has(subscriber.webhookId);
      for (const { delivery_id, claimed_at } of results) forget(lane, delivery_id, claimed_at);
    }
    await giveBack(
      lane,
      group.filter(({ judged }) => judged.length === 0),
    );
  } catch (error) {
    lane.failure = { error };
  } finally {
    for (const subscriber of group) subscriber.isRecording = false;
  }
}

/**
 * Releases the deliveries that were claimed and not sent. They are claimed again: after a failure, in the small numbers
 * that a failing endpoint gets.
 */
async function giveBack(lane: Lane, group: readonly Subscriber[]): Promise<void> {
  const given = group.flatMap(({ queue }) => queue.splice(0));
  if (given.length === 0) return;
  const ids = given.map(({ delivery }) => delivery.deliveryId);
  try {
    await releaseDeliveries(lane.deps.db, lane.claimant, ids);
  } finally {
    // If the statement failed, the lane finds them as left over.
    for (const { delivery } of given) forget(lane, delivery.deliveryId, delivery.claimedAt);
  }
}

/** What was claimed before its subscription was changed is claimed again, as it is now, or ended. */
async function giveBackOutdated(lane: Lane, subscriber: Subscriber, queued: Queued): Promise<void> {
  subscriber.queue.unshift(queued);
  await giveBack(lane, [subscriber]).catch((error: unknown) => {
    lane.failure = { error };
  });
}

/**
 * Gives a delivery that could not be made ready, such as one whose secret no key opens, to the subscription's workflow.
 * There the fault is visible, and it holds up nobody else.
 */
async function giveUp(lane: Lane, delivery: ClaimedDelivery, error: unknown): Promise<void> {
  const { deps, claimant } = lane;
  deps.log.warn({ err: error, webhook_id: delivery.webhookId }, 'a delivery could not be sent');
  try {
    await handOverDelivery(deps, delivery, claimant);
  } catch (failure) {
    lane.failure = { error: failure };
  } finally {
    forget(lane, delivery.deliveryId, delivery.claimedAt);
  }
}

function subscriberOf(lane: Lane, delivery: ClaimedDelivery): Subscriber {
  const known = lane.subscribers.get(delivery.webhookId);
  if (known) return known;
  const added = createSubscriber(delivery, openSecrets(lane.deps));
  added.whenFree = () => sendQueued(lane, added);
  lane.subscribers.set(delivery.webhookId, added);
  return added;
}

/**
 * After a failure of the database: waits, and records again what was not recorded. What is under way stays so. The next
 * statements look for what a lost answer claimed, which may be committed later.
 */
async function recover(lane: Lane, error: unknown): Promise<void> {
  const { deps, subscribers, toJudge } = lane;
  deps.log.warn({ err: error }, 'a lane could not reach the database; it tries again');
  await delay(RECOVER_MS);
  lane.failure = undefined;
  lane.tookOverMs = performance.now();
  for (const subscriber of subscribers.values()) if (subscriber.judged.length > 0) toJudge.add(subscriber);
  judgeNext(lane);
}

/** Reports the last minute to the lane's workflow, unless nothing happened in this one and in the one before. */
async function publishReport(lane: Lane, number: number): Promise<void> {
  const { deps, subscribers, inFlight, sent, failed, wasQuiet } = lane;
  const slowest = endMinute(subscribers);
  lane.sent = 0;
  lane.failed = 0;
  lane.wasQuiet = sent === 0 && inFlight === 0;
  if (lane.wasQuiet && wasQuiet) return;
  const oldestDueAt = (await findOldestUnclaimed(deps.db, lane.keys).catch(() => null))?.toISOString() ?? null;
  const report: LaneReport = { at: deps.now().toISOString(), inFlight, sent, failed, oldestDueAt, slowest };
  await deps.reportLane(laneWorkflowId(number), report).catch(() => undefined);
}
