/**
 * The monkey breaks the stack by a plan that the seed determines: it kills and stops processes, ends them at crash
 * points, and cuts, slows and resets their connections. Then it repairs what it broke.
 */
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import type { CrashPoint } from '../../domain/crash-point.ts';
import { DISTURBANCES, type LinkDisturbance } from '../support/forwarder.ts';
import { LINKS, type Link } from '../support/network.ts';
import { stretched } from '../support/patience.ts';
import { PARTS, type Part, PROGRAMS, type ProcessStack, type Program } from '../support/process-stack.ts';

/** Crash points that scenarios pass all the time, and the program that passes them. */
const OFTEN_PASSED = {
  'settlement.accept:before_commit': 'api',
  'settlement.accept:after_commit': 'api',
  'settlement.cancel:after_commit': 'api',
  'provider_event.receive:before_commit': 'api',
  'provider_event.receive:after_commit': 'api',
  'dispatch.settlement:after_claim': 'api',
  'dispatch.settlement:after_call': 'api',
  'signal.settlement:after_claim': 'api',
  'signal.settlement:after_call': 'api',
  'settlement.admit:before_commit': 'worker',
  'settlement.admit:after_commit': 'worker',
  'settlement.review:after_commit': 'worker',
  'settlement.begin_payout:after_commit': 'worker',
  'settlement.record_payout:before_commit': 'worker',
  'settlement.record_payout:after_commit': 'worker',
  'lane.exchange:before_commit': 'worker',
  'lane.exchange:after_commit': 'worker',
  'subscription.claim:after_commit': 'worker',
  'subscription.record:before_commit': 'worker',
  'subscription.record:after_commit': 'worker',
  'signed_post:after': 'worker',
  'webhook_post:after': 'worker',
} as const satisfies Partial<Record<CrashPoint, Program>>;
type OftenPassed = keyof typeof OFTEN_PASSED;
const POINTS = Object.keys(OFTEN_PASSED) as OftenPassed[];

export type Fault = { readonly afterMs: number; readonly lastsMs: number } & (
  | { readonly kind: 'kill' | 'pause'; readonly part: Part }
  | { readonly kind: 'crash'; readonly point: OftenPassed }
  | { readonly kind: 'network'; readonly link: Link; readonly how: LinkDisturbance }
);

const PAUSE_MIN_MS = 1_500;
const PAUSE_MAX_MS = 6_000;
const LASTS_MIN_MS = 300;
const LASTS_MAX_MS = 4_000;
/** How long a program may take to start on a busy machine, and to reach its crash point. */
const CRASH_TIMEOUT_MS = stretched(90_000);
/** A program that ended by itself is started again so soon. */
const SUPERVISE_EVERY_MS = 500;

const timing = {
  afterMs: fc.integer({ min: PAUSE_MIN_MS, max: PAUSE_MAX_MS }),
  lastsMs: fc.integer({ min: LASTS_MIN_MS, max: LASTS_MAX_MS }),
};

const faults: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ ...timing, kind: fc.constantFrom('kill' as const, 'pause' as const), part: fc.constantFrom(...PARTS) }),
  fc.record({ ...timing, kind: fc.constant('crash' as const), point: fc.constantFrom(...POINTS) }),
  fc.record({
    ...timing,
    kind: fc.constant('network' as const),
    link: fc.constantFrom(...LINKS),
    how: fc.constantFrom(...DISTURBANCES),
  }),
);

export function faultName(fault: Fault): string {
  if (fault.kind === 'network') return `${fault.how} ${fault.link}`;
  return fault.kind === 'crash' ? `crash at ${fault.point}` : `${fault.kind} ${fault.part}`;
}

/** The faults of a run, as many as fit into its time. The same seed gives the same ones. */
export function planFaults(seed: number, durationMs: number): Fault[] {
  const drawn = fc.sample(faults, { seed, numRuns: Math.ceil(durationMs / PAUSE_MIN_MS), unbiased: true });
  const plan: Fault[] = [];
  let atMs = 0;
  for (const fault of drawn) {
    atMs += fault.afterMs + fault.lastsMs;
    if (atMs > durationMs) break;
    plan.push(fault);
  }
  return plan;
}

export type Fired = ReadonlyMap<string, number>;

/**
 * Carries the plan out, one fault after the other, and repairs each. A program that ends by itself meanwhile, because
 * it could not start without PostgreSQL for example, is started again, as its supervisor would do.
 *
 * @returns how often each fault truly happened
 */
export async function releaseMonkey(stack: ProcessStack, plan: readonly Fault[], signal: AbortSignal): Promise<Fired> {
  const fired = new Map<string, number>();
  for (const fault of plan) {
    await supervise(stack, fault.afterMs, signal);
    if (signal.aborted) break;
    const name = faultName(fault);
    if (await inflict(stack, fault)) fired.set(name, (fired.get(name) ?? 0) + 1);
  }
  await supervise(stack, PAUSE_MAX_MS, signal);
  return fired;
}

/** Lets the stack run for this time. */
async function supervise(stack: ProcessStack, forMs: number, signal: AbortSignal): Promise<void> {
  const end = Date.now() + forMs;
  while (Date.now() < end && !signal.aborted) {
    for (const program of PROGRAMS) if (!stack.isRunning(program)) await stack.start(program);
    await delay(Math.min(SUPERVISE_EVERY_MS, end - Date.now()), undefined, { signal }).catch(() => undefined);
  }
}

/** @returns whether the fault truly happened: the process is gone or stopped, the link disturbed */
async function inflict(stack: ProcessStack, fault: Fault): Promise<boolean> {
  switch (fault.kind) {
    case 'kill': {
      await stack.kill(fault.part);
      const isGone = !stack.isRunning(fault.part);
      await delay(fault.lastsMs);
      await stack.start(fault.part);
      return isGone;
    }
    case 'pause': {
      const isStopped = stack.isRunning(fault.part);
      stack.pause(fault.part);
      await delay(fault.lastsMs);
      stack.resume(fault.part);
      return isStopped;
    }
    case 'crash': {
      const program = OFTEN_PASSED[fault.point];
      await stack.kill(program);
      await stack.start(program, { CRASH_AT: fault.point });
      const crashed = await endsInTime(stack, program, CRASH_TIMEOUT_MS);
      await stack.kill(program);
      await delay(fault.lastsMs);
      await stack.start(program);
      return crashed;
    }
    case 'network': {
      const { network } = stack;
      network?.disturb(fault.link, fault.how);
      await delay(fault.lastsMs);
      network?.heal(fault.link);
      return network !== undefined;
    }
  }
}

/** Whether the program ends itself before its time is over. */
async function endsInTime(stack: ProcessStack, program: Program, timeoutMs: number): Promise<boolean> {
  const timeout = new AbortController();
  const late = delay(timeoutMs, 'late', { signal: timeout.signal }).catch(() => 'late');
  const signal = await Promise.race([stack.ended(program), late]);
  timeout.abort();
  return signal === 'SIGKILL';
}
