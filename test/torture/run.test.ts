/** Twelve seconds of random scenarios and faults. docs/torture.md lists longer runs. */
import { expect, test } from 'vitest';
import { readSource } from '../support/source.ts';
import { DATABASE_RULES } from './check.ts';
import { planFaults } from './monkey.ts';
import { countDisturbances, torture } from './run.ts';
import { scenarioAt } from './scenario.ts';

/** The API is killed, the worker's connection to PostgreSQL is cut, and the API is paused, in twelve seconds. */
const SEED = 298;
const MINUTES = 1 / 5;
const HOUR_MS = 3_600_000;
const SCENARIOS = 100;

test('random scenarios and faults break no promise', async () => {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const report = await torture({ seed: SEED, minutes: MINUTES, monkey: true, shrinkMs: 0, say });
  expect(report.violations, lines.join('\n')).toEqual([]);
  expect(report.scenarios).toBeGreaterThan(0);
  expect(Object.keys(report.faults)).toEqual(expect.arrayContaining(['kill api', 'cut worker-postgres', 'pause api']));
});

test('a way to disturb a run is only missed if it was tried ten times and never worked', () => {
  const tried = (count: number, isDone: boolean) =>
    Array.from({ length: count }, () => ({ kind: 'temporal_terminate', isDone }) as const);
  expect(countDisturbances(tried(9, false))).toEqual({ temporal_terminate: { planned: 0, fired: 0 } });
  expect(countDisturbances(tried(10, false))).toEqual({ temporal_terminate: { planned: 1, fired: 0 } });
  expect(countDisturbances([...tried(9, false), ...tried(1, true)])).toEqual({
    temporal_terminate: { planned: 1, fired: 1 },
  });
});

test('a seed always plans the same scenarios and faults, and another seed plans others', () => {
  const planOf = (seed: number) => ({
    faults: planFaults(seed, HOUR_MS),
    scenarios: Array.from({ length: SCENARIOS }, (_, index) => scenarioAt(seed, index)),
  });
  expect(planOf(SEED)).toEqual(planOf(SEED));
  expect(planOf(SEED).faults).not.toEqual(planOf(SEED + 1).faults);
  expect(planOf(SEED).scenarios).not.toEqual(planOf(SEED + 1).scenarios);
});

test('docs/torture.md lists every rule that is checked in the database', () => {
  const page = readSource('docs/torture.md');
  for (const rule of DATABASE_RULES) expect(page).toContain(`\n| ${rule} |`);
});
