/** The activity of a sweep for lost runs. */
import { restartLostRuns } from '../db/commands/lost-run.ts';
import { deleteExpiredEvents } from '../db/queries/event-retention.ts';
import type { SweptKind } from '../domain/outbox.ts';
import type { ActivityDeps } from './deps.ts';

/** How many lost runs of each kind are started again. */
export type SweepResult = Readonly<Record<SweptKind, number>>;

export function sweepActivities(deps: ActivityDeps) {
  return {
    /**
     * Starts the workflows of open settlements and verifications without a run again. Then deletes events that were
     * kept for long enough, a bounded number of them. May be repeated.
     */
    restartLostRuns: async ({ nowMs }: { readonly nowMs: number }): Promise<SweepResult> => {
      const restarted = await restartLostRuns(deps, new Date(nowMs));
      if (Object.values(restarted).some((count) => count > 0))
        deps.log.warn(restarted, 'open objects had no run; their workflows are started again');
      const deleted = await deleteExpiredEvents(deps.db, deps.eventRetentionDays);
      if (deleted > 0) deps.log.info({ deleted }, 'events were kept for long enough; they are deleted');
      return restarted;
    },
  };
}
