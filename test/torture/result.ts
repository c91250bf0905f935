/** The results of runs that `--report` keeps in results.json, from which docs/torture.md is written. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { repositoryRoot } from '../../process/local/place.ts';
import { pageOf } from './page.ts';
import { rulesOf } from './report.ts';
import type { RunReport } from './run.ts';
import type { SabotageName } from './sabotage.ts';

export type RunResult = Omit<RunReport, 'violations' | 'shrunk'> & {
  /** The rules that were broken. */
  readonly broken: readonly string[];
  readonly commit: string;
};
export type SabotageResult = {
  readonly sabotage: SabotageName;
  readonly seed: number;
  readonly minutes: number;
  readonly monkey: boolean;
  /** Until the first violation. */
  readonly seconds: number;
  readonly broken: readonly string[];
  readonly commit: string;
};
export type Results = { readonly runs: readonly RunResult[]; readonly sabotages: readonly SabotageResult[] };

const RESULTS = path.join(repositoryRoot, 'test', 'torture', 'results.json');
export const PAGE = path.join(repositoryRoot, 'docs', 'torture.md');

export const readResults = async (): Promise<Results> => JSON.parse(await readFile(RESULTS, 'utf8'));

/** Puts the result in the place of that of the same run, and writes the page again. */
export async function keepResult(report: RunReport, sabotage: SabotageName | undefined): Promise<void> {
  const results = withResult(await readResults(), { report, sabotage, commit: await productCommit() });
  await writeFile(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
  await writeFile(PAGE, pageOf(results));
}

const PRODUCT = ['domain', 'db', 'activities', 'workflows', 'process', 'worker', 'api', 'config'];

/** The last commit that changed the product, and whether there are changes that are not committed. */
async function productCommit(): Promise<string> {
  const git = async (...args: readonly string[]): Promise<string> =>
    (await execa('git', [...args, '--', ...PRODUCT], { cwd: repositoryRoot })).stdout;
  const commit = await git('log', '-1', '--format=%h');
  return (await git('status', '--porcelain')) === '' ? commit : `${commit}, changed`;
}

type Kept = {
  readonly report: RunReport;
  readonly sabotage: SabotageName | undefined;
  readonly commit: string;
};

function withResult({ runs, sabotages }: Results, { report, sabotage, commit }: Kept): Results {
  const broken = rulesOf(report);
  const { violations: _violations, shrunk: _shrunk, ...rest } = report;
  const { seed, minutes, monkey, seconds } = report;
  if (sabotage !== undefined) {
    const others = sabotages.filter((known) => known.sabotage !== sabotage);
    const added = [...others, { sabotage, seed, minutes, monkey, seconds, broken, commit }];
    return { runs, sabotages: added.toSorted((a, b) => a.sabotage.localeCompare(b.sabotage)) };
  }
  const others = runs.filter((known) => known.seed !== seed || known.minutes !== minutes || known.monkey !== monkey);
  const added = [...others, { ...rest, broken, commit }];
  return { runs: added.toSorted((a, b) => a.seed - b.seed || a.minutes - b.minutes), sabotages };
}
