/** Random scenarios, and a fault of each kind. docs/torture.md lists longer runs, with random faults. */
import { expect, test } from 'vitest';
import { readSource } from '../support/source.ts';
import { DATABASE_RULES } from './check.ts';
import { type Fault, faultName, planFaults } from './monkey.ts';
import { countDisturbances, torture } from './run.ts';
import { scenarioAt } from './scenario.ts';

const SEED = 298;
const MINUTES = 1 / 5;
const TIMING = { afterMs: 500, lastsMs: 1_000 };
/** The worker is killed while it holds deliveries of a lane, and before it records those of a subscription. */
const FAULTS: readonly Fault[] = [
  ...(['api', 'temporal', 'postgres'] as const).map((part) => ({ ...TIMING, kind: 'kill', part }) as const),
  { ...TIMING, kind: 'crash', point: 'lane.exchange:after_commit' },
  { ...TIMING, kind: 'crash', point: 'subscription.record:before_commit' },
  { ...TIMING, kind: 'pause', part: 'api' },
  { ...TIMING, kind: 'network', link: 'worker-postgres', how: 'cut' },
];
const HOUR_MS = 3_600_000;
const SCENARIOS = 100;

test('random scenarios break no promise, while each part is killed, a program is paused and a link is cut', async () => {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const report = await torture({ seed: SEED, minutes: MINUTES, faults: FAULTS, shrinkMs: 0, say });
  expect(report.violations, lines.join('\n')).toEqual([]);
  expect(report.scenarios).toBeGreaterThan(0);
  expect(report.faults).toMatchObject(Object.fromEntries(FAULTS.map((fault) => [faultName(fault), { fired: 1 }])));
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
