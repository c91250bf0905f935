/** Delivering an event again (contract §11): for the subscription's owner, and for an operator. */
import { DomainError } from '../../domain/error.ts';
import type { Attempts, Delivery } from '../../domain/webhook.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import type { Answer } from '../queries/idempotency-key.ts';
import { findDeliveryOwner } from '../queries/operator/waiting.ts';
import { lockWebhook } from '../queries/webhook.ts';
import {
  beginGeneration,
  lockDelivery,
  type ReplaySelection,
  replayDeliveries,
  requestNextAttempt,
} from '../queries/webhook-delivery.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';
import { type Creation, type CreationDeps, commitCreation } from './creation.ts';

type DeliveryKey = { readonly webhookId: string; readonly deliveryId: string };

/**
 * Delivers an event again: the same bytes under the same id, even to a disabled subscription. A pending delivery makes
 * its next attempt now; a finished one begins a new generation. If an attempt of a pending one is under way and fails,
 * the next one follows at once, also after the last one.
 *
 * @throws DomainError `idempotency_key_reused`; `not_found`, for another organization's and for a deleted
 *   subscription's
 *   delivery as well
 */
export async function redeliver(
  deps: CreationDeps,
  orgId: string,
  { requestId, ...key }: DeliveryKey & { readonly requestId: string },
  creation: Creation<{ readonly delivery: Delivery; readonly attempts: Attempts }>,
): Promise<Answer> {
  return await commitCreation(deps, { ...creation, name: 'delivery.redeliver' }, async (tx) => {
    const delivery = await redeliverLocked(tx, orgId, key, requestId);
    // The answer is stored with its key, so it holds no attempts.
    return { id: delivery.deliveryId, created: { delivery, attempts: { count: delivery.attemptCount, last: [] } } };
  });
}

/**
 * Sends again what a subscription missed: the oldest deliveries that match, even to a disabled subscription.
 *
 * @throws DomainError `idempotency_key_reused`; `not_found`, for a deleted subscription as well
 */
export async function replayWebhook(
  deps: CreationDeps,
  orgId: string,
  { webhookId, selection, requestId }: Replay,
  creation: Creation<{ readonly replayId: string; readonly deliveries: number }>,
): Promise<Answer> {
  return await commitCreation(deps, { ...creation, name: 'webhook.replay' }, async (tx) => {
    const webhook = await lockWebhook(tx, orgId, webhookId);
    const deliveries = await replayDeliveries(tx, webhook, selection, requestId);
    const replayId = newId();
    return { id: replayId, created: { replayId, deliveries } };
  });
}

type Replay = { readonly webhookId: string; readonly selection: ReplaySelection; readonly requestId: string };

/** As `redeliver`, for an operator, who knows only the delivery's id; with an audit entry. */
export async function redeliverAsOperator(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  deliveryId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<void> {
  const at = deps.now();
  await commit(deps, 'delivery.redeliver_as_operator', async (tx) => {
    const owner = await findDeliveryOwner(tx, deliveryId);
    if (!owner) throw new DomainError('not_found');
    const { orgId, webhookId } = owner;
    await redeliverLocked(tx, orgId, { webhookId, deliveryId }, requestId);
    await insertAuditEntry(tx, orgId, { objectId: deliveryId, action: 'delivery_retry', operator, note, at });
  });
}

async function redeliverLocked(tx: Tx, orgId: string, key: DeliveryKey, requestId: string): Promise<Delivery> {
  await lockWebhook(tx, orgId, key.webhookId);
  const delivery = await lockDelivery(tx, orgId, key);
  return delivery.status === 'pending'
    ? await requestNextAttempt(tx, delivery)
    : await beginGeneration(tx, delivery, requestId);
}
