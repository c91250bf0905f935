/** The run of an object's workflow, as `show` prints it. */
import {
  type Advice,
  failingActivityAdvice,
  failingTaskAdvice,
  lostRunAdvice,
  queuedAdvice,
  unservedAdvice,
} from '../domain/operator-advice.ts';
import type { TaskQueue } from '../domain/task-queue.ts';
import type { RunDescription } from '../process/runs.ts';
import { temporalFaultOf } from '../process/temporal-health.ts';
import { TASK_QUEUE } from '../workflows/contract.ts';
import type { OpsDeps } from './command.ts';
import type { Row } from './report.ts';
import type { OutboxRow } from './report-row.ts';

/** `known` is false when Temporal does not answer, or wrongly: then nothing follows from a missing run. */
type RunReport = {
  readonly facts: Row;
  readonly isRunning: boolean;
  readonly known: boolean;
  readonly activities: readonly Row[];
  /** That no worker takes its tasks, that its workflow task fails, or about the first activity that fails. */
  readonly failing?: Advice;
};

export async function reportRun(
  deps: Pick<OpsDeps, 'describeRun' | 'now' | 'temporalHealth' | 'temporalUi' | 'unservedQueues'>,
  workflowId: string,
  taskQueue: TaskQueue = TASK_QUEUE,
): Promise<RunReport> {
  const facts = (status: string, run?: RunDescription): Row => ({
    run: status,
    workflow_id: workflowId,
    ...(run && linkOf(deps, workflowId, run)),
  });
  try {
    const run = await deps.describeRun(workflowId);
    if (run === undefined) return { facts: facts('none'), isRunning: false, known: true, activities: [] };
    return {
      facts: facts(sentenceOf(run), run),
      isRunning: run.status === 'running',
      known: true,
      activities: pendingRows(run),
      ...((await unservedOf(deps, run, taskQueue)) ?? failingOf(run)),
    };
  } catch (error) {
    const fault = temporalFaultOf(error);
    if (fault === undefined) throw error;
    // The call was retried until its deadline, which does not tell why.
    const health = fault.cause === 'not_answering' ? await deps.temporalHealth() : fault;
    const { sentence } = health.status === 'up' ? fault : health;
    return { facts: facts(`unknown: ${sentence}`), isRunning: false, known: false, activities: [] };
  }
}

/** A row is dispatched within a second. */
const LATE_MS = 60_000;

export const isLate = ({ ageMs }: OutboxRow): boolean => ageMs > LATE_MS;

/** About what keeps an object from going on, the first of it; undefined if nothing does. */
export function obstacleAdvice(
  { known, isRunning, failing }: RunReport,
  outbox: readonly OutboxRow[],
  { id, needsRun, isSettlement = false }: { id: string; needsRun: boolean; isSettlement?: boolean },
): Advice | undefined {
  const late = outbox.find(isLate);
  if (late) return queuedAdvice(late.lastError);
  const isLost = known && !isRunning && outbox.length === 0 && needsRun;
  return isLost ? lostRunAdvice(id, isSettlement) : failing;
}

/** A worker may serve one of the queues alone. */
async function unservedOf(
  { now, unservedQueues }: Pick<OpsDeps, 'now' | 'unservedQueues'>,
  { status }: RunDescription,
  taskQueue: TaskQueue,
): Promise<Pick<RunReport, 'failing'> | undefined> {
  const all = status === 'running' ? await unservedQueues(now()) : [];
  const unserved = all.find((queue) => queue.taskQueue === taskQueue);
  return unserved && { failing: unservedAdvice(unserved) };
}

function failingOf({ failingTask, activities }: RunDescription): Pick<RunReport, 'failing'> {
  if (failingTask) return { failing: failingTaskAdvice(failingTask) };
  const failing = activities.find(({ lastFailure }) => lastFailure !== null);
  return failing?.lastFailure ? { failing: failingActivityAdvice(failing.name, failing.lastFailure) } : {};
}

const sentenceOf = ({ status, startedAt }: RunDescription): string => `${status}, started ${startedAt.toISOString()}`;

const pendingRows = ({ failingTask, activities }: RunDescription): Row[] => [
  ...(failingTask ? [{ step: 'workflow task', attempt: failingTask.attempt, last_failure: failingTask.cause }] : []),
  ...activities.map(({ name, attempt, lastFailure }) => ({ step: name, attempt, last_failure: lastFailure })),
];

/** The page of Temporal UI that has the Current Details, the words of `show`. */
const linkOf = (
  { temporalUi }: Pick<OpsDeps, 'temporalUi'>,
  workflowId: string,
  { runId }: Pick<RunDescription, 'runId'>,
): Row =>
  temporalUi === undefined
    ? {}
    : { link: `${temporalUi}/workflows/${encodeURIComponent(workflowId)}/${runId}/user-metadata` };
