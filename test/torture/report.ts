/** What a run found, as lines for people. */
import { lifeAt, showLife } from './life.ts';
import type { RunReport } from './run.ts';

const EXAMPLES_MAX = 3;

export function reportLines(report: RunReport): string[] {
  const { seed, lives, ends, faults, deliveries, violations, shrunk } = report;
  const shownFaults = Object.entries(faults).map(([name, { planned, fired }]) => `${name} ${fired} of ${planned}`);
  const lines = [
    `seed ${seed}: ${lives} lives (${showCounts(ends)}), ${deliveries} deliveries`,
    `faults that happened: ${shownFaults.join(', ') || 'none were planned'}`,
  ];
  for (const rule of rulesOf(report)) {
    const found = violations.filter((violation) => violation.rule === rule);
    lines.push(`BROKEN, ${found.length} times: ${rule}`);
    for (const { life, detail } of found.slice(0, EXAMPLES_MAX))
      lines.push(`  ${detail}`, ...(life === undefined ? [] : [`  life ${life}: ${showLife(lifeAt(seed, life))}`]));
  }
  if (shrunk) {
    lines.push('The smallest life that fails alone, for a test to keep:', `  ${showLife(shrunk.life)}`);
    lines.push(...shrunk.violations.map(({ rule, detail }) => `  ${rule}: ${detail}`));
  }
  return [
    ...lines,
    violations.length === 0 ? `PASS seed ${seed}` : `FAIL seed ${seed}: ${violations.length} violations`,
  ];
}

/** Each rule that was broken, once. */
export const rulesOf = ({ violations }: Pick<RunReport, 'violations'>): string[] => [
  ...new Set(violations.map(({ rule }) => rule)),
];

export const showCounts = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
