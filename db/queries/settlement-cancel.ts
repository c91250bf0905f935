/**
 * Cancellation (contract §6): against evidence that comes at the same moment, whichever commits first decides. Both
 * take the settlement's row lock, so whoever gets it second sees what the first one committed.
 */
import { DomainError } from '../../domain/error.ts';
import { foldFunding } from '../../domain/evidence.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { CANCELABLE_STATUSES, type Settlement, settlementTime } from '../../domain/settlement.ts';
import type { Tx } from '../client.ts';
import { foldCollections, listPendingEvidence, receiveLeftovers } from './evidence.ts';
import { enqueue } from './outbox.ts';
import { lockSettlement, moveSettlement } from './settlement.ts';

/**
 * Cancels a settlement and rings its workflow. Money that came in part is booked as due back.
 *
 * @throws DomainError `not_found`; `state_conflict` past awaiting_funds, or when committed evidence has decided already
 */
export async function cancelSettlement(
  tx: Tx,
  orgId: string,
  settlementId: string,
  now: Date,
  requestId: string,
  reason: 'canceled_by_partner' | 'canceled_by_operator' = 'canceled_by_partner',
): Promise<Settlement> {
  const settlement = await lockSettlement(tx, orgId, settlementId);
  if (!settlement) throw new DomainError('not_found');
  const decided = foldFunding(settlement, await listPendingEvidence(tx, settlementId)).outcome;
  if (decided || !CANCELABLE_STATUSES.includes(settlement.status))
    throw new DomainError('state_conflict', { current_state: settlement.status });
  const at = settlementTime(settlement, now);
  const { settlement: received } = await foldCollections(tx, settlement, at);
  const canceled = await moveSettlement(tx, received, { to: 'canceled', at, reason, requestId });
  await receiveLeftovers(tx, canceled, at);
  await enqueue(tx, settlementMessage(canceled, 'canceled', requestId));
  return canceled;
}
