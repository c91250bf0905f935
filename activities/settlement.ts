/**
 * The steps of a settlement. Each is one transaction under the settlement's row lock, does nothing when the
 * settlement is past it, and answers with where the settlement now stands: running one twice, or after a crash
 * anywhere, changes nothing more. Time is the workflow's, plus the settlement's own offset.
 */
import type { Tx } from '../db/client.ts';
import { commit } from '../db/commands/commit.ts';
import { insertAuditEntry } from '../db/queries/audit.ts';
import {
  foldCollections,
  listPendingEvidence,
  markFolded,
  receiveLeftovers,
  recordEvidence,
} from '../db/queries/evidence.ts';
import { listForbiddingGates } from '../db/queries/gate.ts';
import { enqueue } from '../db/queries/outbox.ts';
import { getRecipientForShare } from '../db/queries/recipient.ts';
import { lockSettlement, moveSettlement, recordException, setCertificate } from '../db/queries/settlement.ts';
import { foldPayout } from '../domain/evidence.ts';
import { sandboxCollectionMessage } from '../domain/outbox.ts';
import type { Resolution } from '../domain/review.ts';
import { isScreeningHit } from '../domain/sandbox/input.ts';
import {
  type Failure,
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

/** Where a settlement stands after a step; `waitMs` until its present wait ends, null where no clock runs. */
export type SettlementState = {
  readonly status: SettlementStatus;
  readonly waitMs: number | null;
  readonly paymentMethod: Settlement['paymentMethod'];
  readonly failureCode: string | null;
};

/** What an operator found out about a payout of unknown outcome; operator and note go to the audit entry alone. */
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

export function settlementActivities(deps: ActivityDeps) {
  const step = (
    input: SettlementActivityInput,
    run: (tx: Tx, settlement: Settlement, at: Date) => Promise<Settlement>,
  ) => takeStep(deps, input, run);
  return {
    /** accepted → rejected, compliance_hold or awaiting_funds. */
    admitSettlement: (input: SettlementActivityInput) =>
      step(input, (tx, settlement, at) => admit(deps, tx, settlement, at)),

    /** compliance_hold → awaiting_funds, rejected or expired. */
    reviewCompliance: (input: SettlementActivityInput) =>
      step(input, (tx, settlement, at) => reviewCompliance(deps, tx, settlement, at)),

    /** awaiting_funds → funded, failed or expired, by the evidence that was committed. */
    reviewFunding: (input: SettlementActivityInput) => step(input, reviewFunding),

    /** funded → paying_out, then the rail's answer where it gives one at once. */
    sendPayout: async (input: SettlementActivityInput): Promise<SettlementState> => {
      const sent = await step(input, (tx, settlement, at) => beginPayout(deps, tx, settlement, at));
      if (sent.status !== 'paying_out') return sent;
      const answer = await payoutRail(deps).send(input);
      return await step(input, async (tx, settlement, at) => {
        if (answer) await recordEvidence(tx, settlement, answer, { at, requestId: settlement.requestId });
        return await reviewPayout(deps, tx, settlement, at);
      });
    },

    /** paying_out → settled, failed or needs_review, by the evidence that was committed. */
    reviewPayout: (input: SettlementActivityInput) =>
      step(input, (tx, settlement, at) => reviewPayout(deps, tx, settlement, at)),

    /** needs_review → settled or failed, as an operator found out; one that was resolved before stays as it is. */
    resolveReview: (input: ReviewResolution) =>
      step(input, (tx, settlement, at) => resolveReview(deps, tx, settlement, at, input)),
  };
}

async function takeStep(
  deps: ActivityDeps,
  input: SettlementActivityInput,
  run: (tx: Tx, settlement: Settlement, at: Date) => Promise<Settlement>,
): Promise<SettlementState> {
  return await commit(deps, async (tx) => {
    const settlement = await lockSettlement(tx, input.orgId, input.settlementId);
    const at = settlementTime(settlement, new Date(input.nowMs));
    return stateOf(await run(tx, settlement, at), at);
  });
}

const stateOf = (settlement: Settlement, at: Date): SettlementState => ({
  status: settlement.status,
  waitMs: settlement.expiresAt === null ? null : Math.max(0, settlement.expiresAt.getTime() - at.getTime()),
  paymentMethod: settlement.paymentMethod,
  failureCode: settlement.failure?.code ?? null,
});

const isOver = (settlement: Settlement, at: Date): boolean =>
  settlement.expiresAt !== null && settlement.expiresAt <= at;

/** Whether a launch gate forbids the settlement's next step that moves value (contract §14). */
const isForbidden = async ({ runtime, now }: ActivityDeps, tx: Tx, settlement: Settlement): Promise<boolean> =>
  (await listForbiddingGates(tx, settlement, { runtime, now: now() })).length > 0;

async function admit(deps: ActivityDeps, tx: Tx, settlement: Settlement, at: Date): Promise<Settlement> {
  if (settlement.status !== 'accepted') return settlement;
  const recipient = await getRecipientForShare(tx, settlement.orgId, settlement.recipientId);
  if (!recipient.isActive)
    return await moveSettlement(tx, settlement, {
      to: 'rejected',
      at,
      reason: 'recipient_inactive',
      failure: FAILURES.recipientInactive,
    });
  if (isScreeningHit(recipient.name))
    return await moveSettlement(tx, settlement, {
      to: 'rejected',
      at,
      reason: 'screening_hit',
      failure: FAILURES.screeningHit,
    });
  if (settlement.amountMinor >= VERIFICATION_THRESHOLD_MINOR && recipient.verificationStatus !== 'verified') {
    // Reviewed at once, so that a decision before the hold counts as much as one after it.
    return await reviewCompliance(
      deps,
      tx,
      await moveSettlement(tx, settlement, { to: 'compliance_hold', at, reason: 'verification_required' }),
      at,
    );
  }
  return await beginCollection(deps, tx, settlement, at);
}

/** Enters awaiting_funds and applies what is already known, so that evidence which came early is not waited for. */
async function beginCollection(deps: ActivityDeps, tx: Tx, settlement: Settlement, at: Date): Promise<Settlement> {
  if (await isForbidden(deps, tx, settlement)) {
    return await moveSettlement(tx, settlement, {
      to: 'rejected',
      at,
      reason: 'launch_gates_closed',
      failure: FAILURES.gateClosed,
    });
  }
  const waiting = await moveSettlement(tx, settlement, { to: 'awaiting_funds', at, reason: 'compliance_passed' });
  if (settlement.paymentMethod === 'internal') {
    await recordEvidence(tx, waiting, internalFunding(waiting), { at, requestId: settlement.requestId });
  } else {
    await enqueue(tx, sandboxCollectionMessage(settlement));
  }
  return await reviewFunding(tx, waiting, at);
}

async function reviewCompliance(deps: ActivityDeps, tx: Tx, settlement: Settlement, at: Date): Promise<Settlement> {
  if (settlement.status !== 'compliance_hold') return settlement;
  const recipient = await getRecipientForShare(tx, settlement.orgId, settlement.recipientId);
  if (recipient.verificationStatus === 'verified') return await beginCollection(deps, tx, settlement, at);
  if (recipient.verificationStatus === 'rejected') {
    return await moveSettlement(tx, settlement, {
      to: 'rejected',
      at,
      reason: 'verification_rejected',
      failure: FAILURES.verificationRejected,
    });
  }
  return isOver(settlement, at)
    ? await moveSettlement(tx, settlement, {
        to: 'expired',
        at,
        reason: 'verification_timeout',
        failure: FAILURES.verificationTimeout,
      })
    : settlement;
}

async function reviewFunding(tx: Tx, settlement: Settlement, at: Date): Promise<Settlement> {
  if (settlement.status !== 'awaiting_funds') return settlement;
  const { settlement: received, outcome } = await foldCollections(tx, settlement, at);
  if (outcome === undefined) {
    return isOver(received, at)
      ? await moveSettlement(tx, received, {
          to: 'expired',
          at,
          reason: 'funding_timeout',
          failure: FAILURES.fundingTimeout,
        })
      : received;
  }
  const { evidenceId } = outcome;
  const decided =
    outcome.to === 'funded'
      ? await moveSettlement(tx, received, { to: 'funded', at, reason: 'evidence_covers_amount', evidenceId })
      : await moveSettlement(tx, received, {
          to: 'failed',
          at,
          reason: outcome.failure.code,
          evidenceId,
          failure: outcome.failure,
        });
  if (outcome.to === 'funded' && outcome.overpaid)
    await recordException(tx, decided, { type: 'overpaid', at, evidenceId });
  await receiveLeftovers(tx, decided, at);
  return decided;
}

async function beginPayout(deps: ActivityDeps, tx: Tx, settlement: Settlement, at: Date): Promise<Settlement> {
  if (settlement.status !== 'funded') return settlement;
  const recipient = await getRecipientForShare(tx, settlement.orgId, settlement.recipientId);
  const refusal = !recipient.isActive
    ? FAILURES.recipientInactive
    : (await isForbidden(deps, tx, settlement))
      ? FAILURES.gateClosed
      : undefined;
  if (refusal)
    return await moveSettlement(tx, settlement, { to: 'failed', at, reason: refusal.code, failure: refusal });
  return await moveSettlement(tx, settlement, { to: 'paying_out', at, reason: 'payout_sent' });
}

async function reviewPayout(deps: ActivityDeps, tx: Tx, settlement: Settlement, at: Date): Promise<Settlement> {
  if (settlement.status !== 'paying_out') return settlement;
  const outcome = foldPayout(await listPendingEvidence(tx, settlement.settlementId));
  if (outcome) {
    await markFolded(tx, [outcome.evidenceId]);
    const decided = outcome.paid
      ? await settle(deps, tx, settlement, at, 'payout_confirmed', outcome.evidenceId)
      : await moveSettlement(tx, settlement, {
          to: 'failed',
          at,
          reason: 'payout_refused',
          evidenceId: outcome.evidenceId,
          failure: outcome.failure ?? FAILURES.payoutRefused,
        });
    await receiveLeftovers(tx, decided, at);
    return decided;
  }
  if (!isOver(settlement, at)) return settlement;
  return await moveSettlement(tx, settlement, { to: 'needs_review', at, reason: 'payout_outcome_unknown' });
}

async function resolveReview(
  deps: ActivityDeps,
  tx: Tx,
  settlement: Settlement,
  at: Date,
  input: ReviewResolution,
): Promise<Settlement> {
  if (settlement.status !== 'needs_review') return settlement;
  const { orgId, settlementId } = settlement;
  const { outcome, operator, note } = input;
  await insertAuditEntry(tx, orgId, {
    objectId: settlementId,
    action: `resolve_review_${outcome}`,
    operator,
    note,
    at,
  });
  return outcome === 'paid'
    ? await settle(deps, tx, settlement, at, 'resolved_paid', null)
    : await moveSettlement(tx, settlement, {
        to: 'failed',
        at,
        reason: 'resolved_refused',
        failure: FAILURES.payoutRefused,
      });
}

/** Reaches settled and issues the certificate in the same transaction (contract §7). */
async function settle(
  deps: ActivityDeps,
  tx: Tx,
  settlement: Settlement,
  at: Date,
  reason: string,
  evidenceId: string | null,
): Promise<Settlement> {
  const settled = await moveSettlement(tx, settlement, { to: 'settled', at, reason, evidenceId });
  const certificateId = await issueCertificate(tx, deps.certifier, settled, { at, requestId: settlement.requestId });
  return await setCertificate(tx, settled, certificateId);
}
