/** Deliveries by hand, under the same lock and rules as the partner's own redelivery. */
import { insertAuditEntry } from '../db/queries/audit.ts';
import { findDeliveryOwner } from '../db/queries/operator.ts';
import { lockWebhook } from '../db/queries/webhook.ts';
import { getDelivery, redeliver } from '../db/queries/webhook-delivery.ts';
import { DomainError } from '../domain/error.ts';
import { newRequestId, type OpsDeps, readAct, readArgs } from './command.ts';

/**
 * `retry-delivery`: a pending delivery makes its next attempt now; a finished one is made again, the same bytes under
 * the same id.
 *
 * @throws DomainError `not_found`, for a deleted subscription's as well
 */
export async function retryDelivery(deps: OpsDeps, args: readonly string[]): Promise<void> {
  const { objectId: deliveryId, operator, note } = readAct('delivery', readArgs(args, ['operator', 'note'], 1));
  const at = deps.now();
  await deps.db.transaction(async (tx) => {
    const owner = await findDeliveryOwner(tx, deliveryId);
    if (!owner) throw new DomainError('not_found');
    const webhook = await lockWebhook(tx, owner.orgId, owner.webhookId);
    await redeliver(tx, await getDelivery(tx, webhook.webhookId, deliveryId), { at, requestId: newRequestId() });
    await insertAuditEntry(tx, owner.orgId, { objectId: deliveryId, action: 'delivery_retry', operator, note, at });
  });
  deps.print(`${deliveryId} will be attempted again.`);
}
