/** The activity of a sweep for lost runs. */
import { restartLostRuns } from '../db/commands/lost-run.ts';
import { deleteExpiredEvents } from '../db/queries/event-retention.ts';
import { deleteExpiredSecrets } from '../db/queries/webhook.ts';
import { EVENT_RETENTION } from '../domain/event.ts';
import type { SweptKind } from '../domain/outbox.ts';
import type { ActivityDeps } from './deps.ts';

/** A sweep begins no further step after this time. A second is enough for the events of hundreds of settlements. */
const DELETING_MS = 5_000;

/** How many workflows of each kind were restarted. */
export type SweepResult = Readonly<Record<SweptKind, number>>;

export function sweepActivities(deps: ActivityDeps) {
  return {
    /**
     * Restarts the workflow of each open settlement, of each open verification and of each subscription with a due
     * delivery, if it has none. Then deletes events that were kept for long enough, and secrets of subscriptions that
     * no longer sign, a bounded number of each. May be repeated.
     */
    restartLostRuns: async ({ nowMs }: { readonly nowMs: number }): Promise<SweepResult> => {
      const restarted = await restartLostRuns(deps, new Date(nowMs));
      if (Object.values(restarted).some((count) => count > 0))
        deps.log.warn(restarted, 'open objects had no workflow; it was restarted');
      const deleted = await deleteExpired(deps);
      if (deleted > 0) deps.log.info({ deleted }, 'events were kept for long enough; they are deleted');
      await deleteExpiredSecrets(deps.db, new Date(nowMs));
      return restarted;
    },
  };
}

/** In steps, so that no transaction is long. What is left after the time goes with the next sweep. */
async function deleteExpired({ db, eventRetentionDays }: ActivityDeps): Promise<number> {
  const endsAtMs = performance.now() + DELETING_MS;
  let deleted = 0;
  for (;;) {
    const step = await deleteExpiredEvents(db, eventRetentionDays);
    deleted += step;
    if (step < EVENT_RETENTION.deletedMax || performance.now() >= endsAtMs) return deleted;
  }
}
