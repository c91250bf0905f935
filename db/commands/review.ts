/**
 * The review of a payout whose outcome is unknown (contract §6). Operators agree in PostgreSQL; the settlement's run
 * reviews it then, and carries out what they agreed on. Access to Temporal alone decides nothing.
 */
import { stateConflict } from '../../domain/error.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { isValidAt, type Resolution, type ReviewRequest, requestAfter } from '../../domain/review.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import { enqueue } from '../queries/outbox.ts';
import { findReviewRequest, storeReviewRequest } from '../queries/review.ts';
import { lockOperatedSettlement } from '../queries/settlement.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

/**
 * Records that an operator requests an outcome, with an audit entry. Once it is agreed, the settlement's run is woken:
 * evidence, of another kind, was recorded.
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
    const settlement = await lockOperatedSettlement(tx, deps, settlementId);
    const { orgId, status } = settlement;
    if (status !== 'needs_review') throw stateConflict(status, `The settlement is not in review: it is ${status}.`);
    const stored = await findReviewRequest(tx, settlementId);
    const earlier = stored && isValidAt(stored, at) ? stored : undefined;
    const request = requestAfter(earlier, { outcome, operator, at }, deps.runtime);
    if (request === earlier) return { request, earlier };
    await storeReviewRequest(tx, settlementId, request);
    if (request.agreedAt !== null)
      await enqueue(tx, settlementMessage(settlement, 'evidenceRecorded', settlement.requestId));
    const entry =
      request.agreedAt === null
        ? ({ action: 'review_request', note: `${outcome}: ${note}` } as const)
        : ({ action: `resolve_review_${outcome}`, note } as const);
    await insertAuditEntry(tx, orgId, { objectId: settlementId, ...entry, operator, at });
    return { request, earlier };
  });
}
