/** One minute of random lives and faults. docs/torture.md lists longer runs. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { lifeAt } from './life.ts';
import { planFaults } from './monkey.ts';
import { pageOf } from './page.ts';
import { PAGE, readResults } from './result.ts';
import { torture } from './run.ts';

/** Processes are paused and killed, and one dies at a crash point, in twenty seconds. */
const SEED = 3;
const HOUR_MS = 3_600_000;
const LIVES = 100;

test('random lives and faults break no promise', async () => {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const report = await torture({ seed: SEED, minutes: 1 / 3, rate: 1, monkey: true, shrinkMs: 0, say });
  expect(report.violations, lines.join('\n')).toEqual([]);
  expect(report.lives).toBeGreaterThan(0);
  expect(Object.keys(report.faults).length).toBeGreaterThan(0);
});

test('a seed always plans the same lives and faults, and another seed plans others', () => {
  const planOf = (seed: number) => ({
    faults: planFaults(seed, HOUR_MS, { network: true }),
    lives: Array.from({ length: LIVES }, (_, index) => lifeAt(seed, index)),
  });
  expect(planOf(SEED)).toEqual(planOf(SEED));
  expect(planOf(SEED).faults).not.toEqual(planOf(SEED + 1).faults);
  expect(planOf(SEED).lives).not.toEqual(planOf(SEED + 1).lives);
});

test('docs/torture.md is what the command wrote', async () => {
  expect(await readFile(PAGE, 'utf8')).toBe(pageOf(await readResults()));
});
