/**
 * Every crash point, in the process of the test: the code goes no further there, and the request gets no answer. What
 * was accepted completes once. The compiler wants a trigger for each point. A torture run kills the programs
 * themselves at points that its scenarios pass (monkey.ts).
 */
import { test as base, expect, vi } from 'vitest';
import { CRASH_POINTS, type Crash, type CrashPoint } from '../../domain/crash-point.ts';
import { createRuns } from '../../process/runs.ts';
import { ensureSweepSchedule } from '../../process/sweep-schedule.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { FILE } from '../support/fixture.ts';
import { startMailServer } from '../support/mail-server.ts';
import { createOps, recordKeys } from '../support/ops.ts';
import { inParallel } from '../support/parallel.ts';
import { stretched } from '../support/patience.ts';
import { PROVIDER_SECRETS } from '../support/provider-event.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { checkAtRest } from './check.ts';
import { nameOf, type PointName, TRIGGERS } from './crash-trigger.ts';
import { openWorld, type Pass, query, type World } from './crash-world.ts';

const TRIGGERS_AT_ONCE = 20;
const PASSES_MAX = 10;
const PASS_AGAIN = { timeout: stretched(3_000), interval: 50 };

const isOperators = (point: CrashPoint): boolean => typeof TRIGGERS[nameOf(point)] === 'object';

/** `left`: where nothing has died yet. */
type CrashWorld = World & { readonly left: ReadonlySet<CrashPoint> };

// biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
const test = base.extend('world', FILE, async ({}, { onCleanup }): Promise<CrashWorld> => {
  const left = new Set(CRASH_POINTS);
  let stack: TestStack | undefined;
  /** Where the operator's command under way dies. Another trigger may pass the points of operators before. */
  let operatorDiesAt: CrashPoint | undefined;
  const crash: Crash = (point) => {
    if (isOperators(point) && point !== operatorDiesAt) return;
    if (!left.delete(point)) return;
    stack?.breakConnection();
    throw new Error(`died at ${point}`);
  };
  const mail = await startMailServer({ disabledCommands: ['STARTTLS', 'AUTH'] });
  const config = {
    smtpUrl: `smtp://127.0.0.1:${mail.port}`,
    cardprocWebhookSecrets: [TEST_SECRETS.cardproc, PROVIDER_SECRETS.cardproc],
    bankledgerWebhookSecrets: [TEST_SECRETS.bankledger, PROVIDER_SECRETS.bankledger],
  };
  stack = await startStack({ deliveries: true, crash, api: { config } });
  const { temporal, api, baseUrl, close } = stack;
  await ensureSweepSchedule({ client: temporal });
  const client = () => temporal;
  await recordKeys(api.connection.db);
  const ops = createOps(api.connection.db, { crash, client, runs: createRuns(temporal) });
  const world = await openWorld({
    ...{ baseUrl, databaseUrl: api.databaseUrl, temporal, mail },
    operate: async (operator, args, point) => {
      const notes = args[0] === 'gate' && args[1] === 'record' ? [] : ['--note', 'torture'];
      operatorDiesAt = point;
      const { exitCode, printed, warned } = await ops(...args, '--operator', operator, ...notes, '--yes');
      const hasDied = point !== undefined && !left.has(point);
      return { hasDied, exitCode, output: [...printed, ...warned].join('\n') };
    },
  });
  onCleanup(async () => {
    await world.close();
    await close();
    await mail.close();
  });
  return { ...world, left };
});
test.beforeAll(({ world: _ }) => undefined);

const leftOf = ({ left }: CrashWorld, name: PointName): CrashPoint[] =>
  [...left].filter((point) => nameOf(point) === name);

/** Passes the points of one name until something has died at each of them. */
async function passAll(world: CrashWorld, name: PointName, pass: Pass): Promise<void> {
  for (let passes = 0; passes < PASSES_MAX && leftOf(world, name).length > 0; passes += 1) {
    await pass(world);
    await vi.waitUntil(() => leftOf(world, name).length === 0, PASS_AGAIN).catch(() => undefined);
  }
}

test('something dies at each crash point of the API and the worker, and what was accepted completes once', async ({
  world,
}) => {
  const triggers = Object.entries(TRIGGERS) as [PointName, (typeof TRIGGERS)[PointName]][];
  const failures: string[] = [];
  await inParallel(triggers, TRIGGERS_AT_ONCE, async ([name, trigger]) => {
    if (typeof trigger === 'function')
      await passAll(world, name, trigger).catch((error) => failures.push(`${name}: ${error}`));
  });
  expect(failures).toEqual([]);
  expect([...world.left].filter((point) => !isOperators(point))).toEqual([]);
  expect(world.deps.http.broken).toEqual([]);
});

/** Runs an operator's command that must die at the point. Before its commit nothing is written. */
async function dieAsOperator(world: World, point: CrashPoint): Promise<string[]> {
  const trigger = TRIGGERS[nameOf(point)];
  if (typeof trigger === 'function') return [];
  const operator = nameOf(point).replaceAll('_', '-');
  const { hasDied, output } = await world.operate(operator, await trigger.args(world), point);
  if (!hasDied) return [`${point}: the command did not die: ${output}`];
  const { length } = await query(world, `SELECT 1 FROM audit_entries WHERE operator = '${operator}'`);
  return length > 0 === point.endsWith(':after_commit') ? [] : [`${point}: ${length} audit entries were written`];
}

test("an operator's command dies at each of its crash points, and writes nothing before its commit", async ({
  world,
}) => {
  for (const point of CRASH_POINTS) expect(await dieAsOperator(world, point)).toEqual([]);
});

test('afterwards the database, Temporal and the subscribers agree', async ({ world }) => {
  expect([...world.left]).toEqual([]);
  expect(await checkAtRest(world.databaseUrl, world.deps.temporal, world.listening)).toEqual([]);
});
