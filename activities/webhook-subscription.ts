/**
 * One round of a subscription's workflow (contract §11): deliver what is due, and say when the next attempt is due. A
 * subscriber's failure is data; only our own dependencies fail the activity. Attempts are recorded before their
 * requests are sent, so after a crash the same bytes are sent again with the same number and the same webhook-id.
 */
import { asyncLocalStorage } from '@temporalio/activity';
import { type DisabledReason, IN_FLIGHT, type WebhookStatus } from '../domain/webhook.ts';
import type { ActivityDeps } from './deps.ts';
import { deliverWhileDue } from './webhook-run.ts';
import { createWatch } from './webhook-watch.ts';

const HEARTBEAT_MS = 2_000;

/** `nowMs` (epoch milliseconds) comes from the workflow; `inFlight` from its last round. */
export type RoundInput = {
  readonly webhookId: string;
  readonly orgId: string;
  readonly nowMs: number;
  readonly inFlight?: number;
};

/** `standing` is what operators see; null when there was no moment to look. */
export type RoundResult = {
  /** Until the next round: 0 when more is due now, null when nothing is pending. */
  readonly waitMs: number | null;
  readonly inFlight: number;
  readonly standing: {
    readonly status: WebhookStatus | 'deleted';
    readonly disabledReason: DisabledReason | null;
    /** Counted up to a limit. */
    readonly pending: number;
    readonly failingSince: string | null;
    readonly nextAttemptAt: string | null;
    /** Of the last attempt of this round. */
    readonly lastOutcome: string | null;
  } | null;
};

export function webhookSubscriptionActivities(deps: ActivityDeps) {
  const watch = createWatch(deps.db);
  return {
    /** Sends what is due to a subscription, stays for a moment for what comes next, and ends after a bounded time. */
    deliverDue: async ({ webhookId, orgId, nowMs, inFlight = IN_FLIGHT.first }: RoundInput): Promise<RoundResult> => {
      const context = asyncLocalStorage.getStore();
      const heartbeat = context && setInterval(() => context.heartbeat(), HEARTBEAT_MS);
      // A retry of the activity has the input of the first try.
      const startMs = Math.max(nowMs, context?.info.currentAttemptScheduledTimestampMs ?? nowMs);
      try {
        const signal = context?.cancellationSignal;
        return roundResult(await deliverWhileDue(deps, { webhookId, orgId, nowMs: startMs, inFlight, watch, signal }));
      } finally {
        clearInterval(heartbeat);
      }
    },
  };
}

function roundResult({ look, now, inFlight, lastOutcome }: Awaited<ReturnType<typeof deliverWhileDue>>): RoundResult {
  if (look === undefined) return { waitMs: 0, inFlight, standing: null };
  const { hasWork, nextAttemptAt, status, disabledReason, pending, failingSince } = look;
  const standing = {
    status,
    disabledReason,
    pending,
    failingSince: failingSince?.toISOString() ?? null,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    lastOutcome,
  };
  if (hasWork) return { waitMs: 0, inFlight, standing };
  return { waitMs: nextAttemptAt && Math.max(0, nextAttemptAt.getTime() - now.getTime()), inFlight, standing };
}
