/**
 * Walks crash points. A program starts with `CRASH_AT`, something makes it pass the point, and it must die there. What
 * was accepted before its death must still complete, once.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { CrashPoint } from '../../domain/crash-point.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { stretched } from '../support/patience.ts';
import { type OtherProgram, PROGRAMS, type ProcessStack, type Program } from '../support/process-stack.ts';
import { createHttpClient } from './client.ts';
import { nameOf, type ProgramTrigger, TRIGGERS } from './crash-trigger.ts';
import { query, type World } from './crash-world.ts';

/** The service as processes. */
export type ProcessWorld = World & { readonly stack: ProcessStack };

/** How long a program may take to start, and to die at its point. */
const DIE_TIMEOUT_MS = stretched(180_000);
const PASS_AGAIN_MS = 3_000;

/** What went wrong at a point. */
export type Failure = { readonly point: CrashPoint; readonly reason: string };

/** A point, and what makes the program pass it. */
export type Step = { readonly point: CrashPoint } & ProgramTrigger;

/** `underWay` is each pass that may not have ended yet: it resolves with what went wrong, if something did. */
type Walked = { readonly failures: readonly Failure[]; readonly underWay: readonly Promise<Failure | undefined>[] };

/** Waits until everything has ended. */
export async function failuresOf(walked: readonly Walked[]): Promise<readonly Failure[]> {
  const passed = await Promise.all(walked.flatMap(({ underWay }) => underWay));
  return [...walked.flatMap(({ failures }) => failures), ...passed.filter((failure) => failure !== undefined)];
}

/** Lets a program die at each of these points, and waits until what passed them has ended. */
export async function walkAll(world: ProcessWorld, points: readonly CrashPoint[]): Promise<readonly Failure[]> {
  const walked: Walked[] = [];
  // One after the other: what passes a point of one program needs the other one.
  for (const program of PROGRAMS) {
    const steps = points.flatMap((point): Step[] => {
      const trigger = TRIGGERS[nameOf(point)];
      return trigger.program === program ? [{ point, ...trigger }] : [];
    });
    walked.push(await walk(world, program, steps));
  }
  const failures: Failure[] = [];
  for (const point of points) failures.push(...(await dieAsOperator(world, point)));
  return [...failures, ...(await failuresOf(walked))];
}

/** Lets a program die at each of these points. What passed them may still wait for its end afterwards. */
export async function walk(
  world: ProcessWorld,
  program: Program,
  steps: readonly Step[],
  timeoutMs = DIE_TIMEOUT_MS,
): Promise<Walked> {
  // A worker that runs through would do the work of those that die.
  if (program === 'worker') await world.stack.kill('worker');
  const walked: Walked[] = [];
  for (const name of new Set(steps.map(({ point }) => nameOf(point)))) {
    const victims = steps.filter(({ point }) => nameOf(point) === name).map((step) => start(world, step));
    walked.push(await dieTogether(await Promise.all(victims), timeoutMs));
  }
  if (program === 'worker') await world.stack.start('worker');
  return { failures: walked.flatMap(({ failures }) => failures), underWay: walked.flatMap(({ underWay }) => underWay) };
}

/** Its workflows run without threads of their own: that is a third of the processor time of a worker's start. */
const STARTS_FAST = { TEMPORAL_DEBUG: '1' } as const;

type Victim = Step & { readonly world: World; readonly process: OtherProgram };

/**
 * Workers share an API. Each API that is to die has an address of its own. Once it is dead, the stack's API answers.
 */
async function start(world: ProcessWorld, step: Step): Promise<Victim> {
  const { stack, deps, broken } = world;
  const env = { ...STARTS_FAST, CRASH_AT: step.point };
  if (step.program === 'worker') return { ...step, world, process: stack.startOther('worker', env) };
  const port = await freePort();
  const process = stack.startOther('api', { ...env, PORT: String(port) });
  const baseUrl = () => (process.isRunning() ? `http://127.0.0.1:${port}` : stack.baseUrl);
  return { ...step, world: { ...world, deps: { ...deps, http: createHttpClient(baseUrl, broken) } }, process };
}

/**
 * Passes one crash point until a program has died at each of its moments. Workers take the work from each other, so the
 * point is passed again when one of them has died.
 */
async function dieTogether(victims: readonly Victim[], timeoutMs: number): Promise<Walked> {
  const underWay: Promise<Failure | undefined>[] = [];
  let hasFailed = false;
  const end = Date.now() + timeoutMs;
  let alive = victims;
  while (alive.length > 0 && !hasFailed && Date.now() < end) {
    const passed = new Map(alive.map((victim) => [victim.world, victim]));
    for (const { point, pass, world } of passed.values())
      underWay.push(
        pass(world).then(
          () => undefined,
          (error: unknown) => {
            hasFailed = true;
            return { point, reason: String(error) };
          },
        ),
      );
    const again = delay(Math.min(PASS_AGAIN_MS, timeoutMs), undefined, { ref: false });
    await Promise.race([again, ...alive.map(({ process }) => process.ended())]);
    alive = alive.filter(({ process }) => process.isRunning());
  }
  const failures: Failure[] = alive.map(({ point }) => ({ point, reason: 'the program did not die there' }));
  await Promise.all(alive.map(({ process }) => process.kill()));
  for (const { point, process } of victims)
    if ((await process.ended()) !== 'SIGKILL') failures.push({ point, reason: 'the program ended by itself' });
  return { failures, underWay };
}

/** Runs an operator's command that must die at the point. Before its commit nothing is written. */
export async function dieAsOperator(world: World, point: CrashPoint): Promise<Failure[]> {
  const trigger = TRIGGERS[nameOf(point)];
  if (trigger.program !== 'ops') return [];
  const operator = nameOf(point).replaceAll('_', '-');
  const { hasDied, output } = await world.operate(operator, await trigger.args(world), point);
  if (!hasDied) return [{ point, reason: `the command did not die: ${output}` }];
  const { length } = await query(world, `SELECT 1 FROM audit_entries WHERE operator = '${operator}'`);
  return length > 0 === point.endsWith(':after_commit')
    ? []
    : [{ point, reason: `${length} audit entries were written` }];
}
