/**
 * The versions of the workers: which version serves, and which serves next. Temporal would promote a version that no
 * worker runs, and all work would stop. So each change first asks Temporal which workers poll.
 */
import { type Client, isGrpcServiceError } from '@temporalio/client';
import { tsToDate, tsToMs } from '@temporalio/common/lib/time.js';
import { commit } from '../db/commands/commit.ts';
import { type AuditAction, insertAuditEntry } from '../db/queries/audit.ts';
import { DomainError } from '../domain/error.ts';
import { CommandError, command, EXIT, type ExitCode, group } from '../process/command-line.ts';
import { required, text, wholeNumber } from '../process/command-parameter.ts';
import { DELIVERY_TASK_QUEUE, TASK_QUEUE } from '../workflows/contract.ts';
import { ACT, deed, type OpsCommand, type OpsDeps } from './command.ts';

/** A worker polls at least this often. A killed worker counts as alive for this long. */
const POLLED_WITHIN_MS = 90_000;
const CALL_TIMEOUT_MS = 20_000;

/** Of Temporal's interface: TASK_QUEUE_TYPE_WORKFLOW, TASK_QUEUE_TYPE_ACTIVITY. */
const TASK_TYPES = [1, 2] as const;
const QUEUES = [TASK_QUEUE, DELIVERY_TASK_QUEUE].flatMap((name) =>
  TASK_TYPES.map((taskQueueType) => ({ name, taskQueueType })),
);
/** Codes of gRPC. */
const NOT_FOUND = 5;
const FAILED_PRECONDITION = 9;

/** The build id of workers without a version, as Temporal writes it. */
const UNVERSIONED = '';

type Deployment = {
  readonly client: Client;
  readonly namespace: string;
  readonly deploymentName: string;
  readonly now: () => Date;
};
type Act = { readonly buildId: string; readonly operator: string; readonly note: string };

const buildId = required('<build-id>', 'the version of the workers', text);

export const deploymentCommands: OpsCommand = group('deployment', 'Worker versions: which serves, and which is next.', [
  command({
    name: 'show',
    description: 'Shows which version serves and which versions have workers.',
    takes: {},
    run: show,
  }),
  deed({
    name: 'promote',
    description: 'Makes a version serve from now on. Running settlements move to it with their next step.',
    takes: { buildId, ...ACT },
    run: promote,
  }),
  deed({
    name: 'ramp',
    description: 'Moves a part of all runs to a version. The others stay with the current version.',
    takes: {
      buildId,
      percentage: required('<percent>', 'the part of all runs, 0 to 100', wholeNumber(0, 100)),
      ...ACT,
    },
    run: ramp,
  }),
  deed({
    name: 'unset',
    description: 'Goes back to workers without a version.',
    takes: ACT,
    run: unset,
  }),
]);

async function show(deps: OpsDeps): Promise<ExitCode> {
  const deployment = deploymentOf(deps);
  const { client, namespace, deploymentName } = deployment;
  const [{ workerDeploymentInfo: info }, polls] = await calling(deployment, () =>
    Promise.all([
      client.connection.workflowService.describeWorkerDeployment({ namespace, deploymentName }),
      listPolls(deployment),
    ]),
  );
  const {
    currentDeploymentVersion: current,
    rampingDeploymentVersion: ramping,
    rampingVersionPercentage: percent,
  } = info?.routingConfig ?? {};
  const versions = (info?.versionSummaries ?? []).map(({ deploymentVersion, createTime }) => ({
    buildId: deploymentVersion?.buildId ?? '',
    knownSince: createTime ? tsToDate(createTime) : null,
  }));
  const rampText = ramping ? `, ${ramping.buildId} ${percent ?? 0} % of it` : '';
  deps.print(`${deploymentName}: ${current?.buildId ?? 'workers without a version'} serves${rampText}.`);
  for (const { buildId: id, knownSince } of versions)
    deps.print(`  ${id}: ${pollersText(polls, id)}${knownSince ? `, known since ${knownSince.toISOString()}` : ''}`);
  deps.print(`  without a version: ${pollersText(polls, UNVERSIONED)}`);
  deps.printData({
    deployment: deploymentName,
    current_build_id: current?.buildId ?? null,
    ramping: ramping ? { build_id: ramping.buildId, percent: percent ?? 0 } : null,
    versions: [...versions, { buildId: UNVERSIONED, knownSince: null }].map(({ buildId: id, knownSince }) => ({
      build_id: id === UNVERSIONED ? null : id,
      known_since: knownSince,
      unpolled: missingOf(polls, id),
    })),
  });
  return EXIT.done;
}

async function promote(deps: OpsDeps, act: Act): Promise<ExitCode> {
  await setCurrent(deps, act);
  deps.print(`${act.buildId} serves. Workers of other versions get no more work and can be stopped.`);
  deps.printData({ current_build_id: act.buildId });
  return EXIT.done;
}

async function unset(deps: OpsDeps, act: Omit<Act, 'buildId'>): Promise<ExitCode> {
  await setCurrent(deps, { ...act, buildId: UNVERSIONED });
  deps.print('Workers without a version serve. Workers with a version get no more work and can be stopped.');
  deps.printData({ current_build_id: null });
  return EXIT.done;
}

async function ramp(
  deps: OpsDeps,
  { percentage, note, ...act }: Act & { readonly percentage: number },
): Promise<ExitCode> {
  const deployment = deploymentOf(deps);
  const { client, namespace, deploymentName } = deployment;
  const entry = { ...act, note: `${percentage} %: ${note}` };
  await audited(deps, deployment, { action: 'deployment_ramp', ...entry }, () =>
    client.connection.workflowService.setWorkerDeploymentRampingVersion({
      namespace,
      deploymentName,
      buildId: act.buildId,
      percentage,
      identity: act.operator,
    }),
  );
  deps.print(`${act.buildId} serves ${percentage} % of all runs.`);
  deps.printData({ ramping: { build_id: act.buildId, percent: percentage } });
  return EXIT.done;
}

async function setCurrent(deps: OpsDeps, act: Act): Promise<void> {
  const deployment = deploymentOf(deps);
  const { client, namespace, deploymentName } = deployment;
  await audited(deps, deployment, { action: 'deployment_promote', ...act }, () =>
    client.connection.workflowService.setWorkerDeploymentCurrentVersion({
      namespace,
      deploymentName,
      buildId: act.buildId,
      identity: act.operator,
    }),
  );
}

/**
 * Changes the deployment and writes the audit entry. The entry is committed after Temporal has agreed. If the commit
 * fails, repeat the command: it writes the entry and changes nothing else.
 */
async function audited(
  deps: OpsDeps,
  deployment: Deployment,
  { buildId: id, ...entry }: Act & { readonly action: AuditAction },
  change: () => Promise<unknown>,
): Promise<void> {
  await calling(deployment, async () => {
    const missing = missingOf(await listPolls(deployment), id);
    const workers = id === UNVERSIONED ? 'without a version' : `of ${id}`;
    if (missing.length > 0)
      throw new DomainError('state_conflict', {}, `No worker ${workers} polls ${missing.join(', ')}.`);
    await commit(deps, 'deployment.change', async (tx) => {
      const objectId = `${deployment.deploymentName}:${id === UNVERSIONED ? 'unversioned' : id}`;
      await insertAuditEntry(tx, null, { ...entry, objectId, at: deps.now() });
      if (deps.isPreview !== true) await change();
    });
  });
}

function deploymentOf({ workerDeployment, client, now }: OpsDeps): Deployment {
  if (!workerDeployment)
    throw new CommandError(
      EXIT.configuration,
      'WORKER_DEPLOYMENT_NAME and WORKER_BUILD_ID are not set: the workers have no version.',
    );
  const connected = client();
  return {
    client: connected,
    namespace: connected.options.namespace,
    deploymentName: workerDeployment.deploymentName,
    now,
  };
}

async function calling<Value>({ client, deploymentName }: Deployment, call: () => Promise<Value>): Promise<Value> {
  try {
    return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
  } catch (error) {
    if (!isGrpcServiceError(error)) throw error;
    if (error.code === NOT_FOUND)
      throw new DomainError(
        'not_found',
        {},
        `Temporal does not know this version: no worker of it has run in ${deploymentName} yet.`,
      );
    if (error.code === FAILED_PRECONDITION) throw new DomainError('state_conflict', {}, error.details);
    throw error;
  }
}

/** What the workers of a version poll. */
type Poll = { readonly buildId: string; readonly work: string };

async function listPolls({ client, namespace, deploymentName, now }: Deployment): Promise<Poll[]> {
  const oldest = now().getTime() - POLLED_WITHIN_MS;
  const polls = await Promise.all(
    QUEUES.map(async ({ name, taskQueueType }) => {
      const { pollers } = await client.connection.workflowService.describeTaskQueue({
        namespace,
        taskQueue: { name },
        taskQueueType,
      });
      return (pollers ?? [])
        .filter(({ lastAccessTime }) => tsToMs(lastAccessTime ?? undefined) >= oldest)
        .flatMap(({ deploymentOptions }) => {
          if (!deploymentOptions?.buildId) return [{ buildId: UNVERSIONED, work: workOf(name, taskQueueType) }];
          return deploymentOptions.deploymentName === deploymentName
            ? [{ buildId: deploymentOptions.buildId, work: workOf(name, taskQueueType) }]
            : [];
        });
    }),
  );
  return polls.flat();
}

const workOf = (name: string, type: (typeof TASK_TYPES)[number]): string =>
  `${type === 1 ? 'workflows' : 'activities'} of ${name}`;

function missingOf(polls: readonly Poll[], buildId: string): string[] {
  const polled = new Set(polls.filter((poll) => poll.buildId === buildId).map(({ work }) => work));
  return QUEUES.map(({ name, taskQueueType }) => workOf(name, taskQueueType)).filter((work) => !polled.has(work));
}

function pollersText(polls: readonly Poll[], buildId: string): string {
  const missing = missingOf(polls, buildId);
  if (missing.length === QUEUES.length) return 'no worker';
  return missing.length === 0 ? 'has workers' : `has workers, but none for ${missing.join(', ')}`;
}
