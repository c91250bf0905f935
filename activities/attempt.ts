/**
 * The time of an attempt of an activity that Temporal repeats. Local ones are repeated by `workflows/activities.ts`.
 */
import { asyncLocalStorage } from '@temporalio/activity';

/**
 * The workflow's time, carried on to this attempt, so that a wait can end while an activity is repeated. Only the
 * difference of two readings of Temporal's clock is added: the clock of this machine decides nothing.
 *
 * @param nowMs the workflow's time when it called the activity
 */
export function attemptTime(nowMs: number): Date {
  const info = asyncLocalStorage.getStore()?.info;
  const repeatedMs = info === undefined ? 0 : info.currentAttemptScheduledTimestampMs - info.scheduledTimestampMs;
  return new Date(nowMs + Math.max(0, repeatedMs));
}
