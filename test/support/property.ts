/** Tests of what holds for all values. A failure prints the seed and the smallest values that fail. */
import fc from 'fast-check';
import { test } from 'vitest';

/** `property([fc.nat()])('is never negative', (value) => { … })` */
export const property =
  <Values extends [unknown, ...unknown[]]>(
    arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
    parameters?: fc.Parameters<Values>,
  ) =>
  (name: string, holds: (...values: Values) => unknown): void =>
    test(name, () =>
      fc.assert(
        fc.asyncProperty(...arbitraries, async (...values) => void (await holds(...values))),
        parameters,
      ),
    );
