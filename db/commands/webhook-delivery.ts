/** Delivering an event again (contract §11): for the subscription's owner, and for an operator. */
import { DomainError, stateConflict } from '../../domain/error.ts';
import {
  type Attempts,
  type Delivery,
  type DeliveryStatus,
  REDELIVERIES_MAX,
  redeliverableAt,
} from '../../domain/webhook.ts';
import type { Tx } from '../client.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import type { Answer } from '../queries/idempotency-key.ts';
import { findDeliveryOwner } from '../queries/operator/waiting.ts';
import { lockWebhook, requireNotStopped } from '../queries/webhook.ts';
import { lockDelivery, sendAgain } from '../queries/webhook-delivery.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';
import { type Creation, type CreationDeps, commitCreation } from './creation.ts';

type DeliveryKey = { readonly webhookId: string; readonly deliveryId: string };

/**
 * Delivers an event again: the same bytes under the same id, even to a disabled subscription. A pending delivery makes
 * its next attempt now; a finished one begins a new generation. If an attempt of a pending one is under way and fails,
 * the next one follows at once, also after the last one.
 *
 * @throws DomainError `idempotency_key_reused`; `not_found`, for another organization's and for a deleted
 *   subscription's delivery as well; `quota_exceeded` when it has begun as many generations today as it may;
 *   `state_conflict` when an operator has disabled the subscription
 */
export async function redeliver(
  deps: CreationDeps,
  orgId: string,
  { requestId, ...key }: DeliveryKey & { readonly requestId: string },
  creation: Creation<{ readonly delivery: Delivery; readonly attempts: Attempts }>,
): Promise<Answer> {
  return await commitCreation(deps, { ...creation, name: 'delivery.redeliver' }, async (tx) => {
    const delivery = await redeliverLocked(tx, orgId, key, { requestId, at: deps.now() });
    // The answer is stored with its key, so it holds no attempts.
    return { id: delivery.deliveryId, created: { delivery, attempts: { count: delivery.attemptCount, last: [] } } };
  });
}

/**
 * As `redeliver`, for an operator, who knows only the delivery's id; without the quota, and with an audit entry.
 *
 * @param listedAs the status that it was listed with: in another one it is left as it is
 * @throws DomainError `not_found`; `state_conflict` when its status is another one by now
 */
export async function redeliverAsOperator(
  deps: CommitDeps & Pick<CommandDeps, 'now' | 'runtime'>,
  deliveryId: string,
  { operator, note, requestId }: OperatorAct,
  listedAs?: DeliveryStatus,
): Promise<void> {
  const at = deps.now();
  await commit(deps, 'delivery.redeliver_as_operator', async (tx) => {
    const owner = await findDeliveryOwner(tx, deps, deliveryId);
    if (!owner) throw new DomainError('not_found');
    if (owner.isDeleted) throw new DomainError('not_found', {}, `Its subscription ${owner.webhookId} was deleted.`);
    await redeliverLocked(tx, owner.orgId, { webhookId: owner.webhookId, deliveryId }, { requestId, listedAs });
    await insertAuditEntry(tx, owner.orgId, { objectId: deliveryId, action: 'delivery_retry', operator, note, at });
  });
}

type RedeliveryOptions = {
  readonly requestId: string;
  /** When the owner asks. Absent for an operator, who has no quota and may send to what an operator has disabled. */
  readonly at?: Date;
  readonly listedAs?: DeliveryStatus | undefined;
};

async function redeliverLocked(
  tx: Tx,
  orgId: string,
  key: DeliveryKey,
  { requestId, at, listedAs }: RedeliveryOptions,
): Promise<Delivery> {
  const webhook = await lockWebhook(tx, orgId, key.webhookId);
  const delivery = await lockDelivery(tx, orgId, key);
  if (at) requireNotStopped(webhook);
  const { status } = delivery;
  if (listedAs !== undefined && status !== listedAs) throw stateConflict(status, `it is ${status} by now.`);
  // A pending delivery begins another generation only if its attempt that is under way was the last one, and fails.
  if (at && !(status === 'pending' && delivery.claimedAt === null)) requireQuota(delivery, at);
  return await sendAgain(tx, delivery, requestId);
}

function requireQuota(delivery: Delivery, at: Date): void {
  const retryAt = redeliverableAt(delivery, at);
  if (retryAt) throw new DomainError('quota_exceeded', { quota: 'redeliveries_per_day' }, QUOTA_TEXT, retryAt);
}

const QUOTA_TEXT =
  `A delivery is redelivered at most ${REDELIVERIES_MAX} times in 24 hours. ` +
  'Wait for the time in the Retry-After header.';
