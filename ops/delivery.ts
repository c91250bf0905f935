/** Webhook deliveries, under the same lock and rules as the partner's own redelivery. */
import { insertAuditEntry } from '../db/queries/audit.ts';
import { findDeliveryOwner } from '../db/queries/operator.ts';
import { lockWebhook } from '../db/queries/webhook.ts';
import { getDelivery, redeliver } from '../db/queries/webhook-delivery.ts';
import { DomainError } from '../domain/error.ts';
import { command, EXIT } from '../process/command-line.ts';
import { required, text, type ValuesOf } from '../process/command-parameter.ts';
import { ACT, newRequestId, type OpsCommand, type OpsDeps } from './command.ts';

const DELIVERY_ACT = { deliveryId: required('<delivery-id>', 'the delivery', text), ...ACT };

export const deliveryCommands: readonly OpsCommand[] = [
  command({
    name: 'retry-delivery',
    description: 'Attempts a pending delivery now, and sends a finished one again: the same bytes under the same id.',
    takes: DELIVERY_ACT,
    run: async (deps: OpsDeps, act) => {
      await retryDelivery(deps, act);
      deps.print(`${act.deliveryId} will be attempted again.`);
      deps.printData({ delivery_id: act.deliveryId });
      return EXIT.done;
    },
  }),
];

/** @throws DomainError `not_found`, for a delivery of a deleted subscription as well */
async function retryDelivery(
  deps: OpsDeps,
  { deliveryId, operator, note }: ValuesOf<typeof DELIVERY_ACT>,
): Promise<void> {
  const at = deps.now();
  await deps.db.transaction(async (tx) => {
    const owner = await findDeliveryOwner(tx, deliveryId);
    if (!owner) throw new DomainError('not_found');
    const webhook = await lockWebhook(tx, owner.orgId, owner.webhookId);
    await redeliver(tx, await getDelivery(tx, webhook.webhookId, deliveryId), { at, requestId: newRequestId() });
    await insertAuditEntry(tx, owner.orgId, { objectId: deliveryId, action: 'delivery_retry', operator, note, at });
  });
}
