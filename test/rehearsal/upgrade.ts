/**
 * An upgrade and the way back: the released version and this one run side by side on one database and one Temporal.
 * Settlements rest in every state while the processes change. Each must end as its scenario says, once.
 */
import { isDeepStrictEqual } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { createClient } from '../../clients/typescript/index.ts';
import { sandboxSecrets } from '../../config/sandbox-secret.ts';
import { migrate } from '../../db/migrate.ts';
import { SCENARIOS, type Scenario } from '../../domain/sandbox/scenario.ts';
import { EXIT } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import {
  checkEnd,
  doSteps,
  type ScenarioDeps,
  type Subject,
  startSettlement,
  untilDue,
} from '../../scripts/demo/scenario.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { inParallel } from '../support/parallel.ts';
import { stretched } from '../support/patience.ts';
import { type ProcessStack, startProcessStack } from '../support/process-stack.ts';
import { PROVIDER_SECRETS, SERVICE_ENV } from '../support/provider-event.ts';
import { askUntil } from '../support/wait.ts';
import { checkAtRest } from '../torture/check.ts';
import { createHttpClient } from '../torture/client.ts';
import { runOperator } from '../torture/operator.ts';
import { startSubscribers } from '../torture/subscriber.ts';
import { createTenant } from '../torture/tenant.ts';
import { buildReleased } from './released.ts';

/** Settlements that were begun in one way and ended in one way. */
export type Way = {
  readonly begun: string;
  readonly ended: string;
  readonly settlements: number;
  /** The states in which they rested meanwhile. */
  readonly rested: readonly string[];
  /** What went wrong, in words. */
  readonly faults: readonly string[];
};

export type UpgradeReport = {
  readonly released: string;
  readonly ways: readonly Way[];
  /** What does not hold afterwards in the database, in Temporal, or at a subscriber. */
  readonly violations: readonly string[];
};

export type UpgradeOptions = {
  /** `each state`: one settlement rests in each. `each step`: one rests before each step of each scenario. */
  readonly extent: 'each state' | 'each step';
  readonly say: (line: string) => void;
};

/** A scenario, and before which of its steps the settlement rests. */
type Plan = { readonly scenario: Scenario; readonly restsBefore: number };
type Begun = Plan & { readonly subject: Subject };

const AT_ONCE = 8;
const RESOLVED = { timeoutMs: stretched(60_000) } as const;
/** Before the workflow has done anything. */
const NOWHERE = -1;

const PLANS: readonly Plan[] = SCENARIOS.flatMap((scenario) =>
  scenario.steps.map((_, restsBefore) => ({ scenario, restsBefore })),
);
const stateOf = ({ scenario, restsBefore }: Plan): string => scenario.steps[restsBefore]?.when ?? 'accepted';

const STATES = [...new Set(PLANS.map(stateOf))];

/** All plans, or one for each state: another one for each way. */
function plansFor(way: number, { extent }: UpgradeOptions): readonly Plan[] {
  if (extent === 'each step') return PLANS;
  return STATES.flatMap((state) => {
    const plans = PLANS.filter((plan) => stateOf(plan) === state);
    return plans[way % plans.length] ?? [];
  });
}

/** @throws Error when a process does not start or does not become ready */
export async function rehearseUpgrade(options: UpgradeOptions): Promise<UpgradeReport> {
  const { say } = options;
  say('the released version is built');
  const released = await buildReleased();
  const env = { ...sandboxSecrets(localDirectory), ...SERVICE_ENV };
  const stack = await startProcessStack({ env, version: released });
  const subscribers = await startSubscribers();
  const connection = await Connection.connect({ address: stack.temporalAddress });
  try {
    const http = createHttpClient(stack.baseUrl);
    const tenant = await createTenant(http);
    const subscriber = await subscribers.subscribe(http, tenant, 'healthy');
    const ways = await playUpgrade(stack, tenant, options);
    say('the database, Temporal and a subscriber are checked');
    const temporal = new Client({ connection });
    const violations = await checkAtRest(stack.databaseUrl, temporal, [subscriber]);
    const settlements = ways.reduce((sum, way) => sum + way.settlements, 0);
    const broken = violations.map(({ rule, detail }) => `${rule}: ${detail}`);
    return {
      released: released.commit,
      ways,
      violations: [...broken, ...(await checkRuns(temporal, settlements))],
    };
  } finally {
    await Promise.all([subscribers.close(), connection.close()]);
    await stack.close();
  }
}

async function playUpgrade(
  stack: ProcessStack,
  tenant: { readonly orgId: string; readonly apiKey: string },
  options: UpgradeOptions,
): Promise<Way[]> {
  const { say } = options;
  const port = await freePort();
  const newUrl = `http://127.0.0.1:${port}`;
  const [viaOld, viaNew] = [stack.baseUrl, newUrl].map((baseUrl) => depsOf(stack, baseUrl, tenant));
  if (!viaOld || !viaNew) throw new Error('there are two APIs');
  const ways: Way[] = [];
  const begin = (via: ScenarioDeps) => beginAll(via, plansFor(ways.length, options));
  const end = async (words: Pick<Way, 'begun' | 'ended'>, via: ScenarioDeps, begun: readonly Begun[]) => {
    const way = { ...words, settlements: begun.length, rested: [...new Set(begun.map(stateOf))] };
    const faults = await inParallel(begun, AT_ONCE, (each) => faultOf(via, each));
    ways.push({ ...way, faults: faults.flat() });
    say(`${way.settlements} settlements, begun by ${way.begun}, ended by ${way.ended}`);
  };

  const forOldSchema = await begin(viaOld);
  const forNew = await begin(viaOld);
  await migrate(stack);
  const onNewSchema = { begun: 'the released version', ended: 'the released version on the new schema' };
  await end(onNewSchema, viaOld, forOldSchema);

  const stopNewApi = stack.startOther('api', { PORT: String(port) });
  await stack.untilReady(newUrl);
  const forOldWorker = await begin(viaNew);
  const forNewWorker = await begin(viaNew);
  const newRuns = 'the new API on a released worker';
  await end({ begun: newRuns, ended: 'the new API on a released worker' }, viaNew, forOldWorker);

  await stack.stop('worker');
  const accepted = [...(await acceptAll(viaOld, options)), ...(await acceptAll(viaNew, options))];
  await stack.stop('api');
  const stopNewWorker = stack.startOther('worker', { PORT: String(port) });
  await end({ begun: newRuns, ended: 'this version' }, viaNew, forNewWorker);
  await end({ begun: 'the released version', ended: 'this version' }, viaNew, forNew);
  await end({ begun: 'either API without a worker', ended: 'this version' }, viaNew, accepted);

  const forTheWayBack = await begin(viaNew);
  await stopNewWorker();
  const acceptedBefore = await acceptAll(viaNew, options);
  await stopNewApi();
  await Promise.all([stack.start('api'), stack.start('worker')]);
  await stack.untilReady();
  const back = 'the released version, after the way back';
  await end({ begun: 'this version', ended: back }, viaOld, forTheWayBack);
  await end({ begun: 'the new API without a worker', ended: back }, viaOld, acceptedBefore);
  return ways;
}

const depsOf = (
  stack: ProcessStack,
  baseUrl: string,
  { orgId, apiKey }: { readonly orgId: string; readonly apiKey: string },
): ScenarioDeps => ({
  partner: { orgId, apiKey, client: createClient({ baseUrl, apiKey }) },
  narrator: {
    say: () => undefined,
    check: (what, actual, expected) => {
      if (!isDeepStrictEqual(actual, expected)) throw new Error(`${what}: it is ${JSON.stringify(actual)}`);
    },
  },
  resolveReview: async (settlementId, outcome) => {
    const act = ['--operator', 'ana', '--note', 'The bank confirmed it.', '--yes'];
    // The command says so when Temporal or the worker is late, and that it is to be repeated.
    const { exitCode, all } = await askUntil(
      () => runOperator(stack, ['resolve', settlementId, outcome, ...act]),
      (ended) => ended.exitCode !== EXIT.unavailable,
      RESOLVED,
    );
    if (exitCode !== EXIT.done) throw new Error(`ops resolve: ${all}`);
  },
  bankledger: { client: createClient({ baseUrl }), secret: PROVIDER_SECRETS.bankledger },
});

/** Begins each plan, and waits until its settlement rests. */
const beginAll = (via: ScenarioDeps, plans: readonly Plan[]): Promise<Begun[]> =>
  inParallel(plans, AT_ONCE, async (plan) => {
    const { scenario, restsBefore } = plan;
    const subject = await startSettlement(via.partner, scenario);
    await doSteps(via, subject, scenario.steps.slice(0, restsBefore));
    const next = scenario.steps[restsBefore];
    if (next) await untilDue(via.partner, subject, next);
    return { ...plan, subject };
  });

/** Settlements that no worker takes yet: they rest as `accepted`. */
function acceptAll(via: ScenarioDeps, { extent }: UpgradeOptions): Promise<Begun[]> {
  const scenarios = extent === 'each step' ? SCENARIOS : SCENARIOS.filter(({ steps }) => steps.length === 0);
  return inParallel(scenarios, AT_ONCE, async (scenario) => ({
    scenario,
    restsBefore: NOWHERE,
    subject: await startSettlement(via.partner, scenario),
  }));
}

/** Plays the rest of the scenario. @returns what differs from it */
async function faultOf(via: ScenarioDeps, { scenario, restsBefore, subject }: Begun): Promise<string[]> {
  try {
    await doSteps(via, subject, scenario.steps.slice(Math.max(restsBefore, 0)));
    await checkEnd(via, subject, scenario);
    return [];
  } catch (error) {
    return [`${scenario.name} (${subject.settlementId}): ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** A new message for a run that ends makes it look once more: no fault. */
const NO_FAULT = 'UnhandledCommand';

/** Where a settlement may rest for long, its run is open: checkAtRest compares the two. */
const RUN_STATUSES = ['COMPLETED', 'RUNNING'];

/** Each workflow has one run, which did not fail, and no version failed to continue what another one began. */
async function checkRuns(temporal: Client, settlements: number): Promise<string[]> {
  const faults: string[] = [];
  const seen = new Set<string>();
  for await (const { workflowId, runId, status } of temporal.workflow.list({ query: 'WorkflowType = "settlement"' })) {
    if (seen.has(workflowId)) faults.push(`${workflowId} has more than one run`);
    seen.add(workflowId);
    if (!RUN_STATUSES.includes(status.name)) faults.push(`${workflowId} is ${status.name}`);
    const { events } = await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
    for (const { workflowTaskFailedEventAttributes: failed } of events ?? []) {
      const message = failed?.failure?.message;
      if (message && message !== NO_FAULT) faults.push(`${workflowId}: a step of the workflow failed: ${message}`);
    }
  }
  if (seen.size !== settlements) faults.push(`${settlements} settlements have ${seen.size} workflows`);
  return faults;
}
