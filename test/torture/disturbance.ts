/** What operators can do to a settlement's run in Temporal UI. */
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import Long from 'long';
import { stretched } from '../support/patience.ts';

export type RunDisturbance = 'temporal_cancel' | 'temporal_terminate' | 'temporal_reset';

const TIMEOUT_MS = stretched(5_000);
/** The first workflow task's completion. Before it are: started, task scheduled, task started. */
const FIRST_TASK_COMPLETED = 4;

/** @returns whether it happened; `no run`: it has not started, or has ended */
export async function disturbRun(
  temporal: Client,
  settlementId: string,
  kind: RunDisturbance,
): Promise<'done' | 'no run' | 'unknown'> {
  const workflowId = `settlement:${settlementId}`;
  const handle = temporal.workflow.getHandle(workflowId);
  const disturb = async (): Promise<unknown> => {
    if (kind === 'temporal_cancel') return await handle.cancel();
    return kind === 'temporal_terminate' ? await handle.terminate('torture') : await resetRun(temporal, workflowId);
  };
  return await temporal.withDeadline(Date.now() + TIMEOUT_MS, disturb).then(
    () => 'done',
    (error: unknown) => (error instanceof WorkflowNotFoundError ? 'no run' : 'unknown'),
  );
}

/** Resets the run to its first workflow task, as Temporal UI offers it. */
async function resetRun(temporal: Client, workflowId: string): Promise<void> {
  const { runId } = await temporal.workflow.getHandle(workflowId).describe();
  await temporal.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId, runId },
    reason: 'torture',
    workflowTaskFinishEventId: Long.fromNumber(FIRST_TASK_COMPLETED),
    requestId: crypto.randomUUID(),
  });
}
