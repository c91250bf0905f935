/**
 * Every crash point, on one stack: a program dies there, the next one starts, and what was accepted completes once. A
 * point without a scenario (crash-scenario.ts) fails.
 */
import { Client, Connection } from '@temporalio/client';
import { test as base, expect } from 'vitest';
import { CRASH_POINTS, type CrashPoint } from '../../domain/crash-point.ts';
import { FILE } from '../support/fixture.ts';
import { startMailServer } from '../support/mail-server.ts';
import { type Program, startProcessStack } from '../support/process-stack.ts';
import { checkDatabase, checkSubscribers, checkTemporal } from './check.ts';
import { createHttpClient } from './client.ts';
import { DEPLOYMENT, nameOf, SCENARIOS, type Scenario } from './crash-scenario.ts';
import { type Failure, failuresOf, walk, walkOperator } from './crash-walk.ts';
import type { World } from './crash-world.ts';
import { SERVICE_ENV, settleDown } from './run.ts';
import { type Subscriber, startSubscribers } from './subscriber.ts';
import { createRecipient, createTenant } from './tenant.ts';

const START_TIMEOUT_MS = 120_000;
/** A loaded machine takes several times as long as an idle one. */
const WALK_TIMEOUT_MS = 1_200_000;
/** How long a program may take to start, and to die at its point. */
const DIE_TIMEOUT_MS = 180_000;
const OPS_TIMEOUT_MS = 60_000;
const NOT_REACHED_MS = 2_000;

const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('mail', FILE, async ({}, { onCleanup }) => {
    const mail = await startMailServer({ disabledCommands: ['STARTTLS', 'AUTH'] });
    onCleanup(mail.close);
    return mail;
  })
  .extend('stack', FILE, async ({ mail }, { onCleanup }) => {
    const env = { ...SERVICE_ENV, SMTP_URL: `smtp://127.0.0.1:${mail.port}` };
    const stack = await startProcessStack({ env });
    onCleanup(stack.close);
    return stack;
  })
  .extend(
    'world',
    FILE,
    async ({ stack, mail }, { onCleanup }): Promise<World & { readonly listening: readonly Subscriber[] }> => {
      const connection = await Connection.connect({ address: stack.temporalAddress });
      const subscribers = await startSubscribers();
      onCleanup(async () => void (await Promise.all([connection.close(), subscribers.close()])));
      const broken: string[] = [];
      const http = createHttpClient(stack.baseUrl, broken);
      const tenant = await createTenant(http);
      const listening = [await subscribers.subscribe(http, tenant, 'well')];
      const subscribe = async () => {
        const subscriber = await subscribers.subscribe(http, await createTenant(http), 'well');
        listening.push(subscriber);
        return subscriber;
      };
      const { webhookId } = await subscribers.subscribe(http, tenant, 'always_fails');
      const recipientId = await createRecipient(http, tenant, 'Marcia Brown');
      const deps = {
        http,
        temporal: new Client({ connection }),
        disturbedAt: stack.disturbedAt,
        signal: new AbortController().signal,
        onDisturbedRun: () => undefined,
      };
      return { stack, deps, broken, tenant: { ...tenant, webhookId }, recipientId, subscribe, listening, mail };
    },
  );
test.beforeAll(({ world: _ }) => undefined, START_TIMEOUT_MS);

const scenarioOf = (point: CrashPoint): Scenario => SCENARIOS[nameOf(point)];

const stepsOf = (program: Program) =>
  CRASH_POINTS.flatMap((point) => {
    const scenario = scenarioOf(point);
    return scenario.program === program ? [{ point, ...scenario }] : [];
  });

test('every crash point has a scenario', () => {
  const programs = ['api', 'worker', 'ops'];
  expect(CRASH_POINTS.filter((point) => !programs.includes(scenarioOf(point)?.program))).toEqual([]);
});

test('a worker or an API dies at each of its crash points, and what was accepted completes once', {
  timeout: WALK_TIMEOUT_MS,
}, async ({ world }) => {
  // One after the other: what passes a point of one program needs the other one.
  const walks = [];
  for (const program of ['worker', 'api'] as const)
    walks.push(await walk(world, program, stepsOf(program), DIE_TIMEOUT_MS));
  expect(await failuresOf(walks)).toEqual([]);
  expect(world.broken).toEqual([]);
});

test("an operator's command dies at each of its crash points, and writes nothing before its commit", {
  timeout: WALK_TIMEOUT_MS,
}, async ({ world }) => {
  const failures: Failure[] = [];
  await world.stack.kill('worker');
  await world.stack.start('worker', DEPLOYMENT);
  for (const point of CRASH_POINTS) {
    const scenario = scenarioOf(point);
    if (scenario.program !== 'ops') continue;
    failures.push(...(await walkOperator(world, point, await scenario.args(world), OPS_TIMEOUT_MS)));
  }
  expect(failures).toEqual([]);
});

test('the walk finds a program that does not die, and an end that is not reached after a death', async ({ world }) => {
  const point = 'organization.create:after_commit';
  const elsewhere = { point, program: 'api', pass: async () => undefined } as const;
  const alive = await walk(world, 'api', [elsewhere], NOT_REACHED_MS);
  expect(await failuresOf([alive])).toEqual([{ point, reason: 'the program did not die there' }]);
  const loses = async ({ deps }: World) => {
    await createTenant(deps.http);
    throw new Error('it is lost');
  };
  const lost = await walk(world, 'api', [{ point, program: 'api', pass: loses }], DIE_TIMEOUT_MS);
  const failures = await failuresOf([lost]);
  expect(failures).not.toEqual([]);
  // An API that starts slowly is asked again.
  for (const failure of failures) expect(failure).toEqual({ point, reason: 'Error: it is lost' });
});

test('afterwards the database, Temporal and the subscribers agree', { timeout: WALK_TIMEOUT_MS }, async ({ world }) => {
  const { stack, deps, listening } = world;
  expect(await settleDown(stack, listening)).toEqual([]);
  expect(await checkDatabase(stack.databaseUrl)).toEqual([]);
  expect(await checkTemporal(deps.temporal, stack.databaseUrl)).toEqual([]);
  expect(await checkSubscribers(stack.databaseUrl, listening)).toEqual([]);
});
