/** What waits and what is stuck, from PostgreSQL: these commands work while Temporal is down. */
import { readLongSnapshot } from '../db/client.ts';
import { type LostRun, listLostRuns } from '../db/commands/lost-run.ts';
import {
  type LateDelivery,
  listLateDeliveries,
  listStuckOutbox,
  listStuckSettlements,
  listWaitingSettlements,
  listWaitingVerifications,
  type StuckOutboxRow,
  type WaitingSettlement,
  type WaitingVerification,
} from '../db/queries/operator/waiting.ts';
import { listReviewRequests } from '../db/queries/review.ts';
import { findOldestSweep } from '../db/queries/sweep.ts';
import { type FailingTask, failingTaskAdvice, reviewState } from '../domain/operator-advice.ts';
import { SWEPT_KINDS } from '../domain/outbox.ts';
import { isValidAt, type ReviewRequest } from '../domain/review.ts';
import type { TemporalHealth } from '../domain/temporal-health.ts';
import { promotionCommand, type UnservedQueue, unservedSentence } from '../domain/worker-version.ts';
import { settlementWorkflowId } from '../domain/workflow-id.ts';
import { temporalFaultOf } from '../process/temporal-health.ts';
import { type OpsCommand, type OpsDeps, timedCommand } from './command.ts';
import { EXIT, type ExitCode } from './command-line/program.ts';
import { age, money } from './report.ts';

/** Of each list. */
const LINES_MAX = 200;
/** A sweep for lost runs begins every 20 seconds. */
const SWEEP_LATE_MS = 120_000;

export const waitingCommands: readonly OpsCommand[] = [
  timedCommand({
    name: 'waiting',
    description: 'Lists what is open, and what each waits for. What an operator must act on comes first.',
    takes: {},
    run: waiting,
  }),
  timedCommand({
    name: 'stuck',
    description: 'Lists what should have moved and has not. An empty list is good.',
    takes: {},
    run: stuck,
  }),
];

async function waiting(deps: OpsDeps): Promise<ExitCode> {
  const now = deps.now();
  const { found, verifications, requests } = await readLongSnapshot(deps.db, async (tx) => {
    const open = await listWaitingSettlements(tx, now, LINES_MAX + 1);
    const reviewed = open.filter(({ status }) => status === 'needs_review').map(({ settlementId }) => settlementId);
    return {
      found: open,
      verifications: await listWaitingVerifications(tx, LINES_MAX),
      requests: await listReviewRequests(tx, reviewed),
    };
  });
  const settlements = found.slice(0, LINES_MAX);
  const more = found.length > LINES_MAX;
  const reviewOf = ({ settlementId }: WaitingSettlement): ReviewRequest | undefined => {
    const request = requests.get(settlementId);
    return request && isValidAt(request, now) ? request : undefined;
  };
  const actionable = settlements.filter(({ isActionable }) => isActionable);
  const others = settlements.filter(({ isActionable }) => !isActionable);
  const lines = (list: readonly WaitingSettlement[]) =>
    list.map((settlement) => settlementLine(settlement, now, reviewOf(settlement)));
  printList(deps, 'Settlements to act on (show <id> has the next command)', lines(actionable));
  printList(deps, 'Settlements that go on by themselves', lines(others));
  if (more) deps.print(`More settlements are open than these ${LINES_MAX}: npm run ops -- list settlements`);
  printList(
    deps,
    'Verifications',
    verifications.map((verification) => verificationLine(verification, now)),
  );
  deps.printData({
    settlements: settlements.map((settlement) => settlementData(settlement, reviewOf(settlement))),
    verifications: verifications.map(({ verificationId, orgId, recipientId, since, expiresAt }) => ({
      verification_id: verificationId,
      org_id: orgId,
      recipient_id: recipientId,
      since,
      expires_at: expiresAt,
    })),
    limit: LINES_MAX,
    more,
  });
  return EXIT.done;
}

async function stuck(deps: OpsDeps): Promise<ExitCode> {
  const now = deps.now();
  const { outbox, settlements, deliveries, sweep } = await readLongSnapshot(deps.db, async (tx) => ({
    outbox: await listStuckOutbox(tx, LINES_MAX),
    settlements: await listStuckSettlements(tx, now, LINES_MAX),
    deliveries: await listLateDeliveries(tx, now, { limit: LINES_MAX }),
    sweep: await findOldestSweep(tx),
  }));
  const health = await deps.temporalHealth();
  const { withoutRun, unserved = [], failing, temporal } = await askTemporal(deps, now, { settlements, health });
  const failingTaskOf = ({ settlementId }: WaitingSettlement) => failing?.get(settlementId);
  printList(
    deps,
    'Outbox rows older than a minute (is Temporal up, and does a dispatcher run?)',
    outbox.map(outboxLine),
  );
  printList(
    deps,
    'Settlements that no worker moves (does a worker run? Then redispatch)',
    settlements.map((settlement) => {
      const task = failingTaskOf(settlement);
      return `${settlementLine(settlement, now)}${task === undefined ? '' : `. ${taskSentence(task)}`}`;
    }),
  );
  printList(deps, 'Late deliveries (does a worker run? Then retry-delivery)', deliveries.map(deliveryLine));
  if (temporal.status !== 'up')
    deps.print(`Open without a run: unknown. ${temporal.sentence}. The other lists are from the database.`);
  else printList(deps, 'Open without a run', (withoutRun ?? []).map(withoutRunLine));
  for (const queue of unserved)
    deps.print(`Start workers: ${unservedSentence(queue)}. ${promotionCommand(queue)}`.trim());
  if (sweep && sweep.ageMs > SWEEP_LATE_MS)
    deps.print(
      `No sweep for lost runs since ${sweep.at.toISOString()}: does a worker run, and is the schedule paused?`,
    );
  deps.printData({
    outbox: outbox.map(({ kind, objectId, attempts, lastError, since }) => ({
      kind,
      object_id: objectId,
      attempts,
      last_error: lastError,
      since,
    })),
    settlements: settlements.map((settlement) => {
      const task = failingTaskOf(settlement);
      return {
        ...settlementData(settlement),
        failing_task: task ? { attempt: task.attempt, cause: task.cause } : null,
      };
    }),
    deliveries: deliveries.map(({ deliveryId, webhookId, orgId, dueAt }) => ({
      delivery_id: deliveryId,
      webhook_id: webhookId,
      org_id: orgId,
      due_at: dueAt,
    })),
    without_run:
      withoutRun?.map(({ orgId, message }) => ({
        kind: message.kind,
        object_id: message.objectId,
        org_id: orgId,
      })) ?? null,
    last_sweep: sweep?.at ?? null,
    unserved_queues: unserved.map(({ taskQueue, promoted, polling }) => ({
      task_queue: taskQueue,
      promoted: promoted?.buildId ?? null,
      polling: polling.map((version) => version?.buildId ?? null),
    })),
    temporal: temporal.status,
    temporal_cause: temporal.cause,
    limit: LINES_MAX,
  });
  return EXIT.done;
}

/**
 * What is known only while Temporal is up: what is open without a run, what nobody polls, and which run's task fails.
 */
async function askTemporal(
  deps: OpsDeps,
  now: Date,
  { settlements, health: temporal }: { settlements: readonly WaitingSettlement[]; health: TemporalHealth },
): Promise<{
  readonly withoutRun?: readonly LostRun[];
  readonly unserved?: readonly UnservedQueue[];
  /** By settlement. */
  readonly failing?: ReadonlyMap<string, FailingTask>;
  readonly temporal: TemporalHealth;
}> {
  if (temporal.status !== 'up') return { temporal };
  const lost: LostRun[] = [];
  try {
    for (const kind of SWEPT_KINDS) lost.push(...(await listLostRuns(deps, kind, { now, limit: LINES_MAX })));
    const failing = new Map<string, FailingTask>();
    for (const { settlementId } of settlements) {
      const task = (await deps.describeRun(settlementWorkflowId(settlementId)))?.failingTask;
      if (task) failing.set(settlementId, task);
    }
    return { withoutRun: lost.slice(0, LINES_MAX), unserved: await deps.unservedQueues(now), failing, temporal };
  } catch (error) {
    const fault = temporalFaultOf(error);
    if (fault === undefined) throw error;
    return { temporal: fault };
  }
}

function taskSentence(task: FailingTask): string {
  const { say, section } = failingTaskAdvice(task);
  return `${say} See docs/operations.md, "${section}"`;
}

/** What has to happen before the settlement continues. */
function waitsFor({ status, paymentMethod, recipientId }: WaitingSettlement, review?: ReviewRequest): string {
  switch (status) {
    case 'compliance_hold':
      return `the verification of recipient ${recipientId}`;
    case 'awaiting_funds':
      return `${paymentMethod} evidence`;
    case 'paying_out':
      return 'the outcome of the payout';
    case 'needs_review':
      if (review?.agreedAt) return `an operator: repeat resolve (${reviewState(review)})`;
      return review ? `another operator: ${reviewState(review)}` : 'an operator: resolve it as paid or refused';
    default:
      return 'its workflow';
  }
}

const settlementData = (settlement: WaitingSettlement, review?: ReviewRequest) => ({
  settlement_id: settlement.settlementId,
  org_id: settlement.orgId,
  status: settlement.status,
  amount: money(settlement.amountMinor, settlement.sourceCurrency),
  reference: settlement.reference,
  must_act: settlement.isActionable,
  waits_for: waitsFor(settlement, review),
  since: settlement.since,
  expires_at: settlement.expiresAt,
});

function settlementLine(settlement: WaitingSettlement, now: Date, review?: ReviewRequest): string {
  const { settlementId, status, amountMinor, sourceCurrency, reference } = settlement;
  const what = [settlementId, status, money(amountMinor, sourceCurrency), reference === null ? '' : `(${reference})`];
  return lineOf(what.filter((part) => part !== '').join(' '), waitsFor(settlement, review), settlement, now);
}
const verificationLine = (verification: WaitingVerification, now: Date): string =>
  lineOf(verification.verificationId, `the decision about recipient ${verification.recipientId}`, verification, now);
const outboxLine = ({ kind, objectId, attempts, lastError, since }: StuckOutboxRow): string =>
  `${kind} ${objectId}: since ${since.toISOString()}, ${attempts} attempts, last error ${lastError ?? 'none'}`;
const withoutRunLine = ({ orgId, message: { kind, objectId } }: LostRun): string =>
  `${kind} ${objectId}: no run; it is started again within a minute${orgId === null ? '' : `, or now by redispatch; organization ${orgId}`}`;
const deliveryLine = ({ deliveryId, webhookId, orgId, dueAt }: LateDelivery): string =>
  `${deliveryId} to webhook ${webhookId} of ${orgId}: due since ${dueAt.toISOString()}`;

function lineOf(
  what: string,
  cause: string,
  { orgId, since, expiresAt }: { readonly orgId: string; readonly since: Date; readonly expiresAt: Date | null },
  now: Date,
): string {
  const until = expiresAt === null ? '' : `, until ${expiresAt.toISOString()}`;
  const waited = age(Math.max(0, now.getTime() - since.getTime()));
  return `${what}: waits for ${cause}; since ${since.toISOString()} (${waited})${until}; organization ${orgId}`;
}

function printList({ print }: OpsDeps, title: string, lines: readonly string[]): void {
  const count = lines.length === LINES_MAX ? `the first ${LINES_MAX}` : lines.length || 'none';
  print(`${title}: ${count}`);
  for (const line of lines) print(`  ${line}`);
}
