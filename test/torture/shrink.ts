/** Makes a scenario that fails as small as it can be while it still fails, so that a test can keep it. */
import fc from 'fast-check';
import type { CourseDeps } from './course.ts';
import { playScenario } from './oracle.ts';
import { type Scenario, scenarioSeed, scenarios } from './scenario.ts';
import type { Tenant } from './tenant.ts';
import type { Violation } from './violation.ts';

export type Shrunk = { readonly scenario: Scenario; readonly violations: readonly Violation[] };

/**
 * Plays the scenario again, alone, and then simpler ones, until the time is over.
 *
 * @returns the simplest scenario that fails; undefined when the scenario does not fail alone
 */
export async function shrinkScenario(
  deps: CourseDeps,
  tenant: Tenant,
  { seed, index, timeoutMs }: { readonly seed: number; readonly index: number; readonly timeoutMs: number },
): Promise<Shrunk | undefined> {
  let smallest: Shrunk | undefined;
  const property = fc.asyncProperty(scenarios, async (scenario) => {
    const { violations } = await playScenario(deps, tenant, index, scenario);
    if (violations.length === 0) return true;
    // Candidates become simpler and simpler: the latest one that fails is the simplest.
    smallest = { scenario, violations };
    return false;
  });
  await fc.check(property, {
    seed: scenarioSeed(seed, index),
    numRuns: 1,
    unbiased: true,
    interruptAfterTimeLimit: timeoutMs,
  });
  return smallest;
}
