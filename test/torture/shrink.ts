/** Makes a life that fails as small as it can be while it still fails, so that a test can keep it. */
import fc from 'fast-check';
import type { CourseDeps } from './course.ts';
import { type Life, lifeSeed, lives } from './life.ts';
import { live } from './oracle.ts';
import type { Tenant } from './tenant.ts';
import type { Violation } from './violation.ts';

export type Shrunk = { readonly life: Life; readonly violations: readonly Violation[] };

/**
 * Lives the life again, alone, and then simpler ones, until the time is over.
 *
 * @returns the simplest life that fails; undefined when the life does not fail alone
 */
export async function shrinkLife(
  deps: CourseDeps,
  tenant: Tenant,
  { seed, index, timeoutMs }: { readonly seed: number; readonly index: number; readonly timeoutMs: number },
): Promise<Shrunk | undefined> {
  let smallest: Shrunk | undefined;
  const property = fc.asyncProperty(lives, async (life) => {
    const { violations } = await live(deps, tenant, index, life);
    if (violations.length === 0) return true;
    // Candidates become simpler and simpler: the latest one that fails is the simplest.
    smallest = { life, violations };
    return false;
  });
  await fc.check(property, {
    seed: lifeSeed(seed, index),
    numRuns: 1,
    unbiased: true,
    interruptAfterTimeLimit: timeoutMs,
  });
  return smallest;
}
