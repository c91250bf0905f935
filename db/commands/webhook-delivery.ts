/** Delivering an event again (contract §11): for the subscription's owner, and for an operator. */
import { DomainError } from '../../domain/error.ts';
import { deliveryMessage } from '../../domain/outbox.ts';
import type { Attempt, Delivery } from '../../domain/webhook.ts';
import type { Tx } from '../client.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import type { Stamp } from '../queries/event.ts';
import { findDeliveryOwner } from '../queries/operator.ts';
import { enqueue } from '../queries/outbox.ts';
import { lockWebhook } from '../queries/webhook.ts';
import { beginGeneration, getDelivery, listAttempts } from '../queries/webhook-delivery.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'now'>;
type DeliveryKey = { readonly webhookId: string; readonly deliveryId: string };

/**
 * Delivers an event again: the same bytes under the same id, even to a disabled subscription. A pending delivery makes
 * its next attempt now; a finished one begins a new generation.
 *
 * @returns the delivery, with all its attempts
 * @throws DomainError `not_found`, for another organization's and for a deleted subscription's delivery as well
 */
export async function redeliver(
  deps: Deps,
  orgId: string,
  key: DeliveryKey,
  requestId: string,
): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] }> {
  return await commit(deps, 'delivery.redeliver', async (tx) => {
    const delivery = await redeliverLocked(tx, orgId, key, { at: deps.now(), requestId });
    const attempts = await listAttempts(tx, [delivery.deliveryId]);
    return { delivery, attempts: attempts.get(delivery.deliveryId) ?? [] };
  });
}

/** As `redeliver`, for an operator, who knows only the delivery's id; with an audit entry. */
export async function redeliverAsOperator(
  deps: Deps,
  deliveryId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<void> {
  const at = deps.now();
  await commit(deps, 'delivery.redeliver_as_operator', async (tx) => {
    const owner = await findDeliveryOwner(tx, deliveryId);
    if (!owner) throw new DomainError('not_found');
    const { orgId, webhookId } = owner;
    await redeliverLocked(tx, orgId, { webhookId, deliveryId }, { at, requestId });
    await insertAuditEntry(tx, orgId, { objectId: deliveryId, action: 'delivery_retry', operator, note, at });
  });
}

async function redeliverLocked(tx: Tx, orgId: string, key: DeliveryKey, stamp: Stamp): Promise<Delivery> {
  await lockWebhook(tx, orgId, key.webhookId);
  const delivery = await getDelivery(tx, orgId, key);
  if (delivery.status === 'pending') {
    await enqueue(tx, deliveryMessage(delivery, 'retryRequested', stamp.requestId));
    return delivery;
  }
  const begun = await beginGeneration(tx, delivery, stamp);
  await enqueue(tx, deliveryMessage(begun, null, stamp.requestId));
  return begun;
}
