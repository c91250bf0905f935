/**
 * Walks crash points. A program starts with `CRASH_AT`, something makes it pass the point, and it must die there. What
 * was accepted before its death must still complete, once.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { CrashPoint } from '../../domain/crash-point.ts';
import { freePort } from '../../scripts/stack/port.ts';
import type { OtherProgram, Program } from '../support/process-stack.ts';
import { createHttpClient } from './client.ts';
import { nameOf, operate, type ProgramScenario } from './crash-scenario.ts';
import type { World } from './crash-world.ts';

const OPS_RETRY_MS = 500;
const PASS_AGAIN_MS = 3_000;

/** What went wrong at a point. */
export type Failure = { readonly point: CrashPoint; readonly reason: string };

/** A point, and what makes the program pass it. */
export type Step = { readonly point: CrashPoint } & ProgramScenario;

/** `underWay` is each pass that may not have ended yet: it resolves with what went wrong, if something did. */
type Walked = { readonly failures: readonly Failure[]; readonly underWay: readonly Promise<Failure | undefined>[] };

/** Waits until everything has ended. */
export async function failuresOf(walked: readonly Walked[]): Promise<readonly Failure[]> {
  const passed = await Promise.all(walked.flatMap(({ underWay }) => underWay));
  return [...walked.flatMap(({ failures }) => failures), ...passed.filter((failure) => failure !== undefined)];
}

/** Where a program that is to die runs, and through which API its point is passed. */
type Place = { readonly world: World; readonly env: Readonly<Record<string, string>> };

/** Lets a program die at each of these points. What passed them may still wait for its end afterwards. */
export async function walk(world: World, program: Program, steps: readonly Step[], timeoutMs: number): Promise<Walked> {
  // A worker that runs through would do the work of those that die.
  if (program === 'worker') await world.stack.kill('worker');
  const names = [...new Set(steps.map(({ point }) => nameOf(point)))];
  const groups = names.map((name) => steps.filter(({ point }) => nameOf(point) === name));
  const places = await Promise.all(
    Array.from({ length: Math.max(...groups.map(({ length }) => length)) }, () => placeFor(world, program)),
  );
  const walked: Walked[] = [];
  for (const group of groups) {
    const victims = group.flatMap((step, index) => places.slice(index, index + 1).map((place) => start(step, place)));
    walked.push(await dieTogether(victims, timeoutMs));
  }
  if (program === 'worker') await world.stack.start('worker');
  // What passed the points still asks the API of its place.
  else for (const { env } of places) world.stack.startOther(program, env);
  return { failures: walked.flatMap(({ failures }) => failures), underWay: walked.flatMap(({ underWay }) => underWay) };
}

/** Workers share an API. Each API that is to die has an address of its own. */
async function placeFor(world: World, program: Program): Promise<Place> {
  if (program === 'worker') return { world, env: {} };
  const port = await freePort();
  const http = createHttpClient(`http://127.0.0.1:${port}`, world.broken);
  return { world: { ...world, deps: { ...world.deps, http } }, env: { PORT: String(port) } };
}

/** Its workflows run without threads of their own: that is a third of the processor time of a worker's start. */
const STARTS_FAST = { TEMPORAL_DEBUG: '1' } as const;

type Victim = Step & { readonly world: World; readonly process: OtherProgram };

const start = (step: Step, { world, env }: Place): Victim => ({
  ...step,
  world,
  process: world.stack.startOther(step.program, { ...env, ...STARTS_FAST, CRASH_AT: step.point }),
});

/**
 * Passes one crash point until a program has died at each of its moments. Workers take the work from each other, so the
 * point is passed again when one of them has died.
 */
async function dieTogether(victims: readonly Victim[], timeoutMs: number): Promise<Walked> {
  const underWay: Promise<Failure | undefined>[] = [];
  let hasFailed = false;
  const end = Date.now() + timeoutMs;
  let living = victims;
  while (living.length > 0 && !hasFailed && Date.now() < end) {
    const passed = new Map(living.map((victim) => [victim.world, victim]));
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
    await Promise.race([again, ...living.map(({ process }) => process.ended())]);
    living = living.filter(({ process }) => process.isRunning());
  }
  const failures: Failure[] = living.map(({ point }) => ({ point, reason: 'the program did not die there' }));
  await Promise.all(living.map(({ process }) => process.kill()));
  for (const { point, process } of victims)
    if ((await process.ended()) !== 'SIGKILL') failures.push({ point, reason: 'the program ended by itself' });
  return { failures, underWay };
}

/** Runs an operator's command until it dies at the point. Before its commit nothing is written. */
export async function walkOperator(
  world: World,
  point: CrashPoint,
  args: readonly string[],
  timeoutMs: number,
): Promise<Failure[]> {
  const operator = nameOf(point).replaceAll('_', '-');
  const end = Date.now() + timeoutMs;
  for (;;) {
    const { signal, all } = await operate(world, operator, args, { CRASH_AT: point });
    if (signal === 'SIGKILL') break;
    if (Date.now() > end) return [{ point, reason: `the command did not die: ${all}` }];
    await delay(OPS_RETRY_MS);
  }
  const written = await countAuditEntries(world, operator);
  const isWanted = point.endsWith(':before_commit') ? written === 0 : written > 0;
  return isWanted ? [] : [{ point, reason: `${written} audit entries were written` }];
}

async function countAuditEntries({ stack }: World, operator: string): Promise<number> {
  const client = new pg.Client({ connectionString: stack.databaseUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM audit_entries WHERE operator = $1', [operator]);
    return rowCount ?? 0;
  } finally {
    await client.end();
  }
}
