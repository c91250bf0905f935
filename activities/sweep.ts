/** The activity of a sweep: restarts lost runs, makes coming months, and deletes what was kept for long enough. */
import { restartLostRuns, wakeUnheard } from '../db/commands/lost-run.ts';
import { deleteExpiredBanklinkTokens } from '../db/queries/banklink.ts';
import { deleteExpiredSessions } from '../db/queries/consumer.ts';
import { deleteExpiredSecretAnswers } from '../db/queries/idempotency-secret.ts';
import { deleteOldChallenges } from '../db/queries/otp.ts';
import { addPartitions, deleteExpiredDeliveries, dropExpiredPartition } from '../db/queries/retention.ts';
import { deleteExpiredSecrets } from '../db/queries/webhook.ts';
import type { SweptKind } from '../domain/outbox.ts';
import { DELIVERIES_DELETED_MAX } from '../domain/retention.ts';
import { attemptTime } from './attempt.ts';
import type { ActivityDeps } from './deps.ts';

/** What is kept for hours or minutes. */
const DELETIONS = [
  deleteExpiredSecrets,
  deleteExpiredSecretAnswers,
  deleteOldChallenges,
  deleteExpiredBanklinkTokens,
  deleteExpiredSessions,
] as const;

/** A sweep begins no further step after this time. A second is enough for the deliveries of hundreds of settlements. */
const DELETING_MS = 5_000;

/** How many workflows of each kind were restarted. */
export type SweepResult = Readonly<Record<SweptKind, number>>;

export function sweepActivities(deps: ActivityDeps) {
  return {
    /**
     * Makes the months that are missing. Restarts the workflow of each open settlement and verification, of each
     * subscription with a due retry and of each lane, if it has none. Wakes those of subscriptions that are late. Then
     * deletes deliveries that were kept for long enough, drops a month that has expired, and deletes secrets of
     * subscriptions that no longer sign, answers with a secret that are no longer repeated, one-time codes with their
     * contacts, and sessions and link tokens that have expired, a bounded number of each. May be repeated.
     *
     * If a step fails, as when Temporal lists no runs, the others are taken nevertheless, and then the activity fails.
     */
    restartLostRuns: async ({ nowMs }: { readonly nowMs: number }): Promise<SweepResult> => {
      const faults: unknown[] = [];
      const step = <T>(taken: Promise<T>): Promise<T | undefined> =>
        taken.catch((fault: unknown) => {
          faults.push(fault);
          return undefined;
        });
      await step(addMonths(deps));
      const restarted = await step(restart(deps, attemptTime(nowMs)));
      await step(wakeUnheard(deps));
      await step(deleteDeliveries(deps));
      await step(dropMonth(deps));
      for (const deleteExpired of DELETIONS) await step(deleteExpired(deps.db));
      if (!restarted || faults.length > 0) throw faults[0];
      return restarted;
    },
  };
}

async function addMonths({ db, log }: ActivityDeps): Promise<void> {
  const added = await addPartitions(db);
  if (added > 0) log.info({ added }, 'partitions for coming months are made');
}

async function restart(deps: ActivityDeps, at: Date): Promise<SweepResult> {
  const restarted = await restartLostRuns(deps, at);
  if (Object.values(restarted).some((count) => count > 0))
    deps.log.warn(restarted, 'open objects had no workflow; it was restarted');
  return restarted;
}

async function dropMonth({ db, log, retentionDays }: ActivityDeps): Promise<void> {
  const partition = await dropExpiredPartition(db, retentionDays);
  if (partition !== null) log.info({ partition }, 'a month was kept for long enough; it is dropped');
}

/** In steps, so that no transaction is long. What is left after the time goes with the next sweep. */
async function deleteDeliveries({ db, log, retentionDays }: ActivityDeps): Promise<void> {
  const endsAtMs = performance.now() + DELETING_MS;
  let deleted = 0;
  let last = DELIVERIES_DELETED_MAX;
  while (last === DELIVERIES_DELETED_MAX && performance.now() < endsAtMs) {
    last = await deleteExpiredDeliveries(db, retentionDays.events);
    deleted += last;
  }
  if (deleted > 0) log.info({ deleted }, 'deliveries were kept for long enough; they are deleted');
}
