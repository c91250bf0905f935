/** Which workflows run, as Temporal knows it. */
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import { z } from 'zod';
import type { Runs } from '../db/commands/lost-run.ts';
import type { FailingTask } from '../domain/operator-advice.ts';
import type { LaneReport } from '../domain/webhook.ts';
import { laneReported } from '../workflows/contract.ts';
import { PAYLOAD_KEY_UNKNOWN } from './payload-codec.ts';

const CALL_TIMEOUT_MS = 5_000;
const IDS_PER_QUERY_MAX = 200;
const CALLS_AT_ONCE = 8;
/** Of a history, newest first: a failed local activity is followed by a timer and a workflow task. */
const EVENTS_MAX = 200;
/** Of a failure of a workflow task: an SDK's message can be long. */
const CAUSE_LENGTH_MAX = 300;

export const createRuns = (client: Client): Runs => ({
  findRunning: async (workflowIds) => {
    const running = new Set<string>();
    // The list lags by a second, or by minutes while Temporal has trouble. So a few runs, as the lanes', skip it.
    const toList = workflowIds.length > CALLS_AT_ONCE ? workflowIds : [];
    for (const ids of chunksOf(toList, IDS_PER_QUERY_MAX)) {
      for (const id of await listRunning(client, ids)) running.add(id);
    }
    // What it lacks is looked up one by one, which is exact.
    const unlisted = workflowIds.filter((id) => !running.has(id));
    for (const ids of chunksOf(unlisted, CALLS_AT_ONCE)) {
      const found = await Promise.all(ids.map((id) => isRunning(client, id)));
      for (const [index, id] of ids.entries()) if (found[index]) running.add(id);
    }
    return running;
  },
});

/** A run of a settlement or a verification. */
export type ListedRun = { readonly objectId: string; readonly isRunning: boolean };

/** `listRuns` lists no more. */
export const RUNS_LISTED_MAX = 100_000;
const LIST_TIMEOUT_MS = 120_000;

/** The settlements and verifications with a run that runs, or that began since then; the list is a second old. */
export async function listRuns(client: Client, since: Date): Promise<ListedRun[]> {
  const isListed = `(ExecutionStatus = "Running" OR StartTime >= "${since.toISOString()}")`;
  const query = `WorkflowType IN ("settlement", "verification") AND ${isListed}`;
  const runs = new Map<string, ListedRun>();
  await client.withDeadline(Date.now() + LIST_TIMEOUT_MS, async () => {
    for await (const { workflowId, status } of client.workflow.list({ query, pageSize: 1_000 })) {
      const objectId = workflowId.slice(workflowId.indexOf(':') + 1);
      const isRunning = status.name === 'RUNNING' || runs.get(objectId)?.isRunning === true;
      runs.set(objectId, { objectId, isRunning });
      if (runs.size === RUNS_LISTED_MAX) return;
    }
  });
  return [...runs.values()];
}

/** Sends what a lane did to its run, which shows it to operators. */
export const createLaneReports = (client: Client) => async (workflowId: string, report: LaneReport) =>
  await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    client.workflow.getHandle(workflowId).signal(laneReported, report),
  );

/** At most one run of each id is running. */
async function listRunning(client: Client, workflowIds: readonly string[]): Promise<string[]> {
  const names = workflowIds.map((id) => JSON.stringify(id)).join(', ');
  const query = `WorkflowId IN (${names}) AND ExecutionStatus = "Running"`;
  return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
    const running: string[] = [];
    for await (const { workflowId } of client.workflow.list({ query, pageSize: IDS_PER_QUERY_MAX }))
      running.push(workflowId);
    return running;
  });
}

async function isRunning(client: Client, workflowId: string): Promise<boolean> {
  const describe = () => client.workflow.getHandle(workflowId).describe();
  try {
    const { status } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, describe);
    return status.name === 'RUNNING';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

/** The latest run of a workflow. */
export type RunDescription = {
  readonly runId: string;
  /** In lower case, as in `running` or `terminated`. */
  readonly status: string;
  readonly startedAt: Date;
  /** Its workflow task, if that has failed and is repeated. */
  readonly failingTask?: FailingTask | undefined;
  /** The activities that are not done. A failure is a code, such as `dependency:53100`, or a constant sentence. */
  readonly activities: readonly PendingActivity[];
};
type HistoryEvents = NonNullable<History['events']>;
type PendingActivity = { readonly name: string; readonly attempt: number; readonly lastFailure: string | null };

type Failure = {
  readonly message?: string | null;
  readonly applicationFailureInfo?: { readonly type?: string | null } | null;
  readonly cause?: Failure | null;
};

/** Undefined for a workflow that was never started, or is no longer kept. */
export async function describeRun(client: Client, workflowId: string): Promise<RunDescription | undefined> {
  const describe = () => client.workflow.getHandle(workflowId).describe();
  try {
    const { status, startTime, runId, raw } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, describe);
    const activities = (raw.pendingActivities ?? []).map(({ activityType, attempt, lastFailure }) => ({
      name: activityType?.name ?? 'unknown',
      attempt: attempt ?? 1,
      lastFailure: failureText(lastFailure),
    }));
    const events = status.name === 'RUNNING' ? await listLatestEvents(client, workflowId, runId) : [];
    const failing = failingLocalActivity(events);
    return {
      runId,
      status: status.name.toLowerCase().replaceAll('_', ' '),
      startedAt: startTime,
      failingTask: failingTask(raw.pendingWorkflowTask?.attempt ?? 0, events),
      activities: failing === undefined ? activities : [...activities, failing],
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** Of a run, newest first. */
async function listLatestEvents(client: Client, workflowId: string, runId: string): Promise<HistoryEvents> {
  const { namespace } = client.options;
  const execution = { workflowId, runId };
  const { history } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    client.workflowService.getWorkflowExecutionHistoryReverse({ namespace, execution, maximumPageSize: EVENTS_MAX }),
  );
  return history?.events ?? [];
}

/**
 * Temporal writes the failure of the first attempt only. It writes none for a task that timed out, as when its worker
 * died.
 */
function failingTask(attempt: number, events: HistoryEvents): FailingTask | undefined {
  if (attempt <= 1) return undefined;
  const done = events.findIndex(({ workflowTaskCompletedEventAttributes: completed }) => completed);
  const failure = events
    .slice(0, done < 0 ? undefined : done)
    .find(({ workflowTaskFailedEventAttributes: failed }) => failed)?.workflowTaskFailedEventAttributes?.failure;
  const cause = failure?.message?.split('\n', 1)[0]?.slice(0, CAUSE_LENGTH_MAX) || null;
  return { attempt, cause, isKeyMissing: failure ? failureType(failure) === PAYLOAD_KEY_UNKNOWN : false };
}

/**
 * The local activity that fails, if the last one did. Temporal lists no local activity as pending: the SDK records a
 * marker for each attempt, with its failure. Attempts beyond the latest `EVENTS_MAX` events are not counted.
 */
function failingLocalActivity(events: HistoryEvents): PendingActivity | undefined {
  const markers = events.flatMap(({ markerRecordedEventAttributes: marker }) =>
    marker?.markerName === 'core_local_activity' ? [marker] : [],
  );
  const [latest] = markers;
  const data = latest?.details?.['data']?.payloads?.[0]?.data;
  if (!latest?.failure || !data) return undefined;
  const read = LocalActivity.safeParse(JSON.parse(Buffer.from(data).toString()));
  const firstDone = markers.findIndex(({ failure }) => !failure);
  return {
    name: read.data?.activity_type ?? 'unknown',
    attempt: firstDone < 0 ? markers.length : firstDone,
    lastFailure: failureText(latest.failure),
  };
}

/** What the SDK writes of a local activity. */
const LocalActivity = z.object({ activity_type: z.string() });

/** The code of an error, which says more than the constant sentence. */
const failureText = (failure: Failure | null | undefined): string | null =>
  failure ? (failureType(failure) ?? failure.message ?? null) : null;

const failureType = ({ applicationFailureInfo, cause }: Failure): string | undefined =>
  applicationFailureInfo?.type || (cause ? failureType(cause) : undefined);

const chunksOf = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
