/** The activity of a sweep: restarts lost runs, makes coming months, and deletes what was kept for long enough. */
import { restartLostRuns } from '../db/commands/lost-run.ts';
import { deleteExpiredSecretAnswers } from '../db/queries/idempotency-secret.ts';
import { deleteOldChallenges } from '../db/queries/otp.ts';
import { addPartitions, deleteExpiredDeliveries, dropExpiredPartition } from '../db/queries/retention.ts';
import { deleteExpiredSecrets } from '../db/queries/webhook.ts';
import type { SweptKind } from '../domain/outbox.ts';
import { DELIVERIES_DELETED_MAX } from '../domain/retention.ts';
import type { ActivityDeps } from './deps.ts';

/** A sweep begins no further step after this time. A second is enough for the deliveries of hundreds of settlements. */
const DELETING_MS = 5_000;

/** How many workflows of each kind were restarted. */
export type SweepResult = Readonly<Record<SweptKind, number>>;

export function sweepActivities(deps: ActivityDeps) {
  return {
    /**
     * Makes the months that are missing. Restarts the workflow of each open settlement and verification, of each
     * subscription with a due retry and of each lane, if it has none. Then deletes deliveries that were kept for long
     * enough, drops a month that has expired, and deletes secrets of subscriptions that no longer sign, answers with a secret
     * that are no longer repeated, and one-time codes with their contacts, a bounded number of each. May be repeated.
     */
    restartLostRuns: async ({ nowMs }: { readonly nowMs: number }): Promise<SweepResult> => {
      // Before what could fail, as when Temporal lists no runs: without a month to write to, nothing can be accepted.
      const added = await addPartitions(deps.db);
      if (added > 0) deps.log.info({ added }, 'partitions for coming months are made');
      const restarted = await restartLostRuns(deps, new Date(nowMs));
      if (Object.values(restarted).some((count) => count > 0))
        deps.log.warn(restarted, 'open objects had no workflow; it was restarted');
      const deleted = await deleteExpired(deps);
      if (deleted > 0) deps.log.info({ deleted }, 'deliveries were kept for long enough; they are deleted');
      const partition = await dropExpiredPartition(deps.db, deps.retentionDays);
      if (partition !== null) deps.log.info({ partition }, 'a month was kept for long enough; it is dropped');
      await deleteExpiredSecrets(deps.db, new Date(nowMs));
      // As requests judge them, by real time.
      await deleteExpiredSecretAnswers(deps.db, deps.now());
      await deleteOldChallenges(deps.db, deps.now());
      return restarted;
    },
  };
}

/** In steps, so that no transaction is long. What is left after the time goes with the next sweep. */
async function deleteExpired({ db, retentionDays }: ActivityDeps): Promise<number> {
  const endsAtMs = performance.now() + DELETING_MS;
  let deleted = 0;
  for (;;) {
    const step = await deleteExpiredDeliveries(db, retentionDays.events);
    deleted += step;
    if (step < DELIVERIES_DELETED_MAX || performance.now() >= endsAtMs) return deleted;
  }
}
