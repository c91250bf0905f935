/** What a run found, as lines for people. */

import type { RunReport } from './run.ts';
import { scenarioAt, showScenario } from './scenario.ts';

const EXAMPLES_MAX = 3;

export function reportLines(report: RunReport): string[] {
  const { seed, scenarios, ends, faults, deliveries, violations, shrunk } = report;
  const shownFaults = Object.entries(faults).map(
    ([name, { planned, fired }]) => `${name} ${fired}${planned === 0 ? '' : ` of ${planned}`}`,
  );
  const lines = [
    `seed ${seed}: ${scenarios} scenarios (${showCounts(ends)}), ${deliveries} deliveries`,
    `faults that happened: ${shownFaults.join(', ') || 'none were planned'}`,
  ];
  for (const rule of new Set(violations.map((violation) => violation.rule))) {
    const found = violations.filter((violation) => violation.rule === rule);
    lines.push(`BROKEN, ${found.length} times: ${rule}`);
    for (const { scenario, detail } of found.slice(0, EXAMPLES_MAX))
      lines.push(
        `  ${detail}`,
        ...(scenario === undefined ? [] : [`  scenario ${scenario}: ${showScenario(scenarioAt(seed, scenario))}`]),
      );
  }
  if (shrunk) {
    lines.push('The smallest scenario that fails alone, for a test to keep:', `  ${showScenario(shrunk.scenario)}`);
    lines.push(...shrunk.violations.map(({ rule, detail }) => `  ${rule}: ${detail}`));
  }
  return [
    ...lines,
    violations.length === 0 ? `PASS seed ${seed}` : `FAIL seed ${seed}: ${violations.length} violations`,
  ];
}

const showCounts = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
