/**
 * The loop of one run of a subscription. Claims, requests and records overlap: while some requests are under way, the
 * results of others are recorded and the next deliveries are claimed. Each statement serves as many deliveries as there
 * are. A run ends after a bounded time even if more is due: then the workflow begins the next one.
 *
 * It has more than 300 lines, because all parts change the same state and are read together.
 */
import { commit, commitStatement, NO_DISPATCHER } from '../db/commands/commit.ts';
import { recordFailures } from '../db/commands/webhook-run.ts';
import { webhookSecretBinding } from '../db/queries/webhook.ts';
import {
  type AttemptResult,
  type ClaimedDelivery,
  claimDue,
  endDeliveries,
  type Look,
  lookOnceMore,
  openRun,
  recordResults,
  type Subscription,
} from '../db/queries/webhook-run.ts';
import { inTrace } from '../db/traceparent.ts';
import { createWakeUp, type WakeUp } from '../db/wake-up.ts';
import { IN_FLIGHT, nextInFlight, retryDelayMs } from '../domain/webhook.ts';
import type { ActivityDeps } from './deps.ts';
import { type GuardedAnswer, type KeptConnections, keepConnections } from './providers/guarded-http.ts';
import { retryAfterMsOf } from './providers/retry-after.ts';
import { signWebhook } from './webhook-signature.ts';
import type { Watch } from './webhook-watch.ts';

/** After this time a run claims no more. The requests under way take at most 15 s longer. */
const RUN_MAX_MS = 8_000;
/** How long a run that has delivered something stays for what comes next. */
const STAY_MS = 1_000;
/** Results wait this long for others, so that one statement records them. */
const RECORD_AFTER_MS = 25;
/**
 * A claim is for at least a quarter of the requests that may be in flight; fewer that are free wait this long for
 * others. An endpoint that takes 80 ms got 308 to 325 deliveries a second by this, and 281 to 301 when a claim was for
 * half of them and the wait was 20 ms: 32 in flight would be 400 with no time between.
 */
const CLAIM_SHARE = 4;
const CLAIM_AFTER_MS = 10;
/** While a transaction that writes a delivery is open, the last look is repeated after this time. */
const LOOK_AGAIN_MS = 20;
const IDLE_MS = 1_000;

const USER_AGENT = 'settlement-service-webhooks/2.0';
const TOO_MANY_REQUESTS = 429;
const UNAVAILABLE = 503;

export type RunOptions = {
  readonly webhookId: string;
  readonly orgId: string;
  /** The workflow's time when the run began, in epoch milliseconds. */
  readonly nowMs: number;
  /** How many requests may be in flight at first. */
  readonly inFlight: number;
  readonly watch: Watch;
  /** Aborted when the run must stop. */
  readonly signal: AbortSignal | undefined;
};

/**
 * What a run leaves. `inFlight`: how many requests the endpoint takes at once. `look` is undefined if it saw nothing.
 */
export type RunEnd = {
  readonly look: Look | undefined;
  readonly now: Date;
  readonly inFlight: number;
  readonly lastOutcome: string | null;
};

type Task = 'claim' | 'record' | 'end';

type Run = {
  readonly deps: ActivityDeps;
  readonly options: RunOptions;
  /** The number of this run. */
  readonly number: number;
  readonly connections: KeptConnections;
  readonly wakeUp: WakeUp;
  /** In milliseconds of `performance.now()`. */
  readonly startedMs: number;
  /** On the run's clock, in epoch milliseconds. */
  readonly startedAtMs: number;
  /** Opened once, by their sealed text. */
  readonly secrets: Map<string, Buffer>;
  readonly busy: Set<Task>;
  readonly finished: AttemptResult[];
  /** How many requests are in flight, and may be. */
  inFlight: number;
  inFlightMax: number;
  isFailing: boolean;
  /** Nothing was due when it was last looked for. */
  isDry: boolean;
  /** There are deliveries that ended with their subscription. */
  hasEnded: boolean;
  /** How many failures are not recorded yet. */
  unrecordedFailures: number;
  /** It delivers well, so it stays for a moment. */
  mayStay: boolean;
  lastOutcome: string | null;
  /** In milliseconds of `performance.now()`. */
  lastClaimMs: number;
  lastWorkMs: number;
  firstFinishedMs: number;
  stopWatch: (() => void) | undefined;
  failure: { readonly error: unknown } | undefined;
};

/** Delivers what is due to a subscription. @throws whatever the database throws, once no request is under way */
export async function deliverWhileDue(given: ActivityDeps, options: RunOptions): Promise<RunEnd> {
  // Nothing here writes to the outbox.
  const deps = { ...given, dispatcher: NO_DISPATCHER };
  const startedMs = performance.now();
  const {
    run: number,
    isFailing,
    now,
  } = await commitStatement(deps, 'subscription.open_run', (db) => openRun(db, options.webhookId));
  const run: Run = {
    deps,
    options,
    number,
    connections: keepConnections(),
    wakeUp: createWakeUp(),
    startedMs,
    // Not behind the database's clock, by which first attempts are due: else a retry would be due before its wait.
    startedAtMs: Math.max(options.nowMs, now.getTime()),
    secrets: new Map(),
    busy: new Set(),
    finished: [],
    inFlight: 0,
    inFlightMax: isFailing ? IN_FLIGHT.failing : options.inFlight,
    isFailing,
    isDry: false,
    hasEnded: false,
    unrecordedFailures: 0,
    mayStay: false,
    lastOutcome: null,
    lastClaimMs: 0,
    lastWorkMs: startedMs,
    firstFinishedMs: 0,
    stopWatch: undefined,
    failure: undefined,
  };
  try {
    return await work(run);
  } finally {
    run.stopWatch?.();
    run.connections.close();
  }
}

/** The run's clock: the time at its beginning, and what has passed since. */
const nowOf = ({ startedAtMs, startedMs }: Run): Date => new Date(startedAtMs + performance.now() - startedMs);

const isOver = ({ options, startedMs, failure }: Run): boolean =>
  failure !== undefined || options.signal?.aborted === true || performance.now() - startedMs >= RUN_MAX_MS;

const isQuiet = ({ inFlight, finished, busy }: Run): boolean =>
  inFlight === 0 && finished.length === 0 && busy.size === 0;

async function work(run: Run): Promise<RunEnd> {
  for (;;) {
    if (shouldRecord(run)) begin(run, 'record', record);
    if (!isOver(run)) {
      if (run.hasEnded && !run.busy.has('end')) begin(run, 'end', endSome);
      if (shouldClaim(run)) begin(run, 'claim', claim);
      if (run.isDry) watch(run);
    }
    if (isQuiet(run)) {
      if (run.failure) throw run.failure.error;
      const end = await lastLook(run);
      if (end) return end;
    }
    await run.wakeUp.wait(waitMsOf(run));
  }
}

/** Starts a task that runs beside the loop. Its failure ends the run. */
function begin(run: Run, task: Task, perform: (run: Run) => Promise<void>): void {
  run.busy.add(task);
  perform(run)
    .catch((error: unknown) => {
      run.failure ??= { error };
    })
    .finally(() => {
      run.busy.delete(task);
      run.lastWorkMs = performance.now();
      run.wakeUp.wake();
    });
}

function shouldClaim({ busy, isDry, unrecordedFailures, inFlight, inFlightMax, lastClaimMs }: Run): boolean {
  const free = inFlightMax - inFlight;
  // A failure is recorded first: it may disable the subscription.
  if (isDry || unrecordedFailures > 0 || free <= 0 || busy.has('claim')) return false;
  return free * CLAIM_SHARE >= inFlightMax || performance.now() - lastClaimMs >= CLAIM_AFTER_MS;
}

function shouldRecord({
  busy,
  finished,
  inFlight,
  inFlightMax,
  unrecordedFailures,
  firstFinishedMs,
  failure,
}: Run): boolean {
  if (finished.length === 0 || busy.has('record')) return false;
  if (inFlight === 0 || unrecordedFailures > 0 || failure !== undefined) return true;
  return finished.length * 2 >= inFlightMax || performance.now() - firstFinishedMs >= RECORD_AFTER_MS;
}

/** How long the loop waits for what happens, unless something happens before. */
function waitMsOf(run: Run): number {
  if (run.finished.length > 0 && !run.busy.has('record')) return RECORD_AFTER_MS;
  if (!run.isDry && run.inFlight > 0 && run.inFlight < run.inFlightMax && !isOver(run)) return CLAIM_AFTER_MS;
  return isQuiet(run) ? Math.max(LOOK_AGAIN_MS, stayMsOf(run)) : IDLE_MS;
}

/** How long a run that has nothing to do still stays. */
const stayMsOf = ({ mayStay, lastWorkMs }: Run): number => (mayStay ? STAY_MS - (performance.now() - lastWorkMs) : 0);

async function claim(run: Run): Promise<void> {
  const { deps, options, number } = run;
  const limit = run.inFlightMax - run.inFlight;
  run.lastClaimMs = performance.now();
  const { subscription, claimed } = await commitStatement(deps, 'subscription.claim', (db) =>
    claimDue(db, options.webhookId, { run: number, now: nowOf(run), limit }),
  );
  run.hasEnded ||= subscription.hasEnded;
  run.isFailing = subscription.failingSince !== null;
  run.isDry = claimed.length < limit;
  if (claimed.length === 0) return;
  const secrets = openSecrets(run, subscription);
  run.inFlight += claimed.length;
  for (const delivery of claimed) {
    send(run, subscription.url, secrets, delivery)
      .catch((error: unknown) => {
        run.failure ??= { error };
      })
      .finally(() => {
        run.inFlight -= 1;
        run.wakeUp.wake();
      });
  }
}

function openSecrets({ deps, options, secrets }: Run, { secretsSealed }: Subscription): readonly Buffer[] {
  return secretsSealed.map((sealed) => {
    const known = secrets.get(sealed);
    if (known) return known;
    const opened = deps.sealer.open(sealed, webhookSecretBinding(options.webhookId));
    secrets.set(sealed, opened);
    return opened;
  });
}

async function send(run: Run, url: string, secrets: readonly Buffer[], delivery: ClaimedDelivery): Promise<void> {
  const { deps } = run;
  const { eventId, body, traceparent } = delivery;
  const at = nowOf(run);
  // Subscribers compare the timestamp with their own clock, so it is the real time of sending.
  const timestamp = Math.floor(deps.now().getTime() / 1_000);
  const headers = {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook(secrets, { id: eventId, timestamp, body }),
  };
  const post = () => deps.guardedHttp.post(url, body, headers, run.connections);
  deps.crash?.('webhook_post:before');
  const answer = traceparent === null ? await post() : await inTrace(traceparent, post);
  deps.crash?.('webhook_post:after');
  run.inFlightMax = nextInFlight(run.inFlightMax, { failed: answer.error !== null, durationMs: answer.durationMs });
  run.mayStay = answer.error === null;
  if (answer.error !== null) run.unrecordedFailures += 1;
  run.lastOutcome = answer.error === null ? `succeeded with ${answer.status}` : `failed: ${answer.error}`;
  if (run.finished.length === 0) run.firstFinishedMs = performance.now();
  run.finished.push(resultOf(delivery, at, answer, deps.now()));
}

function resultOf(delivery: ClaimedDelivery, at: Date, answer: GuardedAnswer, realNow: Date): AttemptResult {
  const { status, error, bytes, sha256, durationMs } = answer;
  const isBusy = status === TOO_MANY_REQUESTS || status === UNAVAILABLE;
  const retryAfterMs = isBusy ? retryAfterMsOf(answer.retryAfter, realNow.getTime()) : null;
  const delayMs = error === null ? undefined : retryDelayMs(delivery.attempt, Math.random(), retryAfterMs);
  const nextAttemptAt = delayMs === undefined ? null : new Date(at.getTime() + durationMs + delayMs);
  return {
    delivery_id: delivery.deliveryId,
    generation: delivery.generation,
    number: delivery.number,
    at: at.toISOString(),
    outcome: error === null ? 'succeeded' : 'failed',
    response_status: status,
    response_bytes: bytes,
    response_sha256: sha256?.toString('hex') ?? null,
    duration_ms: durationMs,
    error,
    next_attempt_at: nextAttemptAt?.toISOString() ?? null,
  };
}

async function record(run: Run): Promise<void> {
  const { deps, options } = run;
  const results = run.finished.splice(0);
  if (!run.isFailing && results.every(({ outcome }) => outcome === 'succeeded')) {
    await commitStatement(deps, 'subscription.record', (db) => recordResults(db, options.webhookId, results));
    return;
  }
  const { isFailing, isDisabled } = await recordFailures(deps, options.webhookId, results);
  run.unrecordedFailures -= results.filter(({ outcome }) => outcome === 'failed').length;
  run.isFailing = isFailing;
  // What was pending when the subscription was disabled has ended.
  run.hasEnded ||= isDisabled;
}

async function endSome(run: Run): Promise<void> {
  run.hasEnded = await commitStatement(run.deps, 'subscription.end_deliveries', (db) =>
    endDeliveries(db, run.options.webhookId),
  );
}

function watch(run: Run): void {
  run.stopWatch ??= run.options.watch(run.options.webhookId, run.number, () => {
    run.stopWatch = undefined;
    run.isDry = false;
    run.wakeUp.wake();
  });
}

/**
 * Looks once more, when the run has stayed for long enough or must end.
 *
 * @returns undefined when the run goes on
 */
async function lastLook(run: Run): Promise<RunEnd | undefined> {
  const { deps, options } = run;
  const mustEnd = isOver(run);
  if (!mustEnd && (!run.isDry || run.hasEnded || stayMsOf(run) > 0)) return undefined;
  const now = nowOf(run);
  const look = await commit(deps, 'subscription.look', (tx) => lookOnceMore(tx, options.webhookId, now));
  if (mustEnd || look?.hasWork === false) return { look, now, inFlight: run.inFlightMax, lastOutcome: run.lastOutcome };
  if (look?.hasWork) run.isDry = false;
  return undefined;
}
