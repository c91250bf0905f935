/** The text of docs/torture.md. */
import { DATABASE_RULES } from './check.ts';
import { FAULTY_COMMIT, KNOWN_FAULTS, UNREACHED_FAULTS } from './known-fault.ts';
import { showCounts } from './report.ts';
import type { Results, RunResult } from './result.ts';
import { sabotageText } from './sabotage.ts';

export const pageOf = ({ runs, sabotages }: Results): string =>
  [
    INTRODUCTION,
    table(
      '## What must hold',
      ['In the database, once everything runs again and is quiet'],
      DATABASE_RULES.map((rule) => [rule]),
    ),
    OTHER_RULES,
    table(
      '## Runs',
      ['seed', 'minutes', 'product', 'faults that happened', 'settlements, by their end', 'deliveries', 'verdict'],
      runs.map(runRow),
    ),
    'The product is named by the last commit that changed it.',
    table('### Faults that happened in these runs', ['fault', 'times'], faultRows(runs)),
    table(
      '## Sabotages',
      ['`--sabotage`', 'what is broken on purpose, by SQL in the database of the run', 'product', 'found after', 'by'],
      sabotages.map(({ sabotage, minutes, monkey, seconds, broken, commit }) => [
        `\`${sabotage} --minutes ${minutes}${monkey ? '' : ' --calm'}\``,
        sabotageText(sabotage),
        commit,
        broken.length === 0 ? 'NOT FOUND' : `${seconds} s`,
        broken.join('; '),
      ]),
    ),
    KNOWN_FAULTS_INTRODUCTION,
    table(
      '### Found by seeds',
      ['fault', 'seed', 'scenario', `what the run said about ${FAULTY_COMMIT}`, 'fixed by'],
      KNOWN_FAULTS.map(({ fault, seed, scenario, said, fixedBy }) => [
        fault,
        String(seed),
        String(scenario),
        said,
        fixedBy,
      ]),
    ),
    table(
      '### Not within reach of a seed',
      ['fault', 'why not', 'the test that shows it', 'without the fix', 'fixed by'],
      UNREACHED_FAULTS.map(({ fault, reason, test, failed, fixedBy }) => [fault, reason, test, failed, fixedBy]),
    ),
    '',
  ].join('\n\n');

const INTRODUCTION = `# Torture

<!-- Written by \`npm run torture -- --report\`. Do not edit it: change test/torture/page.ts, or run a seed again. -->

The claim: every accepted request becomes exactly one settlement, with one outcome, one balanced set of postings, one
certificate and its events. Every cent that came in is paid out or shown as due back, whatever is killed, cut, slowed,
doubled or reordered. A torture run tries to refute it:

\`\`\`
npm run torture -- --seed 1 --minutes 5             # with the monkey
npm run torture -- --seed 1 --minutes 5 --calm      # without it
npm run torture -- --sabotage refund_missing        # must find what was broken on purpose
npm run torture -- --seed 1 --report                # keeps the result for this page
\`\`\`

1. It starts the service as it is deployed: PostgreSQL, Temporal on a file, an API and a worker, each a process.
2. An **oracle** outside of the service plays random scenarios, over HTTP and by signed provider events: all payment
   methods, amounts around the verification threshold, keys used again with the same and with other bytes at the same
   moment, cancels, renames, changed accounts, deactivations, verifications, clocks that are moved, answers of the rail,
   and money that comes, is returned and is disputed: early, late, twice, in part, too much, by nothing or in another
   currency. It cancels, terminates and resets runs through Temporal's own API, resolves reviews and records refunds by
   the operators' commands. Subscribers are healthy, fail, hang or have gone. Each answer is compared with a model of
   what the contract (§6) allows: status, failure, what was received and given back, and every exception with its amount.
3. A **monkey** kills (\`SIGKILL\`) and stops (\`SIGSTOP\`) the API, the worker, Temporal and PostgreSQL, lets the API and
   the worker die at named points around a commit, a dispatch, a signal or a request, and cuts, slows and resets their
   connections (toxiproxy, which needs Go; without it the plan has no faults of the network).
4. Everything runs again. When it is quiet, the rules below are checked over HTTP, in the database and in Temporal.

The seed determines the scenarios and the faults. A planned fault that did not happen fails the run. A scenario that
failed is played again alone and made smaller, and printed as a line that a test can keep. \`npm test\` contains 20
seconds of a fixed seed, and a walk that ends the code at every named point.`;

const OTHER_RULES = `And:

- Over HTTP: every key has one answer, byte for byte, however often and late it is repeated, and other bytes under it
  are refused. Every read is one moment: status, timeline, certificate, money and payee agree. Time never runs back. No
  state is entered twice. What has ended stays. No request is answered 500.
- Every settlement reaches an end that the contract allows for what was done to it.
- Every certificate verifies offline.
- Every event of a tenant has a delivery to each of its subscriptions. A delivery succeeded only if the subscriber
  accepted it. Healthy subscribers received every event, with a valid signature, and no other.
- In Temporal, each open settlement has one run, and no ended one has any.`;

const KNOWN_FAULTS_INTRODUCTION = `## Known faults

They were known before the suite was built. The first version of the suite played its scenarios on ${FAULTY_COMMIT}, the
commit before the first fix: \`--minutes 1 --calm\`, so the first 60 scenarios of each seed, with shorter waits for what
never comes. Fields that the service did not yet show were not compared. Since then a seed has other scenarios. Amounts
are minor units.`;

/** Cells must not end their column. */
const asCell = (cell: string): string => cell.replaceAll('|', '\\|').replaceAll('\n', ' ');
const row = (cells: readonly string[]): string => `| ${cells.map(asCell).join(' | ')} |`;

function table(title: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [`${title}\n`, row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');
}

const runRow = (run: RunResult): string[] => {
  const counts = Object.values(run.faults);
  const fired = counts.reduce((sum, { fired }) => sum + fired, 0);
  return [
    String(run.seed),
    String(run.minutes),
    run.commit,
    run.monkey ? `${fired}, of ${counts.length} kinds` : `${fired}, in Temporal only`,
    `${run.scenarios}: ${showCounts(run.ends)}`,
    String(run.deliveries),
    verdictOf(run),
  ];
};

const verdictOf = ({ broken }: RunResult): string => (broken.length === 0 ? 'pass' : `FAIL: ${broken.join('; ')}`);

function faultRows(runs: readonly RunResult[]): string[][] {
  const totals = new Map<string, number>();
  for (const [name, { fired }] of runs.flatMap(({ faults }) => Object.entries(faults)))
    totals.set(name, (totals.get(name) ?? 0) + fired);
  return [...totals].toSorted(([a], [b]) => a.localeCompare(b)).map(([name, times]) => [name, String(times)]);
}
