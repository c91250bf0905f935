/**
 * The retries of one subscription after the first one (contract §11): send what is due, one after the other, and say
 * when the next retry is due. Once an attempt succeeds, the rest of what is due goes to the lane, which sends many at
 * once. A running replay is carried out in steps: each gives a bounded number of deliveries to the lane. Only our own
 * dependencies fail the activity.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { asyncLocalStorage } from '@temporalio/activity';
import { commit, commitStatement } from '../db/commands/commit.ts';
import { judgeAndRecord } from '../db/commands/webhook-attempt.ts';
import { endDeliveries, openClaimant } from '../db/queries/webhook-attempt.ts';
import { type ReplayProgress, takeReplayStep } from '../db/queries/webhook-replay.ts';
import { claimRetry, lookForRetries, type RetryLook, releaseRetries } from '../db/queries/webhook-retry.ts';
import type { ActivityDeps } from './deps.ts';
import { whileHeartbeating } from './long-activity.ts';
import { keepConnections } from './providers/guarded-http.ts';
import { openSecrets, sendDelivery } from './webhook-attempt.ts';

/** After this time no attempt begins. An endpoint that hangs has few rounds, which cost more than its attempts. */
const ROUND_MAX_MS = 5 * 60_000;
/** Until the next step of a replay when somebody else holds its next delivery. */
const HELD_MS = 50;

/** `nowMs` (epoch milliseconds) comes from the workflow. */
export type RetryInput = { readonly webhookId: string; readonly orgId: string; readonly nowMs: number };

export type RetryResult = {
  /** Until the next retry is due: 0 when it is due now or a replay runs, null when none is left. */
  readonly waitMs: number | null;
  /** What operators see. Its `nextAttemptAt` is the end of the wait. */
  readonly found: RetryLook & {
    /** Of the last attempt of this round. */
    readonly lastOutcome: string | null;
  };
};

export function webhookSubscriptionActivities(deps: ActivityDeps) {
  return {
    /**
     * Sends the due retries of a subscription for a bounded time, ends what was pending when it was disabled, and
     * carries out its replay.
     */
    deliverRetries: (input: RetryInput): Promise<RetryResult> =>
      whileHeartbeating(deps, (stop) => playRound(deps, input, stop)),
  };
}

async function playRound(
  deps: ActivityDeps,
  { webhookId, nowMs }: RetryInput,
  stop: AbortSignal,
): Promise<RetryResult> {
  const connections = keepConnections();
  const secretsOf = openSecrets(deps);
  // A retry of the activity has the input of the first try.
  const startMs = Math.max(nowMs, asyncLocalStorage.getStore()?.info.currentAttemptScheduledTimestampMs ?? nowMs);
  const startedMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedMs;
  const now = (): Date => new Date(startMs + elapsedMs());
  try {
    const claimant = await openClaimant(deps.db);
    let mayEndMore = true;
    let replay: ReplayProgress = 'more';
    let lastOutcome: string | null = null;
    while (!stop.aborted && elapsedMs() < ROUND_MAX_MS) {
      mayEndMore &&= await commitStatement(deps, 'subscription.end_deliveries', (db) => endDeliveries(db, webhookId));
      if (replay !== 'none')
        replay = await commitStatement(deps, 'subscription.replay', (db) => takeReplayStep(db, webhookId));
      const delivery = await commitStatement(deps, 'subscription.claim', (db) =>
        claimRetry(db, webhookId, { claimant, now: now() }),
      );
      if (!delivery && !mayEndMore && replay === 'none') break;
      if (!delivery && replay === 'held') await delay(HELD_MS);
      if (!delivery) continue;
      const result = await sendDelivery(deps, delivery, secretsOf, { connections, waitedMs: 0, at: now() });
      lastOutcome = result.error === null ? `succeeded with ${result.response_status}` : `failed: ${result.error}`;
      const { requestId, url } = delivery;
      await judgeAndRecord(deps, claimant, [{ webhookId, requestId, results: [{ ...result, url }] }]);
      if (result.error === null)
        await commitStatement(deps, 'subscription.release', (db) => releaseRetries(db, webhookId, now()));
    }
    const look = await commit(deps, 'subscription.look', (tx) => lookForRetries(tx, webhookId));
    const { nextAttemptAt: next } = look;
    return {
      waitMs: next === null ? null : Math.max(0, Date.parse(next) - now().getTime()),
      found: { ...look, lastOutcome },
    };
  } finally {
    connections.close();
  }
}
