/**
 * Subscriptions to events (contract §11). Every change of one, or of its deliveries, locks its row first. A secret is
 * returned once, when it is made; only its sealed text is stored.
 */
import { randomBytes } from 'node:crypto';
import { DomainError, stateConflict } from '../../domain/error.ts';
import { requireRoom } from '../../domain/quota.ts';
import type { ExampleType } from '../../domain/resource/event-example.ts';
import { webhookResource } from '../../domain/resource/webhook.ts';
import { environmentName } from '../../domain/runtime.ts';
import { type Delivery, EARLIER_SECRETS_MAX, ROTATION_OVERLAP_MS, type Webhook } from '../../domain/webhook.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import { recordEvent } from '../queries/event.ts';
import type { Answer } from '../queries/idempotency-key.ts';
import { findWebhookObject } from '../queries/operator/webhook.ts';
import { getOrganization, lockOrganization } from '../queries/organization.ts';
import {
  countEarlierSecrets,
  countWebhooks,
  disableWebhook,
  insertWebhook,
  lockWebhook,
  replaceWebhookSecret,
  requireNotStopped,
  setWebhookDeleted,
  updateWebhook,
  type WebhookChange,
  type WebhookDraft,
  webhookSecretBinding,
} from '../queries/webhook.ts';
import { getDeliveryOfEvent } from '../queries/webhook-delivery.ts';
import { wakeSubscriptions } from '../queries/webhook-retry.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';
import { type Creation, commitCreation } from './creation.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'now'>;
type SealingDeps = Deps & Pick<CommandDeps, 'sealer'>;
type OperatorDeps = Deps & Pick<CommandDeps, 'runtime'>;

const SECRET_BYTES = 32;

/**
 * Creates an enabled subscription. The organization's lock orders two that ask for the last place: one is refused.
 *
 * @throws DomainError `quota_exceeded` when the organization has as many as it may have; `idempotency_key_reused`
 */
export async function createWebhook(
  deps: SealingDeps,
  orgId: string,
  draft: WebhookDraft,
  creation: Creation<{ readonly webhook: Webhook; readonly secret: Buffer }>,
): Promise<Answer> {
  const secret = randomBytes(SECRET_BYTES);
  const at = deps.now();
  return await commitCreation(deps, { ...creation, name: 'webhook.create', hasSecret: true }, async (tx) => {
    const organization = await lockOrganization(tx, orgId);
    requireRoom(organization, 'webhooks', await countWebhooks(tx, orgId));
    const webhookId = newId();
    const sealed = deps.sealer.seal(secret, webhookSecretBinding(webhookId));
    const webhook = await insertWebhook(tx, orgId, { ...draft, webhookId, at }, sealed);
    return { id: webhookId, created: { webhook, secret } };
  });
}

/**
 * Changes the fields that are present; `status` disables and enables. Disabling skips the pending deliveries, however
 * many: they are shown as skipped at once, and its workflow changes their rows. Its running replay ends.
 *
 * @throws DomainError `not_found`; `state_conflict` for enabling what an operator has disabled
 */
export async function changeWebhook(
  deps: Deps,
  orgId: string,
  webhookId: string,
  change: WebhookChange,
  requestId: string,
): Promise<Webhook> {
  return await commit(deps, 'webhook.change', async (tx) => {
    const webhook = await lockWebhook(tx, orgId, webhookId);
    if (change.status === 'enabled') requireNotStopped(webhook);
    const changed = await updateWebhook(tx, webhook, change, deps.now());
    if (webhook.status === 'enabled' && changed.status === 'disabled')
      await wakeSubscriptions(tx, [{ webhook, requestId }]);
    return changed;
  });
}

/**
 * Disables a subscription for an operator, who alone enables it again. What is under way ends; what is pending and its
 * running replay are ended, and its owner can send nothing to it meanwhile.
 *
 * @returns the subscription as it was
 * @throws DomainError `not_found`; `state_conflict` when an operator has disabled it before
 */
export async function disableWebhookAsOperator(
  deps: OperatorDeps,
  webhookId: string,
  { requestId, ...act }: OperatorAct,
): Promise<Webhook> {
  const at = deps.now();
  return await commit(deps, 'webhook.disable_as_operator', async (tx) => {
    const webhook = await lockOperated(tx, deps, webhookId);
    if (webhook.disabledReason === 'operator') throw stateConflict('disabled', 'An operator has disabled it before.');
    await disableWebhook(tx, webhook, 'operator', at);
    await wakeSubscriptions(tx, [{ webhook, requestId }]);
    await insertAuditEntry(tx, webhook.orgId, { objectId: webhookId, action: 'webhook_disable', ...act, at });
    return webhook;
  });
}

/**
 * Enables a subscription that an operator has disabled, also one that was disabled before that. Events of the time
 * between stay skipped until they are sent again.
 *
 * @throws DomainError `not_found`; `state_conflict` when no operator has disabled it
 */
export async function enableWebhookAsOperator(
  deps: OperatorDeps,
  webhookId: string,
  { requestId: _requestId, ...act }: OperatorAct,
): Promise<Webhook> {
  const at = deps.now();
  return await commit(deps, 'webhook.enable_as_operator', async (tx) => {
    const webhook = await lockOperated(tx, deps, webhookId);
    if (webhook.disabledReason !== 'operator')
      throw stateConflict(
        webhook.status,
        `No operator has disabled it: it is ${webhook.status}. Its owner enables and disables it.`,
      );
    const enabled = await updateWebhook(tx, webhook, { status: 'enabled' }, at);
    await insertAuditEntry(tx, webhook.orgId, { objectId: webhookId, action: 'webhook_enable', ...act, at });
    return enabled;
  });
}

/** Locks a subscription for an operator, who knows its id alone. One of another environment is not found. */
async function lockOperated(tx: Tx, { runtime }: Pick<CommandDeps, 'runtime'>, webhookId: string): Promise<Webhook> {
  const found = await findWebhookObject(tx, webhookId);
  const owner = found && (await getOrganization(tx, found.orgId));
  if (owner?.environment !== environmentName(runtime))
    throw new DomainError('not_found', {}, 'There is no such subscription.');
  return await lockWebhook(tx, owner.orgId, webhookId);
}

/**
 * Deletes a subscription: it is no longer found, its secrets are erased, and its pending deliveries and its running
 * replay are canceled.
 *
 * @throws DomainError `not_found`
 */
export async function deleteWebhook(deps: Deps, orgId: string, webhookId: string, requestId: string): Promise<void> {
  await commit(deps, 'webhook.delete', async (tx) => {
    const webhook = await lockWebhook(tx, orgId, webhookId);
    await setWebhookDeleted(tx, webhook, deps.now());
    await wakeSubscriptions(tx, [{ webhook, requestId }]);
  });
}

/** A new secret, and until when the previous one signs. */
export type RotatedSecret = {
  readonly webhook: Webhook;
  readonly secret: Buffer;
  readonly previousSecretExpiresAt: Date;
};

/**
 * Gives a subscription a new secret. Each earlier one signs for a day from its own rotation.
 *
 * @throws DomainError `not_found`; `state_conflict` while as many earlier secrets sign as may; `idempotency_key_reused`
 */
export async function rotateWebhookSecret(
  deps: SealingDeps,
  orgId: string,
  webhookId: string,
  creation: Creation<RotatedSecret>,
): Promise<Answer> {
  const secret = randomBytes(SECRET_BYTES);
  const at = deps.now();
  const expiresAt = new Date(at.getTime() + ROTATION_OVERLAP_MS);
  return await commitCreation(deps, { ...creation, name: 'webhook.rotate_secret', hasSecret: true }, async (tx) => {
    const webhook = await lockWebhook(tx, orgId, webhookId);
    if ((await countEarlierSecrets(tx, webhook, at)) >= EARLIER_SECRETS_MAX) throw secretLimitReached();
    const sealed = deps.sealer.seal(secret, webhookSecretBinding(webhookId));
    const rotated = await replaceWebhookSecret(tx, webhook, sealed, { at, secretId: newId(), expiresAt });
    return { id: webhookId, created: { webhook: rotated, secret, previousSecretExpiresAt: expiresAt } };
  });
}

const secretLimitReached = (): DomainError =>
  stateConflict(
    'secret_limit_reached',
    `${EARLIER_SECRETS_MAX} earlier secrets of this subscription still sign. Each ends 24 hours after its rotation.`,
  );

/** What a test sends: `webhook.ping`, which shows the subscription, or an example of another type. */
export type TestEvent =
  | { readonly type: 'webhook.ping' }
  | { readonly type: ExampleType; readonly data: Readonly<Record<string, unknown>> };

/**
 * Sends a test event to this subscription alone, whichever types it is subscribed to, and even while it is disabled.
 *
 * @returns its delivery
 * @throws DomainError `not_found`; `state_conflict` when an operator has disabled it
 */
export async function sendTestEvent(
  deps: Deps,
  orgId: string,
  webhookId: string,
  test: TestEvent,
  requestId: string,
): Promise<Delivery> {
  return await commit(deps, 'webhook.test', async (tx) => {
    const webhook = await lockWebhook(tx, orgId, webhookId);
    requireNotStopped(webhook);
    const eventId = await recordEvent(tx, {
      orgId,
      objectType: 'webhook',
      objectId: webhookId,
      type: test.type,
      data: test.type === 'webhook.ping' ? webhookResource(webhook) : test.data,
      test: true,
      at: deps.now(),
      requestId,
    });
    return await getDeliveryOfEvent(tx, webhookId, eventId);
  });
}
