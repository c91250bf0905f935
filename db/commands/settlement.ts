/**
 * What is done to a settlement outside of its workflow (contract §6). Each command locks the settlement's row first, so
 * that it and evidence that arrives at the same moment are ordered: the one that commits first decides.
 */
import { DomainError } from '../../domain/error.ts';
import { foldFunding } from '../../domain/evidence.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { CANCELABLE_STATUSES, isTerminal, type Settlement, settlementTime } from '../../domain/settlement.ts';
import type { Tx } from '../client.ts';
import { insertAuditEntry } from '../queries/audit.ts';
import { foldCollections, listPendingEvidence, receiveLeftovers } from '../queries/evidence.ts';
import { enqueue } from '../queries/outbox.ts';
import { getSettlementOwner, lockSettlement, moveSettlement } from '../queries/settlement.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

/** What an operator does, for the audit entry: who, why, and the request id that events show. */
export type OperatorAct = { readonly operator: string; readonly note: string; readonly requestId: string };

/**
 * Cancels a settlement for its partner and signals its workflow. Money that came in part is booked as due back.
 *
 * @throws DomainError `not_found`; `state_conflict` past awaiting_funds, or when committed evidence has decided already
 */
export async function cancelSettlement(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  orgId: string,
  settlementId: string,
  requestId: string,
): Promise<Settlement> {
  return await commit(deps, async (tx) => {
    const settlement = await lockSettlement(tx, orgId, settlementId);
    return await cancelLocked(tx, settlement, { now: deps.now(), reason: 'canceled_by_partner', requestId });
  });
}

/** As `cancelSettlement`, for an operator, who knows no organization; with an audit entry. */
export async function cancelSettlementAsOperator(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  settlementId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<Settlement> {
  return await commit(deps, async (tx) => {
    const now = deps.now();
    const orgId = await getSettlementOwner(tx, settlementId);
    const settlement = await lockSettlement(tx, orgId, settlementId);
    const canceled = await cancelLocked(tx, settlement, { now, reason: 'canceled_by_operator', requestId });
    const action = 'settlement_cancel';
    await insertAuditEntry(tx, orgId, { objectId: settlementId, action, operator, note, at: now });
    return canceled;
  });
}

async function cancelLocked(
  tx: Tx,
  settlement: Settlement,
  { now, reason, requestId }: { readonly now: Date; readonly reason: string; readonly requestId: string },
): Promise<Settlement> {
  const decided = foldFunding(settlement, await listPendingEvidence(tx, settlement.settlementId)).outcome;
  if (decided || !CANCELABLE_STATUSES.includes(settlement.status))
    throw new DomainError('state_conflict', { current_state: settlement.status });
  const at = settlementTime(settlement, now);
  const { settlement: received } = await foldCollections(tx, settlement, at);
  const canceled = await moveSettlement(tx, received, { to: 'canceled', at, reason, requestId });
  await receiveLeftovers(tx, canceled, at);
  await enqueue(tx, settlementMessage(canceled, 'canceled', requestId));
  return canceled;
}

/**
 * Has a settlement's workflow started where it does not run, and signalled where it does. The workflow reads the
 * database and continues from there, so this may be repeated. Writes an audit entry.
 *
 * @throws DomainError `not_found`; `state_conflict` for a settlement that has ended
 */
export async function redispatchSettlement(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  settlementId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<void> {
  await commit(deps, async (tx) => {
    const orgId = await getSettlementOwner(tx, settlementId);
    const settlement = await lockSettlement(tx, orgId, settlementId);
    if (isTerminal(settlement.status)) {
      const { status } = settlement;
      throw new DomainError('state_conflict', { current_state: status }, `The settlement has ended: it is ${status}.`);
    }
    await enqueue(tx, settlementMessage(settlement, 'redispatched', requestId));
    const action = 'settlement_redispatch';
    await insertAuditEntry(tx, orgId, { objectId: settlementId, action, operator, note, at: deps.now() });
  });
}
