/**
 * The activities of a settlement. Each is one transaction under the settlement's row lock. It does nothing when the
 * settlement is past it, and returns where the settlement now stands: running one twice, or after a crash at any point,
 * changes nothing more. Time is the workflow's, plus the settlement's own offset.
 */
import type { Tx } from '../db/client.ts';
import { commit } from '../db/commands/commit.ts';
import { insertAuditEntry } from '../db/queries/audit.ts';
import type { Stamp } from '../db/queries/event.ts';
import {
  findCoveringEvidence,
  listPendingEvidence,
  markDecided,
  receivePending,
  recordEvidence,
} from '../db/queries/evidence.ts';
import { listForbiddingGates } from '../db/queries/gate.ts';
import { enqueue } from '../db/queries/outbox.ts';
import { getRecipientForShare } from '../db/queries/recipient.ts';
import { lockSettlement, moveSettlement, recordException, setCertificate } from '../db/queries/settlement.ts';
import { foldPayout, fundingOutcome } from '../domain/evidence.ts';
import { sandboxCollectionMessage } from '../domain/outbox.ts';
import type { Resolution } from '../domain/review.ts';
import { isScreeningHit } from '../domain/sandbox/input.ts';
import {
  type Failure,
  isTerminal,
  type Settlement,
  type SettlementStatus,
  settlementTime,
  VERIFICATION_THRESHOLD_MINOR,
} from '../domain/settlement.ts';
import { issueCertificate } from './certificate.ts';
import type { ActivityDeps } from './deps.ts';
import { internalFunding } from './providers/internal.ts';
import { payoutRail } from './providers/payout-rail.ts';

/** `nowMs` is the workflow's time in epoch milliseconds. */
export type SettlementActivityInput = { readonly settlementId: string; readonly orgId: string; readonly nowMs: number };

/** Where a settlement stands after an activity. `waitMs`: until its current wait ends; null where there is none. */
export type SettlementState = {
  readonly status: SettlementStatus;
  readonly waitMs: number | null;
  readonly paymentMethod: Settlement['paymentMethod'];
  readonly failureCode: string | null;
};

/** What an operator decides about a payout of unknown outcome. Operator and note go to the audit entry alone. */
export type ReviewResolution = SettlementActivityInput & Resolution;

const FAILURES = {
  recipientInactive: { code: 'recipient_inactive', message: 'The recipient is no longer active.' },
  screeningHit: { code: 'screening_hit', message: 'The recipient was refused by screening.' },
  verificationRejected: { code: 'verification_rejected', message: "The recipient's verification was rejected." },
  verificationTimeout: { code: 'verification_timeout', message: 'The recipient was not verified in time.' },
  fundingTimeout: { code: 'funding_timeout', message: 'The money did not arrive in time.' },
  gateClosed: { code: 'launch_gates_closed', message: 'A launch gate was closed before value could move.' },
  payoutRefused: { code: 'payout_refused', message: 'The payout was refused.' },
} as const satisfies Record<string, Failure>;

/** The transaction of one activity, and the moment that it writes. */
type Step = { readonly deps: ActivityDeps; readonly tx: Tx; readonly stamp: Stamp };

export function settlementActivities(deps: ActivityDeps) {
  const activity = (run: Run) => (input: SettlementActivityInput) => runStep(deps, input, run);
  return {
    /** accepted → rejected, compliance_hold or awaiting_funds. */
    admitSettlement: activity(admit),

    /** compliance_hold → awaiting_funds, rejected or expired. */
    reviewCompliance: activity(reviewCompliance),

    /** awaiting_funds → funded, failed or expired, by the evidence that was committed. */
    reviewFunding: activity(reviewFunding),

    /** funded → paying_out, then by the rail's answer where it gives one at once. */
    sendPayout: async (input: SettlementActivityInput): Promise<SettlementState> => {
      const begun = await runStep(deps, input, beginPayout);
      if (begun.status !== 'paying_out') return begun;
      const answer = await payoutRail(deps).send(input);
      return await runStep(deps, input, async (step, settlement) => {
        if (answer) await recordEvidence(step.tx, settlement, answer, step.stamp);
        return await reviewPayout(step, settlement);
      });
    },

    /** paying_out → settled, failed or needs_review, by the evidence that was committed. */
    reviewPayout: activity(reviewPayout),

    /** needs_review → settled or failed, as an operator decided. One that was resolved before stays as it is. */
    resolveReview: (input: ReviewResolution) =>
      runStep(deps, input, (step, settlement) => resolveReview(step, settlement, input)),
  };
}

type Run = (step: Step, settlement: Settlement) => Promise<Settlement>;

async function runStep(deps: ActivityDeps, input: SettlementActivityInput, run: Run): Promise<SettlementState> {
  return await commit(deps, async (tx) => {
    const settlement = await lockSettlement(tx, input.orgId, input.settlementId);
    const at = settlementTime(settlement, new Date(input.nowMs));
    const step = { deps, tx, stamp: { at, requestId: settlement.requestId } };
    return stateOf(await run(step, settlement), at);
  });
}

const stateOf = (settlement: Settlement, at: Date): SettlementState => ({
  status: settlement.status,
  waitMs: settlement.expiresAt === null ? null : Math.max(0, settlement.expiresAt.getTime() - at.getTime()),
  paymentMethod: settlement.paymentMethod,
  failureCode: settlement.failure?.code ?? null,
});

const isOver = (settlement: Settlement, { stamp }: Step): boolean =>
  settlement.expiresAt !== null && settlement.expiresAt <= stamp.at;

type Decision = {
  readonly to: SettlementStatus;
  readonly reason: string;
  readonly evidenceId?: string | undefined;
  readonly failure?: Failure;
};

/** Moves a settlement. Evidence that the new state no longer waits for is booked, or recorded as an exception. */
async function move({ tx, stamp }: Step, settlement: Settlement, decision: Decision): Promise<Settlement> {
  const { evidenceId = null, ...rest } = decision;
  const moved = await moveSettlement(tx, settlement, { ...rest, evidenceId, ...stamp });
  return isTerminal(moved.status) || moved.status === 'funded' ? await receivePending(tx, moved, stamp) : moved;
}

/** Ends a settlement without paying it out; `evidenceId` where a provider's evidence decided it. */
const end = (
  step: Step,
  settlement: Settlement,
  to: 'rejected' | 'expired' | 'failed',
  { failure, evidenceId }: { readonly failure: Failure; readonly evidenceId?: string },
): Promise<Settlement> => move(step, settlement, { to, reason: failure.code, failure, evidenceId });

/** Whether a launch gate forbids the settlement's next step that moves value (contract §14). */
const isForbidden = async ({ deps, tx }: Step, settlement: Settlement): Promise<boolean> =>
  (await listForbiddingGates(tx, settlement, { runtime: deps.runtime, now: deps.now() })).length > 0;

async function admit(step: Step, settlement: Settlement): Promise<Settlement> {
  if (settlement.status !== 'accepted') return settlement;
  const recipient = await getRecipientForShare(step.tx, settlement.orgId, settlement.recipientId);
  if (!recipient.isActive) return await end(step, settlement, 'rejected', { failure: FAILURES.recipientInactive });
  if (isScreeningHit(recipient.name))
    return await end(step, settlement, 'rejected', { failure: FAILURES.screeningHit });
  if (settlement.amountMinor >= VERIFICATION_THRESHOLD_MINOR && recipient.verificationStatus !== 'verified') {
    const held = await move(step, settlement, { to: 'compliance_hold', reason: 'verification_required' });
    // Reviewed at once, so that a decision before the hold counts as much as one after it.
    return await reviewCompliance(step, held);
  }
  return await beginCollection(step, settlement);
}

/** Enters awaiting_funds. Money that came before may fund the settlement at once. */
async function beginCollection(step: Step, settlement: Settlement): Promise<Settlement> {
  if (await isForbidden(step, settlement))
    return await end(step, settlement, 'rejected', { failure: FAILURES.gateClosed });
  const waiting = await move(step, settlement, { to: 'awaiting_funds', reason: 'compliance_passed' });
  if (settlement.paymentMethod !== 'internal') {
    await enqueue(step.tx, sandboxCollectionMessage(settlement));
    return await reviewFunding(step, waiting);
  }
  const funded = await recordEvidence(step.tx, waiting, internalFunding(waiting), step.stamp);
  return await reviewFunding(step, funded.settlement);
}

async function reviewCompliance(step: Step, settlement: Settlement): Promise<Settlement> {
  if (settlement.status !== 'compliance_hold') return settlement;
  const recipient = await getRecipientForShare(step.tx, settlement.orgId, settlement.recipientId);
  if (recipient.verificationStatus === 'verified') return await beginCollection(step, settlement);
  if (recipient.verificationStatus === 'rejected')
    return await end(step, settlement, 'rejected', { failure: FAILURES.verificationRejected });
  if (!isOver(settlement, step)) return settlement;
  return await end(step, settlement, 'expired', { failure: FAILURES.verificationTimeout });
}

async function reviewFunding(step: Step, settlement: Settlement): Promise<Settlement> {
  if (settlement.status !== 'awaiting_funds') return settlement;
  const { tx, stamp } = step;
  const outcome = fundingOutcome(settlement, await listPendingEvidence(tx, settlement.settlementId));
  if (outcome?.to === 'failed') {
    await markDecided(tx, outcome.evidenceId);
    return await end(step, settlement, 'failed', outcome);
  }
  if (outcome === undefined) {
    if (!isOver(settlement, step)) return settlement;
    return await end(step, settlement, 'expired', { failure: FAILURES.fundingTimeout });
  }
  const evidenceId = await findCoveringEvidence(tx, settlement);
  const funded = await move(step, settlement, { to: 'funded', reason: 'evidence_covers_amount', evidenceId });
  const surplusMinor = settlement.amountReceivedMinor - settlement.amountMinor;
  if (surplusMinor > 0n && evidenceId !== undefined) {
    const { sourceCurrency: currency } = settlement;
    const overpaid = { type: 'overpaid', evidenceId, amountMinor: surplusMinor, currency, reason: null } as const;
    await recordException(tx, funded, { ...overpaid, ...stamp });
  }
  return funded;
}

/**
 * funded → paying_out. The gates and the recipient are read before every call to the rail: a payout that is retried
 * fails when a gate was closed, or the recipient deactivated, since the first try.
 */
async function beginPayout(step: Step, settlement: Settlement): Promise<Settlement> {
  if (settlement.status !== 'funded' && settlement.status !== 'paying_out') return settlement;
  const recipient = await getRecipientForShare(step.tx, settlement.orgId, settlement.recipientId);
  if (!recipient.isActive) return await end(step, settlement, 'failed', { failure: FAILURES.recipientInactive });
  if (await isForbidden(step, settlement))
    return await end(step, settlement, 'failed', { failure: FAILURES.gateClosed });
  if (settlement.status === 'paying_out') return settlement;
  return await move(step, settlement, { to: 'paying_out', reason: 'payout_sent' });
}

async function reviewPayout(step: Step, settlement: Settlement): Promise<Settlement> {
  if (settlement.status !== 'paying_out') return settlement;
  const outcome = foldPayout(await listPendingEvidence(step.tx, settlement.settlementId));
  if (!outcome) {
    if (!isOver(settlement, step)) return settlement;
    return await move(step, settlement, { to: 'needs_review', reason: 'payout_outcome_unknown' });
  }
  const { evidenceId } = outcome;
  await markDecided(step.tx, evidenceId);
  if (outcome.paid) return await settle(step, settlement, { reason: 'payout_confirmed', evidenceId });
  return await end(step, settlement, 'failed', { failure: outcome.failure ?? FAILURES.payoutRefused, evidenceId });
}

async function resolveReview(
  step: Step,
  settlement: Settlement,
  { outcome, operator, note }: Resolution,
): Promise<Settlement> {
  if (settlement.status !== 'needs_review') return settlement;
  const { orgId, settlementId } = settlement;
  const action = `resolve_review_${outcome}` as const;
  await insertAuditEntry(step.tx, orgId, { objectId: settlementId, action, operator, note, at: step.stamp.at });
  if (outcome === 'paid') return await settle(step, settlement, { reason: 'resolved_paid' });
  return await move(step, settlement, { to: 'failed', reason: 'resolved_refused', failure: FAILURES.payoutRefused });
}

/** Reaches settled and issues the certificate in the same transaction (contract §7). */
async function settle(
  step: Step,
  settlement: Settlement,
  decision: { readonly reason: string; readonly evidenceId?: string },
): Promise<Settlement> {
  const { deps, tx, stamp } = step;
  const settled = await move(step, settlement, { to: 'settled', ...decision });
  return await setCertificate(tx, settled, await issueCertificate(tx, deps.certifier, settled, stamp));
}
