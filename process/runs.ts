/** Which workflows run, as Temporal knows it. */
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { Runs } from '../db/commands/lost-run.ts';

const CALL_TIMEOUT_MS = 5_000;
const IDS_PER_QUERY_MAX = 200;
const CALLS_AT_ONCE = 8;

export const createRuns = (client: Client): Runs => ({
  findRunning: async (workflowIds) => {
    const running = new Set<string>();
    for (const ids of chunksOf(workflowIds, IDS_PER_QUERY_MAX)) {
      for (const id of await listRunning(client, ids)) running.add(id);
    }
    // The list is up to a second old. What it lacks is looked up one by one, which is exact.
    const unlisted = workflowIds.filter((id) => !running.has(id));
    for (const ids of chunksOf(unlisted, CALLS_AT_ONCE)) {
      const found = await Promise.all(ids.map((id) => isRunning(client, id)));
      for (const [index, id] of ids.entries()) if (found[index]) running.add(id);
    }
    return running;
  },
});

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
  /** In lower case, as in `running` or `terminated`. */
  readonly status: string;
  readonly startedAt: Date;
  /** The activities that are not done. Failures are codes and constant sentences. */
  readonly steps: readonly { readonly name: string; readonly attempt: number; readonly lastFailure: string | null }[];
};

/** Undefined for a workflow that was never started, or is no longer kept. */
export async function describeRun(client: Client, workflowId: string): Promise<RunDescription | undefined> {
  const describe = () => client.workflow.getHandle(workflowId).describe();
  try {
    const { status, startTime, raw } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, describe);
    const steps = (raw.pendingActivities ?? []).map(({ activityType, attempt, lastFailure }) => ({
      name: activityType?.name ?? 'unknown',
      attempt: attempt ?? 1,
      lastFailure: lastFailure?.message ?? null,
    }));
    return { status: status.name.toLowerCase().replaceAll('_', ' '), startedAt: startTime, steps };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

const chunksOf = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
