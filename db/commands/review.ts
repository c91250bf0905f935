/**
 * The review of a payout whose outcome is unknown (contract §6). Operators agree in PostgreSQL; the settlement's run
 * then carries out what they agreed on. Access to Temporal alone decides nothing.
 */
import { DomainError } from '../../domain/error.ts';
import { isValidAt, type Resolution, type ReviewRequest, requestAfter } from '../../domain/review.ts';
import { changeOf } from '../../domain/settlement/change.ts';
import { type Decision, decide } from '../../domain/settlement/decide.ts';
import { type Settlement, settlementTime } from '../../domain/settlement/state.ts';
import type { Tx } from '../client.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import { findReviewRequest, storeReviewRequest } from '../queries/review.ts';
import { getSettlementOwner, lockSettlement } from '../queries/settlement.ts';
import { readKnownFacts } from '../queries/settlement-facts.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

/**
 * Records that an operator requests an outcome, with an audit entry.
 *
 * @returns the request that is now valid, which may be carried out once `agreedAt` is set, and the one that was valid
 *   before
 * @throws DomainError `not_found`; `state_conflict` when the settlement is not in review
 */
export async function requestResolution(
  deps: CommitDeps & Pick<CommandDeps, 'now' | 'runtime'>,
  settlementId: string,
  { outcome, operator, note }: Resolution & Omit<OperatorAct, 'requestId'>,
): Promise<{ readonly request: ReviewRequest; readonly earlier: ReviewRequest | undefined }> {
  return await commit(deps, 'settlement.request_resolution', async (tx) => {
    const at = deps.now();
    const orgId = await getSettlementOwner(tx, settlementId);
    const { status } = await lockSettlement(tx, orgId, settlementId);
    if (status !== 'needs_review')
      throw new DomainError(
        'state_conflict',
        { current_state: status },
        `The settlement is not in review: it is ${status}.`,
      );
    const stored = await findReviewRequest(tx, settlementId);
    const earlier = stored && isValidAt(stored, at) ? stored : undefined;
    const request = requestAfter(earlier, { outcome, operator, at }, deps.runtime);
    if (request === earlier) return { request, earlier };
    await storeReviewRequest(tx, settlementId, request);
    const entry =
      request.agreedAt === null
        ? ({ action: 'review_request', note: `${outcome}: ${note}` } as const)
        : ({ action: `resolve_review_${outcome}`, note } as const);
    await insertAuditEntry(tx, orgId, { objectId: settlementId, ...entry, operator, at });
    return { request, earlier };
  });
}

/**
 * What follows from the outcome that operators have agreed on; the rail's own evidence, where there is some, decides
 * instead. Nothing follows for a settlement that is not in review.
 *
 * @param now real time; it only dates the change
 * @throws DomainError `state_conflict` while nothing is agreed
 */
export async function decideAgreedReview(
  tx: Tx,
  orgId: string,
  settlementId: string,
  now: Date,
): Promise<{ readonly before: Settlement; readonly decision: Decision }> {
  const before = await lockSettlement(tx, orgId, settlementId);
  const facts = { settlement: before, ...(await readKnownFacts(tx, settlementId)) };
  const at = settlementTime(before, now);
  if (before.status !== 'needs_review') return { before, decision: changeOf(facts, at) };
  const request = await findReviewRequest(tx, settlementId);
  if (!request?.agreedAt)
    throw new DomainError(
      'state_conflict',
      { current_state: before.status },
      'No outcome is agreed. See `ops resolve`.',
    );
  return { before, decision: decide(facts, { type: 'resolve_review', outcome: request.outcome }, at) };
}
