/**
 * The activities of a settlement. Each runs one transaction under the settlement's row lock, and sendPayout two. Each
 * does nothing when the settlement has left the status that the activity is for, and returns the settlement's state. So
 * an activity that runs twice, or again after a crash, changes nothing more. Time is the workflow's time plus the
 * offset of the settlement's own clock.
 */
import type { Tx } from '../db/client.ts';
import { commit } from '../db/commands/commit.ts';
import { cancelSettlementOnRequest } from '../db/commands/settlement.ts';
import { newId } from '../db/id.ts';
import { openPayee } from '../db/payee.ts';
import { insertAuditEntry } from '../db/queries/audit.ts';
import type { Stamp } from '../db/queries/event.ts';
import { type NewEvidence, recordEvidence } from '../db/queries/evidence.ts';
import { listForbiddingGates } from '../db/queries/gate.ts';
import { getRecipientForShare } from '../db/queries/recipient.ts';
import {
  changeOf,
  type SettlementChange,
  withDecided,
  withEvidence,
  withException,
  withMessage,
  withMove,
  withPending,
  writeChange,
} from '../db/queries/settlement-change.ts';
import { lockStep, readStepFacts, type StepFacts } from '../db/queries/settlement-step.ts';
import { findDecisionAboutName, type NameDecision } from '../db/queries/verification.ts';
import { notBefore } from '../domain/clock.ts';
import type { Transaction } from '../domain/crash-point.ts';
import { coveringEvidence, type Evidence, foldPayout, fundingOutcome, type Reception } from '../domain/evidence.ts';
import { sandboxCollectionMessage } from '../domain/outbox.ts';
import type { Recipient } from '../domain/recipient.ts';
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
import { hasCollectionPlan } from './providers/collection.ts';
import { internalFunding } from './providers/internal.ts';
import { payoutRail } from './providers/payout-rail.ts';

/** `nowMs` is the workflow's time, in epoch milliseconds. */
export type SettlementActivityInput = { readonly settlementId: string; readonly orgId: string; readonly nowMs: number };

/** The state after an activity. `waitMs` until the current wait ends; null when the state has no time limit. */
export type SettlementState = {
  readonly status: SettlementStatus;
  readonly waitMs: number | null;
  readonly paymentMethod: Settlement['paymentMethod'];
  readonly failureCode: string | null;
  /** What operators see beside it; not in the results of versions before 2026-11-22. */
  readonly until?: string | null;
  readonly recipientId?: string;
};

/** An operator's decision about a payout whose outcome is unknown. Operator and note go only to the audit entry. */
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

/** A transaction that has locked the settlement. `stamp.at` is the time by the settlement's own clock. */
type Locked = {
  readonly deps: ActivityDeps;
  readonly tx: Tx;
  readonly stamp: Stamp;
  readonly paymentTokenSealed: string | null;
  readonly facts: Pick<StepFacts, 'recipient' | 'gateEvidence'>;
  /** As it was read, and changed by each step that records evidence or decides by it. */
  readonly evidence: { pending: readonly Evidence[]; collections: readonly Evidence[] };
};

type Change = (locked: Locked, settlement: Settlement) => Promise<Settlement>;

export function settlementActivities(deps: ActivityDeps) {
  const activity = (name: Transaction, change: Change) => (input: SettlementActivityInput) =>
    changeSettlement(deps, name, input, change);
  return {
    /** accepted → rejected, compliance_hold or awaiting_funds. */
    admitSettlement: activity('settlement.admit', admit),

    /** compliance_hold → awaiting_funds, rejected or expired. */
    reviewCompliance: activity('settlement.review_compliance', reviewCompliance),

    /** awaiting_funds → funded, failed or expired, by the committed evidence. */
    reviewFunding: activity('settlement.review_funding', reviewFunding),

    /**
     * awaiting_funds or funded → paying_out or failed, once the committed evidence covers the amount. If the rail
     * answers at once, further to settled or failed.
     */
    sendPayout: async (input: SettlementActivityInput): Promise<SettlementState> => {
      const begun = await lockAndChange(deps, 'settlement.begin_payout', input, beginPayout);
      if (begun.settlement.status !== 'paying_out') return stateOf(begun);
      const answer = await payoutRail(deps).send(begun.settlement);
      return await changeSettlement(deps, 'settlement.record_payout', input, (locked, settlement) =>
        answer ? actOnAnswer(locked, settlement, answer) : reviewPayout(locked, settlement),
      );
    },

    /** paying_out → settled, failed or needs_review, by the committed evidence. */
    reviewPayout: activity('settlement.review_payout', reviewPayout),

    /** accepted, compliance_hold, awaiting_funds → canceled. In any other state nothing changes. */
    cancelOnRequest: async ({
      orgId,
      settlementId,
      nowMs,
    }: SettlementActivityInput): Promise<Pick<SettlementState, 'status'>> => {
      const { status } = await cancelSettlementOnRequest(deps, orgId, settlementId, new Date(nowMs));
      return { status };
    },

    /** needs_review → settled or failed, as the operator decided. A review that was resolved before stays as it is. */
    resolveReview: (input: ReviewResolution) =>
      changeSettlement(deps, 'settlement.resolve_review', input, (locked, settlement) =>
        resolveReview(locked, settlement, input),
      ),
  };
}

type Changed = { readonly settlement: Settlement; readonly at: Date };

/** @throws DomainError `not_found` */
const changeSettlement = async (
  deps: ActivityDeps,
  name: Transaction,
  input: SettlementActivityInput,
  change: Change,
): Promise<SettlementState> => stateOf(await lockAndChange(deps, name, input, change));

/** A settlement that has ended is left as it is. @throws DomainError `not_found` */
async function lockAndChange(
  deps: ActivityDeps,
  name: Transaction,
  input: SettlementActivityInput,
  change: Change,
): Promise<Changed> {
  return await commit(deps, name, async (tx) => {
    const { settlement, paymentTokenSealed } = await lockStep(tx, input.orgId, input.settlementId);
    const at = settlementTime(settlement, new Date(input.nowMs));
    if (isTerminal(settlement.status)) return { settlement, at };
    const { pending, collections, ...facts } = await readStepFacts(tx, settlement);
    const stamp = { at, requestId: settlement.requestId };
    const locked = { deps, tx, stamp, paymentTokenSealed, facts, evidence: { pending, collections } };
    return { settlement: await change(locked, settlement), at };
  });
}

const stateOf = ({ settlement, at }: Changed): SettlementState => ({
  status: settlement.status,
  waitMs: settlement.expiresAt === null ? null : Math.max(0, settlement.expiresAt.getTime() - at.getTime()),
  paymentMethod: settlement.paymentMethod,
  failureCode: settlement.failure?.code ?? null,
  until: settlement.expiresAt?.toISOString() ?? null,
  recipientId: settlement.recipientId,
});

const isOver = (settlement: Settlement, { stamp }: Locked): boolean =>
  settlement.expiresAt !== null && settlement.expiresAt <= stamp.at;

type Decision = {
  readonly to: SettlementStatus;
  readonly reason: string;
  readonly evidenceId?: string | undefined;
  readonly failure?: Failure;
  /** The evidence with this id, where it is not recorded yet: the move records it. */
  readonly answer?: ReceivedEvidence | undefined;
};

type ReceivedEvidence = NewEvidence & { readonly evidenceId: string };

/** Writes a change of a settlement. What it decided by is pending no more. */
async function write({ tx, evidence }: Locked, change: SettlementChange): Promise<Settlement> {
  const written = await writeChange(tx, change);
  // Recorded evidence is read under the settlement's lock before, so a change never brings it again.
  if (!written) throw new Error(`settlement ${change.before.settlementId} has this evidence already`);
  evidence.pending = evidence.pending.filter(({ evidenceId }) => !change.decided.includes(evidenceId));
  return written;
}

/** Records new evidence, which later steps of the same transaction may decide by. */
async function record(
  { tx, stamp, evidence: known }: Locked,
  settlement: Settlement,
  given: Parameters<typeof recordEvidence>[2],
): Promise<Settlement> {
  const { settlement: latest, evidence } = await recordEvidence(tx, settlement, given, stamp);
  if (evidence?.pending) known.pending = [...known.pending, evidence];
  if (evidence?.kind === 'collection_succeeded') known.collections = [...known.collections, evidence];
  return latest;
}

/**
 * A move of a settlement, to be written. The evidence that decided it is pending no more. Other pending evidence that
 * the new state does not wait for is booked, or recorded as an exception.
 */
function moveOf({ stamp, evidence }: Locked, settlement: Settlement, decision: Decision): SettlementChange {
  const { answer } = decision;
  const unmoved = changeOf(settlement, stamp);
  const moved = withMove(answer ? withEvidence(unmoved, answer, DECIDES_AT_ONCE) : unmoved, decision);
  const isDeciding = ({ evidenceId }: Evidence) => evidenceId === decision.evidenceId;
  const deciding = evidence.pending.find(isDeciding);
  const decided = deciding ? withDecided(moved, deciding.evidenceId) : moved;
  if (!isTerminal(decision.to) && decision.to !== 'funded') return decided;
  return withPending(
    decided,
    evidence.pending.filter((pending) => !isDeciding(pending)),
  );
}

/** Evidence that is recorded by the move that it decides, and so is never pending. */
const DECIDES_AT_ONCE: Reception = { pending: false, booked: null, exception: null };

const move = (locked: Locked, settlement: Settlement, decision: Decision): Promise<Settlement> =>
  write(locked, moveOf(locked, settlement, decision));

/** Ends a settlement without a payout. `evidenceId` is set when a provider's evidence decided it. */
const end = (
  locked: Locked,
  settlement: Settlement,
  to: 'rejected' | 'expired' | 'failed',
  { failure, ...decision }: { readonly failure: Failure } & Pick<Decision, 'evidenceId' | 'answer'>,
): Promise<Settlement> => move(locked, settlement, { to, reason: failure.code, failure, ...decision });

/** Whether a launch gate forbids the settlement's next step that moves value (contract §14). */
const isForbidden = ({ deps, facts }: Locked, settlement: Settlement): boolean =>
  listForbiddingGates(settlement, facts.gateEvidence, { runtime: deps.runtime, now: deps.now() }).length > 0;

/** The name that is judged: the frozen payee's. A settlement of before payees were frozen has the recipient's. */
const nameOf = ({ deps }: Locked, settlement: Settlement, recipient: Recipient): string =>
  openPayee(deps.sealer, settlement)?.name ?? recipient.name;

/** What verification decided about the payee's name (contract §4); undefined while nothing is decided about it. */
async function decisionAbout(
  locked: Locked,
  settlement: Settlement,
  recipient: Recipient,
): Promise<NameDecision | undefined> {
  const { recipientId, verificationStatus: to, updatedAt: at } = recipient;
  const name = nameOf(locked, settlement, recipient);
  if (name !== recipient.name) return await findDecisionAboutName(locked.tx, settlement.orgId, { recipientId, name });
  return to === 'verified' || to === 'rejected' ? { to, at } : undefined;
}

/** A step is not dated before what it acts on, although a repeated step has the time of its first try. */
const after = (locked: Locked, actsOn: Date): Locked => ({
  ...locked,
  stamp: { ...locked.stamp, at: notBefore(locked.stamp.at, actsOn) },
});

async function admit(locked: Locked, settlement: Settlement): Promise<Settlement> {
  if (settlement.status !== 'accepted') return await resume(locked, settlement);
  // Locked where it may be held for: a decision is either seen here, or sees the hold and signals the workflow. Other
  // settlements take no lock, so that a recipient of many settlements can still be changed.
  const needsVerification = settlement.amountMinor >= VERIFICATION_THRESHOLD_MINOR;
  const recipient = needsVerification ? await shareRecipient(locked, settlement) : locked.facts.recipient;
  if (!recipient.isActive)
    return await end(after(locked, recipient.updatedAt), settlement, 'rejected', {
      failure: FAILURES.recipientInactive,
    });
  if (isScreeningHit(nameOf(locked, settlement, recipient)))
    return await end(locked, settlement, 'rejected', { failure: FAILURES.screeningHit });
  const decision = needsVerification ? await decisionAbout(locked, settlement, recipient) : undefined;
  if (needsVerification && decision?.to !== 'verified') {
    const held = await move(locked, settlement, { to: 'compliance_hold', reason: 'verification_required' });
    // Reviewed at once, so that a decision before the hold counts as much as one after it.
    return await reviewCompliance(locked, held);
  }
  return await beginCollection(decision ? after(locked, decision.at) : locked, settlement);
}

/** The recipient, which nobody can change until the transaction ends. */
const shareRecipient = ({ tx }: Locked, { orgId, recipientId }: Settlement): Promise<Recipient> =>
  getRecipientForShare(tx, orgId, recipientId);

/** A run that starts on a settlement under way reviews it: the run before may have ended without acting on a signal. */
async function resume(locked: Locked, settlement: Settlement): Promise<Settlement> {
  return await reviewFunding(locked, await reviewCompliance(locked, settlement));
}

/** Moves to awaiting_funds. Money that came before may fund the settlement at once. */
async function beginCollection(locked: Locked, settlement: Settlement): Promise<Settlement> {
  if (isForbidden(locked, settlement))
    return await end(locked, settlement, 'rejected', { failure: FAILURES.gateClosed });
  const waits = moveOf(locked, settlement, { to: 'awaiting_funds', reason: 'compliance_passed' });
  const collects = hasCollectionPlan(locked.deps, settlement, locked.paymentTokenSealed);
  const waiting = await write(locked, collects ? withMessage(waits, sandboxCollectionMessage(settlement)) : waits);
  const isInternal = settlement.paymentMethod === 'internal';
  return await reviewFunding(locked, isInternal ? await record(locked, waiting, internalFunding(waiting)) : waiting);
}

async function reviewCompliance(locked: Locked, settlement: Settlement): Promise<Settlement> {
  if (settlement.status !== 'compliance_hold') return settlement;
  const recipient = await shareRecipient(locked, settlement);
  const decision = await decisionAbout(locked, settlement, recipient);
  if (decision) {
    const decided = after(locked, decision.at);
    if (decision.to === 'verified') return await beginCollection(decided, settlement);
    return await end(decided, settlement, 'rejected', { failure: FAILURES.verificationRejected });
  }
  if (!isOver(settlement, locked)) return settlement;
  return await end(locked, settlement, 'expired', { failure: FAILURES.verificationTimeout });
}

async function reviewFunding(locked: Locked, settlement: Settlement): Promise<Settlement> {
  if (settlement.status !== 'awaiting_funds') return settlement;
  const outcome = fundingOutcome(settlement, locked.evidence.pending);
  if (outcome?.to === 'failed') return await end(locked, settlement, 'failed', outcome);
  if (outcome === undefined) {
    if (!isOver(settlement, locked)) return settlement;
    return await end(locked, settlement, 'expired', { failure: FAILURES.fundingTimeout });
  }
  const covering = coveringEvidence(settlement, locked.evidence.collections);
  const reason = 'evidence_covers_amount';
  const funded = moveOf(locked, settlement, { to: 'funded', reason, evidenceId: covering?.evidenceId });
  return await write(locked, covering ? withSurplus(funded, covering) : funded);
}

/** The exception of a settlement that received more than its amount. */
function withSurplus(funded: SettlementChange, { evidenceId, amountMinor }: Evidence): SettlementChange {
  const { before, stamp } = funded;
  if (before.amountReceivedMinor <= before.amountMinor) return funded;
  // The amount is the evidence's own, as in every exception; the surplus is in amount_refund_due.
  const surplus = { type: 'overpaid', evidenceId, amountMinor, currency: before.sourceCurrency, reason: null } as const;
  return withException(funded, { ...surplus, at: stamp.at });
}

/**
 * awaiting_funds → funded → paying_out, as far as the evidence goes. The gates and the recipient are read before every
 * call to the rail: a payout that is retried fails when a gate was closed, or the recipient deactivated, since the
 * first try. One whose outcome is known is not retried: the outcome decides.
 */
async function beginPayout(locked: Locked, unreviewed: Settlement): Promise<Settlement> {
  const settlement = await reviewPayout(locked, await reviewFunding(locked, unreviewed));
  if (settlement.status !== 'funded' && settlement.status !== 'paying_out') return settlement;
  const { recipient } = locked.facts;
  if (!recipient.isActive)
    return await end(after(locked, recipient.updatedAt), settlement, 'failed', { failure: FAILURES.recipientInactive });
  if (isForbidden(locked, settlement)) return await end(locked, settlement, 'failed', { failure: FAILURES.gateClosed });
  if (settlement.status === 'paying_out') return settlement;
  return await move(locked, settlement, { to: 'paying_out', reason: 'payout_sent' });
}

/**
 * Records the rail's answer and acts on it, by one statement. Where the answer decides nothing, because the outcome is
 * known already or the settlement waits for none, it is recorded alone.
 */
async function actOnAnswer(locked: Locked, settlement: Settlement, given: NewEvidence): Promise<Settlement> {
  if (settlement.status !== 'paying_out' || foldPayout(locked.evidence.pending))
    return await reviewPayout(locked, await record(locked, settlement, given));
  return await reviewPayout(locked, settlement, { evidenceId: newId(), ...given });
}

/** @param answer the rail's, which is not recorded yet */
async function reviewPayout(locked: Locked, settlement: Settlement, answer?: ReceivedEvidence): Promise<Settlement> {
  if (settlement.status !== 'paying_out') return settlement;
  const outcome = foldPayout(answer ? [answer] : locked.evidence.pending);
  if (!outcome) {
    if (!isOver(settlement, locked)) return settlement;
    return await move(locked, settlement, { to: 'needs_review', reason: 'payout_outcome_unknown' });
  }
  const { evidenceId } = outcome;
  if (outcome.paid) return await settle(locked, settlement, { reason: 'payout_confirmed', evidenceId, answer });
  const failure = outcome.failure ?? FAILURES.payoutRefused;
  return await end(locked, settlement, 'failed', { failure, evidenceId, answer });
}

async function resolveReview(
  locked: Locked,
  settlement: Settlement,
  { outcome, operator, note }: Resolution,
): Promise<Settlement> {
  if (settlement.status !== 'needs_review') return settlement;
  const { orgId, settlementId } = settlement;
  const action = `resolve_review_${outcome}` as const;
  await insertAuditEntry(locked.tx, orgId, { objectId: settlementId, action, operator, note, at: locked.stamp.at });
  if (outcome === 'paid') return await settle(locked, settlement, { reason: 'resolved_paid' });
  return await move(locked, settlement, { to: 'failed', reason: 'resolved_refused', failure: FAILURES.payoutRefused });
}

/** Moves to settled and issues the certificate in the same transaction (contract §7). */
async function settle(
  locked: Locked,
  settlement: Settlement,
  decision: Pick<Decision, 'reason' | 'evidenceId' | 'answer'>,
): Promise<Settlement> {
  const { deps, tx, stamp } = locked;
  const settled = await move(locked, settlement, { to: 'settled', ...decision });
  return { ...settled, certificateId: await issueCertificate(tx, deps.certifier, settled, stamp) };
}
