/** The results of runs that `--report` keeps in results.json, from which docs/torture.md is written. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { repositoryRoot } from '../../process/place.ts';
import { pageOf } from './page.ts';
import { rulesOf } from './report.ts';
import type { RunReport } from './run.ts';
import type { SabotageName } from './sabotage.ts';

export type RunResult = Omit<RunReport, 'violations' | 'shrunk'> & {
  /** The rules that were broken. */
  readonly broken: readonly string[];
};
export type SabotageResult = {
  readonly sabotage: SabotageName;
  readonly seed: number;
  /** Until the first violation. */
  readonly seconds: number;
  readonly broken: readonly string[];
};
export type Results = { readonly runs: readonly RunResult[]; readonly sabotages: readonly SabotageResult[] };

const RESULTS = path.join(repositoryRoot, 'test', 'torture', 'results.json');
export const PAGE = path.join(repositoryRoot, 'docs', 'torture.md');

export const readResults = async (): Promise<Results> => JSON.parse(await readFile(RESULTS, 'utf8'));

/** Puts the result in the place of that of the same run, and writes the page again. */
export async function keepResult(report: RunReport, sabotage: SabotageName | undefined): Promise<void> {
  const results = withResult(await readResults(), report, sabotage);
  await writeFile(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
  await writeFile(PAGE, pageOf(results));
}

function withResult({ runs, sabotages }: Results, report: RunReport, sabotage: SabotageName | undefined): Results {
  const broken = rulesOf(report);
  const { violations: _violations, shrunk: _shrunk, ...rest } = report;
  const { seed, minutes, monkey, seconds } = report;
  if (sabotage !== undefined) {
    const others = sabotages.filter((known) => known.sabotage !== sabotage);
    const added = [...others, { sabotage, seed, seconds, broken }];
    return { runs, sabotages: added.toSorted((a, b) => a.sabotage.localeCompare(b.sabotage)) };
  }
  const others = runs.filter((known) => known.seed !== seed || known.minutes !== minutes || known.monkey !== monkey);
  const added = [...others, { ...rest, broken }];
  return { runs: added.toSorted((a, b) => a.seed - b.seed || a.minutes - b.minutes), sabotages };
}
