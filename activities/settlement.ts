/**
 * The activities of a settlement. Each locks the settlement's row, reads the facts, calls `decide` and writes the
 * change, in one transaction; sendPayout does so before and after the call to the rail. An activity that runs twice, or
 * again after a crash, finds the facts that it left, and changes nothing more.
 */
import type { Tx } from '../db/client.ts';
import { commit } from '../db/commands/commit.ts';
import { cancelSettlementOnRequest, writeDecision } from '../db/commands/settlement.ts';
import { openDataKey } from '../db/data-key.ts';
import { openPayee } from '../db/payee.ts';
import { forbiddingGatesOfSettlement } from '../db/queries/gate.ts';
import { findReviewRequest } from '../db/queries/review.ts';
import { type LockedSettlement, lockForDecision, readSurroundings } from '../db/queries/settlement-facts.ts';
import { nameDigest } from '../db/queries/verification.ts';
import type { Transaction } from '../domain/crash-point.ts';
import { stateConflict } from '../domain/error.ts';
import type { Payee } from '../domain/payee.ts';
import { agreedResolution } from '../domain/review.ts';
import { type Decision, decide } from '../domain/settlement/decide.ts';
import { decisionAboutPayee, type StepFacts } from '../domain/settlement/facts.ts';
import type { HappeningOf } from '../domain/settlement/happening.ts';
import { isCallAllowed } from '../domain/settlement/payout.ts';
import {
  isBeforeCollection,
  isTerminal,
  type Settlement,
  type SettlementStatus,
  settlementTime,
} from '../domain/settlement/state.ts';
import { attemptTime } from './attempt.ts';
import { certified } from './certificate.ts';
import type { ActivityDeps } from './deps.ts';
import { hasCollectionPlan } from './providers/collection.ts';
import { internalFunding } from './providers/internal.ts';
import { isScreeningHit } from './providers/screening.ts';

/** `nowMs` is the workflow's time when it calls the activity, in epoch milliseconds. */
export type SettlementActivityInput = { readonly settlementId: string; readonly orgId: string; readonly nowMs: number };

/** The state after an activity. */
export type SettlementState = {
  readonly status: SettlementStatus;
  /** Until the current wait ends, from this attempt on; null when the state has no time limit. */
  readonly waitMs: number | null;
  /** When that wait ends, on the workflow's clock, in epoch milliseconds. A worker of an earlier version gives none. */
  readonly waitEndMs?: number | null;
  readonly paymentMethod: Settlement['paymentMethod'];
  readonly failureCode: string | null;
  /** When that wait ends, on the settlement's own clock. */
  readonly until: string | null;
  readonly recipientId: string;
};

export function settlementActivities(deps: ActivityDeps) {
  const review = (name: Transaction) => async (input: SettlementActivityInput) =>
    stateOf(await step(deps, name, input, { type: 'review' }));
  return {
    /** Does what is due when a run starts: usually accepted → rejected, compliance_hold or awaiting_funds. */
    admitSettlement: review('settlement.admit'),

    /** Does what is due after a signal, or when a wait is over. */
    reviewSettlement: review('settlement.review'),

    /**
     * awaiting_funds or funded → paying_out or failed, once the committed evidence covers the amount. If the rail
     * answers at once, further to settled or failed.
     */
    sendPayout: async (input: SettlementActivityInput): Promise<SettlementState> => {
      const begun = await step(deps, 'settlement.begin_payout', input, { type: 'begin_payout' });
      if (!begun.isCallAllowed || !begun.payee) return stateOf(begun);
      const answer = await callRail(deps, begun.settlement, begun.payee);
      return stateOf(await step(deps, 'settlement.record_payout', input, { type: 'rail_answered', answer }));
    },

    /** accepted, compliance_hold, awaiting_funds → canceled. In any other state nothing changes. */
    cancelOnRequest: async (input: SettlementActivityInput): Promise<Pick<SettlementState, 'status'>> => {
      const { status } = await cancelSettlementOnRequest(
        deps,
        input.orgId,
        input.settlementId,
        attemptTime(input.nowMs),
      );
      return { status };
    },

    /**
     * needs_review → settled or failed, as operators have agreed, or as the rail's own evidence says: a review for an
     * operator who waits for it.
     *
     * @throws DomainError `state_conflict` while nothing is agreed
     */
    resolveReview: async (input: SettlementActivityInput): Promise<SettlementState> => {
      const state = stateOf(await step(deps, 'settlement.resolve_review', input, { type: 'review' }));
      if (state.status === 'needs_review')
        throw stateConflict(state.status, 'No outcome is agreed. See `ops resolve`.');
      return state;
    },
  };
}

/** Reports what is the rail's fault: the steps around the call can fail too, as when the database is down. */
async function callRail({ payoutRail, observer }: ActivityDeps, settlement: Settlement, payee: Payee) {
  try {
    return await payoutRail.send(settlement, payee);
  } catch (error) {
    observer?.payoutCallFailed();
    throw error;
  }
}

type Stepped = {
  readonly settlement: Settlement;
  readonly now: Date;
  readonly isCallAllowed: boolean;
  /** Undefined where nothing is to be paid. */
  readonly payee?: Payee | undefined;
};

/** One transaction: lock, read the facts, decide, write. @throws DomainError `not_found` */
async function step(
  deps: ActivityDeps,
  name: Transaction,
  input: SettlementActivityInput,
  happening: HappeningOf<'review' | 'begin_payout' | 'rail_answered'>,
): Promise<Stepped> {
  return await commit(deps, name, async (tx) => {
    const locked = await lockForDecision(tx, input.orgId, input.settlementId);
    const { settlement } = locked;
    const now = settlementTime(settlement, attemptTime(input.nowMs));
    if (isTerminal(settlement.status) && happening.type !== 'rail_answered')
      return { settlement, now, isCallAllowed: false };
    const { payee, facts } = await readFacts(deps, tx, locked);
    // Dated by this process, because an activity can wait a long time for a worker.
    const decision = decide(facts, happening, now, settlementTime(settlement, deps.now()));
    return {
      settlement: await write(deps, tx, decision, settlement.requestId),
      now,
      isCallAllowed: 'after' in decision && isCallAllowed(facts, decision),
      payee,
    };
  });
}

/**
 * The payee of an erased recipient is undefined, and nothing is found out about its name. No payout follows: such a
 * recipient is inactive, which stops a settlement.
 *
 * @throws SealError when the keys do not open the payee: nothing may be decided without it
 */
async function readFacts(
  deps: ActivityDeps,
  tx: Tx,
  { settlement, paymentTokenSealed, dataKeySealed }: LockedSettlement,
): Promise<{ readonly payee: Payee | undefined; readonly facts: StepFacts }> {
  const dataKey = openDataKey(deps.sealer, { recipientId: settlement.recipientId, dataKeySealed });
  const payee = dataKey && openPayee(dataKey, settlement);
  const digest = dataKey && payee ? nameDigest(dataKey, payee.name) : null;
  const { gateEvidence, aboutPayee, recipient, ...known } = await readSurroundings(tx, deps.sealer, settlement, digest);
  const gates = forbiddingGatesOfSettlement(settlement, gateEvidence, { runtime: deps.runtime, now: deps.now() });
  const isInReview = settlement.status === 'needs_review';
  const facts = {
    settlement,
    ...known,
    recipient,
    isScreeningHit: payee !== undefined && isScreeningHit(payee.name),
    verification: payee && decisionAboutPayee(payee.name, recipient, aboutPayee),
    isGateClosed: gates.length > 0,
    // Later steps do not need the payer's token, so a missing key does not fail them.
    isSimulated: isBeforeCollection(settlement.status) && hasCollectionPlan(deps, settlement, paymentTokenSealed),
    internalFunding: settlement.paymentMethod === 'internal' ? internalFunding(settlement) : undefined,
    resolution: isInReview ? agreedResolution(await findReviewRequest(tx, settlement.settlementId)) : undefined,
  };
  return { payee, facts };
}

/** What reaches settled is written with its certificate (contract §7). */
const write = async (deps: ActivityDeps, tx: Tx, decision: Decision, requestId: string): Promise<Settlement> =>
  await writeDecision(tx, 'refusal' in decision ? decision : await certified(tx, deps.certifier, decision), requestId);

const stateOf = ({ settlement, now }: Pick<Stepped, 'settlement' | 'now'>): SettlementState => ({
  status: settlement.status,
  waitMs: settlement.expiresAt === null ? null : Math.max(0, settlement.expiresAt.getTime() - now.getTime()),
  waitEndMs: settlement.expiresAt === null ? null : settlement.expiresAt.getTime() - settlement.clockOffsetMs,
  paymentMethod: settlement.paymentMethod,
  failureCode: settlement.failure?.code ?? null,
  until: settlement.expiresAt?.toISOString() ?? null,
  recipientId: settlement.recipientId,
});
