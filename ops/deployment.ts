/**
 * Versions of the workers by hand: which serve, which poll, and which is to serve next. Temporal would promote a version
 * that nobody runs, and everything would stand still; so who is there is asked first.
 */
import { type Client, isGrpcServiceError } from '@temporalio/client';
import { tsToDate, tsToMs } from '@temporalio/common/lib/time.js';
import { type AuditAction, insertAuditEntry } from '../db/queries/audit.ts';
import { DomainError } from '../domain/error.ts';
import { DELIVERY_TASK_QUEUE, TASK_QUEUE } from '../workflows/contract.ts';
import {
  type Given,
  type OpsDeps,
  type Reading,
  read,
  readAct,
  readArgs,
  readOperator,
  readText,
  UsageError,
} from './command.ts';

export const DEPLOYMENT_USAGE = [
  'deployment show',
  'deployment promote <build id> --operator <name> --note <why>',
  'deployment ramp <build id> <percent> --operator <name> --note <why>',
  'deployment unset --operator <name> --note <why>',
] as const;

/** A worker asks for work at least this often; one that is killed is taken for alive for as long. */
const POLLED_WITHIN_MS = 90_000;
const CALL_TIMEOUT_MS = 20_000;

/** Of Temporal's interface: TASK_QUEUE_TYPE_WORKFLOW, TASK_QUEUE_TYPE_ACTIVITY. */
const TASK_TYPES = [1, 2] as const;
const QUEUES = [TASK_QUEUE, DELIVERY_TASK_QUEUE].flatMap((name) =>
  TASK_TYPES.map((taskQueueType) => ({ name, taskQueueType })),
);
/** gRPC's codes for what is not there, and for what cannot be done as things stand. */
const NOT_FOUND = 5;
const FAILED_PRECONDITION = 9;

/** Workers without a version, as Temporal writes them. */
const UNVERSIONED = '';

type Deployment = {
  readonly client: Client;
  readonly namespace: string;
  readonly deploymentName: string;
  readonly now: () => Date;
};
type Act = { readonly buildId: string; readonly action: AuditAction; readonly operator: string; readonly note: string };
type Verb = {
  readonly takes: Parameters<typeof readArgs>[1];
  readonly words: number;
  readonly run: (deps: OpsDeps, given: Given) => Promise<void>;
};

const VERBS = new Map<string, Verb>([
  ['show', { takes: [], words: 0, run: show }],
  ['promote', { takes: ['operator', 'note'], words: 1, run: promote }],
  ['ramp', { takes: ['operator', 'note'], words: 2, run: ramp }],
  ['unset', { takes: ['operator', 'note'], words: 0, run: unset }],
]);

/** @throws UsageError; DomainError `not_found` or `state_conflict` when there is nothing to promote */
export async function deploymentCommand(deps: OpsDeps, [name = '', ...args]: readonly string[]): Promise<void> {
  const verb = VERBS.get(name);
  if (!verb) throw new UsageError([`There is no command deployment ${JSON.stringify(name)}.`]);
  await verb.run(deps, readArgs(args, verb.takes, verb.words));
}

async function show(deps: OpsDeps): Promise<void> {
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
  deps.print(
    `${deploymentName}: ${current?.buildId ?? 'workers without a version'} serves${ramping ? `, ${ramping.buildId} ${percent ?? 0} % of it` : ''}.`,
  );
  for (const { deploymentVersion, createTime } of info?.versionSummaries ?? []) {
    const buildId = deploymentVersion?.buildId ?? '';
    const known = createTime ? `, known since ${tsToDate(createTime).toISOString()}` : '';
    deps.print(`  ${buildId}: ${saysWhoPolls(polls, buildId)}${known}`);
  }
  deps.print(`  without a version: ${saysWhoPolls(polls, UNVERSIONED)}`);
}

/** `promote`: this version serves from now on, running settlements included, each from its next step. */
async function promote(deps: OpsDeps, given: Given): Promise<void> {
  const { objectId: buildId, operator, note } = readAct('build', given);
  await setCurrent(deps, { buildId, operator, note });
  deps.print(`${buildId} serves. Workers of other versions get no work any more and can be stopped.`);
}

/** `unset`: the way back to workers without a version. */
async function unset(deps: OpsDeps, given: Given): Promise<void> {
  const { operator, note } = read({ operator: readOperator(given.operator), note: readText('--note', given.note) });
  await setCurrent(deps, { buildId: UNVERSIONED, operator, note });
  deps.print('Workers without a version serve. Those of versions get no work any more and can be stopped.');
}

/** `ramp`: a part of all runs moves to this version, and the rest stays with the current one. */
async function ramp(deps: OpsDeps, given: Given): Promise<void> {
  const { buildId, percentage, operator, note } = read({
    buildId: readText('The build id', given.subject),
    percentage: readPercent(given.word),
    operator: readOperator(given.operator),
    note: readText('--note', given.note),
  });
  const deployment = deploymentOf(deps);
  const { client, namespace, deploymentName } = deployment;
  await audited(
    deps,
    deployment,
    { buildId, action: 'deployment_ramp', operator, note: `${percentage} %: ${note}` },
    () =>
      client.connection.workflowService.setWorkerDeploymentRampingVersion({
        namespace,
        deploymentName,
        buildId,
        percentage,
        identity: operator,
      }),
  );
  deps.print(`${buildId} serves ${percentage} % of all runs.`);
}

async function setCurrent(deps: OpsDeps, act: Omit<Act, 'action'>): Promise<void> {
  const deployment = deploymentOf(deps);
  const { client, namespace, deploymentName } = deployment;
  const { buildId, operator: identity } = act;
  await audited(deps, deployment, { ...act, action: 'deployment_promote' }, () =>
    client.connection.workflowService.setWorkerDeploymentCurrentVersion({
      namespace,
      deploymentName,
      buildId,
      identity,
    }),
  );
}

/** The entry stands when Temporal has agreed; were it lost then, promoting again writes it and changes nothing else. */
async function audited(
  deps: OpsDeps,
  deployment: Deployment,
  { buildId, ...entry }: Act,
  change: () => Promise<unknown>,
): Promise<void> {
  await calling(deployment, async () => {
    const missing = missingOf(await listPolls(deployment), buildId);
    const who = buildId === UNVERSIONED ? 'without a version' : `of ${buildId}`;
    if (missing.length > 0)
      throw new DomainError('state_conflict', {}, `No worker ${who} asks for ${missing.join(', ')}.`);
    await deps.db.transaction(async (tx) => {
      const objectId = `${deployment.deploymentName}:${buildId === UNVERSIONED ? 'unversioned' : buildId}`;
      await insertAuditEntry(tx, null, { ...entry, objectId, at: deps.now() });
      await change();
    });
  });
}

function deploymentOf({ workerDeployment, client, now }: OpsDeps): Deployment {
  if (!workerDeployment)
    throw new UsageError(['WORKER_DEPLOYMENT_NAME and WORKER_BUILD_ID are not set: workers have no version.']);
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
        `Temporal does not know it: no worker of it has run in ${deploymentName} yet.`,
      );
    if (error.code === FAILED_PRECONDITION) throw new DomainError('state_conflict', {}, error.details);
    throw error;
  }
}

/** Which work a version's workers ask for. */
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
  const asked = new Set(polls.filter((poll) => poll.buildId === buildId).map(({ work }) => work));
  return QUEUES.map(({ name, taskQueueType }) => workOf(name, taskQueueType)).filter((work) => !asked.has(work));
}

function saysWhoPolls(polls: readonly Poll[], buildId: string): string {
  const missing = missingOf(polls, buildId);
  if (missing.length === QUEUES.length) return 'no worker';
  return missing.length === 0 ? 'has workers' : `has workers, but none for ${missing.join(', ')}`;
}

function readPercent(text: string | undefined): Reading<number> {
  const value = Number(text?.trim() || Number.NaN);
  return Number.isInteger(value) && value >= 0 && value <= 100
    ? { value }
    : { fault: 'The percentage must be a whole number from 0 to 100.' };
}
