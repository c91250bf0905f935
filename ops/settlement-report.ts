/** `show` of a settlement. */
import { OVERDUE_GRACE_MS } from '../db/queries/metric.ts';
import { listDeliveriesAbout } from '../db/queries/operator/delivery.ts';
import { listEvidence, summarizeEvidence } from '../db/queries/operator/evidence.ts';
import { listAuditEntries, listEvents, listOutboxRows } from '../db/queries/operator/object.ts';
import {
  findSettlementObject,
  listExceptions,
  listJournal,
  listTransitions,
  sumPostings,
} from '../db/queries/operator/settlement.ts';
import { findReviewRequest } from '../db/queries/review.ts';
import { formatMoney } from '../domain/money.ts';
import { reviewState, settlementAdvice, settlementWait } from '../domain/operator-advice.ts';
import { isValidAt, type ReviewRequest } from '../domain/review.ts';
import { isCovered } from '../domain/settlement/evidence.ts';
import { refundDueMinor } from '../domain/settlement/posting.ts';
import { EVIDENCE_STATUSES, isTerminal, type Settlement, settlementTime } from '../domain/settlement/state.ts';
import { settlementWorkflowId } from '../domain/workflow-id.ts';
import type { OpsDeps } from './command.ts';
import { money, type Report, type Row } from './report.ts';
import { auditRow, deliveryRow, eventRow, outboxRow } from './report-row.ts';
import { obstacleAdvice, reportRun } from './run-report.ts';

export async function reportSettlement(deps: OpsDeps, settlementId: string): Promise<Report | undefined> {
  const { db } = deps;
  const settlement = await findSettlementObject(db, settlementId);
  if (!settlement) return undefined;
  const transitions = await listTransitions(db, settlementId);
  const evidence = await listEvidence(db, settlementId);
  const { isPending, hasRailPaid } = await summarizeEvidence(db, settlementId);
  const sums = await sumPostings(db, settlementId);
  const journal = await listJournal(db, settlementId);
  const outbox = await listOutboxRows(db, settlementId);
  const run = await reportRun(deps, settlementWorkflowId(settlementId));
  const review = settlement.status === 'needs_review' ? await findReviewRequest(db, settlementId) : undefined;
  const valid = review && isValidAt(review, deps.now()) ? review : undefined;
  return {
    kind: 'settlement',
    id: settlementId,
    facts: {
      ...factsOf(settlement, transitions.at(-1)?.at ?? settlement.createdAt, valid),
      // Of each currency; anything but zero is a fault.
      sum_of_postings: sums.map(({ currency, sumMinor }) => money(sumMinor, currency)).join(', ') || null,
      ...run.facts,
    },
    lists: {
      history: transitions.map(({ to, at, reason, evidenceId }) => ({
        status: to,
        at,
        reason,
        evidence: evidenceId,
      })),
      evidence: evidence.map(evidenceRow),
      exceptions: (await listExceptions(db, settlementId)).map(({ type, at, evidenceId }) => ({
        type,
        at,
        evidence: evidenceId,
      })),
      postings: journal.map(({ step, account, amountMinor, currency }) => ({
        step,
        account,
        amount: money(amountMinor, currency),
      })),
      pending_steps: run.activities,
      outbox: outbox.map(outboxRow),
      events: (await listEvents(db, settlementId)).map(eventRow),
      deliveries: (await listDeliveriesAbout(db, settlementId)).map(deliveryRow),
      audit: (await listAuditEntries(db, settlementId)).map(auditRow),
    },
    next: [
      obstacleAdvice(run, outbox, { id: settlementId, needsRun: !isTerminal(settlement.status), isSettlement: true }) ??
        settlementAdvice({
          ...settlement,
          until: settlement.expiresAt?.toISOString() ?? null,
          isOverdue: overdue(settlement, isPending, deps.now()),
          review: valid,
          refundDue: refundDueOf(settlement),
          hasRailPaid,
        }),
    ],
  };
}

function factsOf(settlement: Settlement, since: Date, review: ReviewRequest | undefined): Row {
  const { status, sourceCurrency, clockOffsetMs } = settlement;
  return {
    status,
    since,
    until: isTerminal(status) ? null : settlement.expiresAt,
    waits_for: settlementWait(status, settlement.paymentMethod),
    review: review ? reviewState(review) : null,
    failure: settlement.failure?.code ?? null,
    organization: settlement.orgId,
    recipient: settlement.recipientId,
    corridor: settlement.corridor,
    amount: money(settlement.amountMinor, sourceCurrency),
    received: money(settlement.amountReceivedMinor, sourceCurrency),
    refund_due: money(refundDueMinor(settlement), sourceCurrency),
    refunded: money(settlement.amountRefundedMinor, sourceCurrency),
    taken_back: settlement.takenBackMinor === 0n ? null : money(settlement.takenBackMinor, sourceCurrency),
    pays_out: money(settlement.destinationAmountMinor, settlement.destinationCurrency),
    payment_method: settlement.paymentMethod,
    payout_rail: settlement.payoutRail,
    reference: settlement.reference,
    certificate: settlement.certificateId,
    environment: settlement.environment,
    clock_ahead_seconds: clockOffsetMs === 0 ? null : Math.round(clockOffsetMs / 1000),
    created_at: settlement.createdAt,
    request_id: settlement.requestId,
  };
}

function refundDueOf(settlement: Settlement): string | undefined {
  const dueMinor = refundDueMinor(settlement);
  return dueMinor > 0n ? `${formatMoney(dueMinor, settlement.sourceCurrency)} ${settlement.sourceCurrency}` : undefined;
}

/** Whether its wait should have ended by now, on its own clock: as `isOverdue` says it in SQL. */
function overdue(settlement: Settlement, isPending: boolean, now: Date): boolean {
  const { status, expiresAt, updatedAt } = settlement;
  const isDecided =
    (status === 'awaiting_funds' && isCovered(settlement)) || (EVIDENCE_STATUSES.includes(status) && isPending);
  const decidedAt = isDecided ? updatedAt : null;
  const latestMs = settlementTime(settlement, now).getTime() - OVERDUE_GRACE_MS;
  return !isTerminal(status) && [expiresAt, decidedAt].some((at) => at !== null && at.getTime() < latestMs);
}

const evidenceRow = (row: Awaited<ReturnType<typeof listEvidence>>[number]): Row => ({
  kind: row.kind,
  amount: money(row.amountMinor, row.currency),
  failure: row.failure?.code ?? null,
  decided: !row.pending,
  received_at: row.receivedAt,
  provider: row.provider,
  provider_event: row.eventId,
  evidence: row.evidenceId,
});
