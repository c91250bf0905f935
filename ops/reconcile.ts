/**
 * `reconcile`: compares PostgreSQL with Temporal, and with what the payout rail says that it paid. After a restore of
 * either they differ. Changes nothing.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { listLostRuns } from '../db/commands/lost-run.ts';
import { isSettlementId } from '../db/id.ts';
import { findStatuses, listSettled, type Period, type Stored } from '../db/queries/operator/reconcile.ts';
import { settlementWorkflowId, verificationWorkflowId } from '../domain/workflow-id.ts';
import { type ListedRun, RUNS_LISTED_MAX } from '../process/runs.ts';
import { type OpsCommand, type OpsDeps, timedCommand } from './command.ts';
import { file, optional, withDefault } from './command-line/parameter.ts';
import { CommandError, EXIT } from './command-line/program.ts';
import { span } from './list.ts';

/** Of each list. */
const LINES_MAX = 1_000;
/** A run ends a moment after its row, and the list of runs is a second old. */
const ENDING_MS = 2_000;

type Payout = { readonly settlementId: string; readonly isPaid: boolean };
type Difference = { readonly title: string; readonly next: string; readonly ids: readonly string[] };

export const reconcileCommand: OpsCommand = timedCommand({
  name: 'reconcile',
  description: 'Compares the settlements with the runs of Temporal and with the payouts of the rail. Changes nothing.',
  takes: {
    rail: optional('--rail <file>', 'what the rail paid: CSV with the columns settlement_id and outcome', file),
    since: withDefault('--since <span>', 'runs, and settled settlements, that are not older than this', span, '3d'),
    until: withDefault(
      '--until <span>',
      'settled settlements that are older than this: the age of the file',
      span,
      '0s',
    ),
  },
  check: ({ since = Number.POSITIVE_INFINITY, until = 0 }) =>
    since > until ? [] : ['--since must be longer ago than --until.'],
  run: async (deps: OpsDeps, { rail, since: sinceMs, until: untilMs }) => {
    const ago = (ms: number) => new Date(deps.now().getTime() - ms);
    const since = ago(sinceMs);
    const payouts = rail === undefined ? undefined : readPayouts(rail);
    const runs = await deps.listRuns(since);
    const isPartial = runs.length >= RUNS_LISTED_MAX;
    if (isPartial)
      deps.warn(`Only ${RUNS_LISTED_MAX} runs are compared; there are more. A shorter --since has fewer that ended.`);
    const found = {
      ...(await compareRuns(deps, runs)),
      ...(payouts && (await comparePayouts(deps, payouts, { since, until: ago(untilMs) }))),
    };
    for (const { title, next, ids } of Object.values(found)) {
      deps.print(`${title}: ${ids.length === LINES_MAX ? `the first ${LINES_MAX}` : ids.length || 'none'}`);
      if (ids.length > 0) deps.print(`  next: ${next}`);
      for (const id of ids) deps.print(`  ${id}`);
    }
    deps.printData(Object.fromEntries(Object.entries(found).map(([name, { ids }]) => [name, ids])));
    return !isPartial && Object.values(found).every(({ ids }) => ids.length === 0) ? EXIT.done : EXIT.refused;
  },
});

async function compareRuns(deps: OpsDeps, runs: readonly ListedRun[]): Promise<Readonly<Record<string, Difference>>> {
  const { db } = deps;
  const statuses = await findStatuses(
    db,
    runs.map(({ objectId }) => objectId),
  );
  const idsOf = (list: readonly ListedRun[]): string[] => list.map(({ objectId }) => objectId).slice(0, LINES_MAX);
  const limit = { now: deps.now(), limit: LINES_MAX };
  const lost = [
    ...(await listLostRuns(deps, 'settlement', limit)),
    ...(await listLostRuns(deps, 'verification', limit)),
  ];
  return {
    runs_without_row: {
      title: 'Temporal has a run, and the database no row',
      next:
        'the database is behind. Ask the partner to send its requests of that time again, with their keys: each gets ' +
        'the same id, so the rail pays once.',
      ids: idsOf(runs.filter(({ objectId }) => !statuses.has(objectId))),
    },
    rows_without_run: {
      title: 'The database has an open row, and Temporal no run',
      next: 'Temporal is behind. A sweep starts them within a minute; to start them now: npm run ops -- redispatch --all',
      ids: lost.map(({ message }) => message.objectId).slice(0, LINES_MAX),
    },
    runs_of_ended_rows: {
      title: 'Temporal runs what has ended in the database',
      next: 'Temporal is behind. None: each run reads its row at its next step, changes nothing, and ends.',
      ids: await stillRunning(
        deps,
        idsOf(runs.filter(({ objectId, isRunning }) => isRunning && statuses.get(objectId)?.hasEnded)),
      ),
    },
  };
}

/** Which of these settlements and verifications still have a run after a moment. */
async function stillRunning({ runs }: OpsDeps, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const workflowIdOf = (id: string) => (isSettlementId(id) ? settlementWorkflowId(id) : verificationWorkflowId(id));
  await delay(ENDING_MS);
  const running = await runs.findRunning(ids.map(workflowIdOf));
  return ids.filter((id) => running.has(workflowIdOf(id)));
}

async function comparePayouts(
  { db }: OpsDeps,
  payouts: readonly Payout[],
  period: Period,
): Promise<Readonly<Record<string, Difference>>> {
  const paid = payouts.filter(({ isPaid }) => isPaid).map(({ settlementId }) => settlementId);
  const statuses = await findStatuses(db, paid);
  const known = new Set<string>();
  const again: string[] = [];
  for (const id of paid)
    if (known.has(id)) again.push(id);
    else known.add(id);
  const among = (isWanted: (stored: Stored | undefined) => boolean | undefined): string[] =>
    [...known].filter((id) => isWanted(statuses.get(id))).slice(0, LINES_MAX);
  const unpaid: string[] = [];
  for await (const page of listSettled(db, period)) unpaid.push(...page.filter((id) => !known.has(id)));
  return {
    payouts_without_settlement: {
      title: 'The rail paid, and the database has no settlement',
      next:
        'do not pay again. Ask the partner to send its request again with its key: it gets the same id, and the rail ' +
        'answers with the payout that it made.',
      ids: among((stored) => stored === undefined),
    },
    payouts_of_open_settlements: {
      title: 'The rail paid, and the settlement is open',
      next:
        "once the provider's events are there again, the payout is repeated under the same id, and the rail answers with " +
        'the one that it made. In needs_review: npm run ops -- resolve <id> paid',
      ids: among((stored) => stored?.hasEnded === false),
    },
    payouts_of_ended_settlements: {
      title: 'The rail paid, and the settlement ended without a payout',
      next: 'do not give the money back. Settle the difference with the rail: the recipient has it.',
      ids: among((stored) => stored?.hasEnded && stored.status !== 'settled'),
    },
    settlements_without_payout: {
      title: 'The settlement is settled, and the file has no payout',
      next: 'ask the rail by the id. Does the file cover the whole time (--since, --until)?',
      ids: unpaid.slice(0, LINES_MAX),
    },
    paid_twice: {
      title: 'The rail paid more than once',
      next: 'ask the rail: it must deduplicate by the id of the settlement.',
      ids: again.slice(0, LINES_MAX),
    },
  };
}

/** @throws CommandError for a file that cannot be read, and names the line */
function readPayouts(file: string): Payout[] {
  const refuse = (fault: string): never => {
    throw new CommandError(EXIT.refused, `${file}: ${fault}`);
  };
  let content = '';
  try {
    content = readFileSync(file, 'utf8');
  } catch {
    refuse('cannot be read.');
  }
  const [head, ...lines] = content
    .split(/\r?\n/)
    .map((line, index) => ({ cells: line.split(',').map((cell) => cell.trim()), number: index + 1 }))
    .filter(({ cells }) => cells.join('') !== '');
  const columns = head?.cells ?? [];
  const [idAt, outcomeAt] = [columns.indexOf('settlement_id'), columns.indexOf('outcome')];
  if (idAt < 0 || outcomeAt < 0) refuse('the first line must name the columns settlement_id and outcome.');
  return lines.map(({ cells, number }) => {
    const [settlementId = '', outcome = ''] = [cells[idAt], cells[outcomeAt]];
    if (!isSettlementId(settlementId)) refuse(`line ${number} has no settlement's id.`);
    if (outcome !== 'paid' && outcome !== 'refused') refuse(`line ${number}: the outcome must be paid or refused.`);
    return { settlementId, isPaid: outcome === 'paid' };
  });
}
