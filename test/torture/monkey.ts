/** The monkey breaks the stack by a plan that the seed decides: it kills, stops, cuts, slows and resets, then mends. */
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { LINKS, type Link, TOXICS, type Toxic } from './proxy.ts';
import { PARTS, type Part, type TortureStack } from './stack.ts';

export type Fault = { readonly afterMs: number; readonly lastsMs: number } & (
  | { readonly kind: 'kill' | 'pause'; readonly part: Part }
  | { readonly kind: 'network'; readonly link: Link; readonly toxic: Toxic }
);

const PAUSE_MIN_MS = 1_500;
const PAUSE_MAX_MS = 6_000;
const LASTS_MIN_MS = 300;
const LASTS_MAX_MS = 4_000;

const timing = {
  afterMs: fc.integer({ min: PAUSE_MIN_MS, max: PAUSE_MAX_MS }),
  lastsMs: fc.integer({ min: LASTS_MIN_MS, max: LASTS_MAX_MS }),
};

const faults: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ ...timing, kind: fc.constantFrom('kill' as const, 'pause' as const), part: fc.constantFrom(...PARTS) }),
  fc.record({
    ...timing,
    kind: fc.constant('network' as const),
    link: fc.constantFrom(...LINKS),
    toxic: fc.constantFrom(...TOXICS),
  }),
);

export const faultName = (fault: Fault): string =>
  fault.kind === 'network' ? `${fault.toxic} ${fault.link}` : `${fault.kind} ${fault.part}`;

/** The faults of a run, as many as fit into its time; the same ones for the same seed. */
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

/**
 * Carries the plan out, one fault after the other, and leaves everything mended.
 *
 * @returns how often each fault truly happened
 */
export async function releaseMonkey(
  stack: TortureStack,
  plan: readonly Fault[],
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const fired = new Map<string, number>();
  for (const fault of plan) {
    if (signal.aborted) break;
    await delay(fault.afterMs);
    if (await inflict(stack, fault)) fired.set(faultName(fault), (fired.get(faultName(fault)) ?? 0) + 1);
  }
  return fired;
}

/** @returns whether the fault truly happened: the process is gone or stopped, the link poisoned */
async function inflict(stack: TortureStack, fault: Fault): Promise<boolean> {
  switch (fault.kind) {
    case 'kill': {
      await stack.kill(fault.part);
      const gone = !stack.isRunning(fault.part);
      await delay(fault.lastsMs);
      await stack.start(fault.part);
      return gone;
    }
    case 'pause': {
      const running = stack.isRunning(fault.part);
      stack.pause(fault.part);
      await delay(fault.lastsMs);
      stack.resume(fault.part);
      return running;
    }
    case 'network':
      await stack.network.poison(fault.link, fault.toxic);
      await delay(fault.lastsMs);
      await stack.network.heal(fault.link);
      return true;
  }
}
