/** Who takes the tasks of the queues: Temporal gives them to workers of the promoted version alone. */
import type { Client } from '@temporalio/client';
import { TASK_QUEUES } from '../domain/task-queue.ts';
import type { UnservedQueue, WorkerVersion } from '../domain/worker-version.ts';

const CALL_TIMEOUT_MS = 5_000;
/** A worker begins a poll each minute. Temporal lists it for minutes after it has died. */
const POLL_AGE_MAX_MS = 75_000;
/** TASK_QUEUE_TYPE_WORKFLOW and WORKER_VERSIONING_MODE_VERSIONED of Temporal's API. */
const WORKFLOW = 1;
const VERSIONED = 2;

type ApiVersion = { readonly deploymentName?: string | null; readonly buildId?: string | null };

/** The queues that no worker of the promoted version polls. */
export async function findUnservedQueues(client: Client, now: Date): Promise<readonly UnservedQueue[]> {
  const { namespace } = client.options;
  const described = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    Promise.all(
      TASK_QUEUES.map(async (taskQueue) => {
        const request = { namespace, taskQueue: { name: taskQueue }, taskQueueType: WORKFLOW };
        return { taskQueue, ...(await client.workflowService.describeTaskQueue(request)) };
      }),
    ),
  );
  return described.flatMap(({ taskQueue, versioningInfo, pollers }) => {
    const promoted = versionOf(versioningInfo?.currentDeploymentVersion);
    const alive = (pollers ?? []).filter(
      ({ lastAccessTime }) => now.getTime() - Number(lastAccessTime?.seconds ?? 0) * 1_000 < POLL_AGE_MAX_MS,
    );
    const polling = alive.map(({ deploymentOptions }) =>
      deploymentOptions?.workerVersioningMode === VERSIONED ? versionOf(deploymentOptions) : undefined,
    );
    if (polling.some((version) => isSame(version, promoted))) return [];
    return [
      {
        taskQueue,
        promoted,
        polling: polling.filter((version, at) => !polling.slice(0, at).some((other) => isSame(other, version))),
      },
    ];
  });
}

const versionOf = (version: ApiVersion | null | undefined): WorkerVersion | undefined =>
  version?.deploymentName && version.buildId
    ? { deploymentName: version.deploymentName, buildId: version.buildId }
    : undefined;

const isSame = (one: WorkerVersion | undefined, other: WorkerVersion | undefined): boolean =>
  one?.deploymentName === other?.deploymentName && one?.buildId === other?.buildId;
