/**
 * Subscriptions. Whatever changes one, or a delivery of its, runs under its row's lock. Secrets are sealed on their way
 * in and leave only as sealed text, for the signer; a deleted subscription has none and is found by nobody.
 */
import { and, count, desc, eq, isNull } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import { type DisabledReason, ROTATION_OVERLAP_MS, SUBSCRIPTIONS_MAX, type Webhook } from '../../domain/webhook.ts';
import type { Database, Queryable, Tx } from '../client.ts';
import { newId } from '../id.ts';
import { webhooks } from '../schema/webhook.ts';
import type { Sealer } from '../seal.ts';
import { lockOrganization } from './organization.ts';
import { endPendingDeliveries } from './webhook-delivery.ts';

type WebhookRow = typeof webhooks.$inferSelect;
export type WebhookDraft = Pick<Webhook, 'url' | 'eventTypes' | 'description'>;
/** What a partner may change; `status` disables and enables. */
export type WebhookChange = Partial<WebhookDraft & Pick<Webhook, 'status'>>;
/** What a change is stamped with. */
export type Occasion = { readonly at: Date; readonly requestId: string };

/** A subscription as the sender needs it: a deleted one too, and its sealed secrets, the current one first. */
export type Subscription = {
  readonly webhook: Webhook;
  readonly deleted: boolean;
  readonly secretsSealed: readonly string[];
};

/** What a sealed secret is bound to; it opens for no other subscription. */
export const webhookSecretBinding = (webhookId: string): string => `webhook.secret:${webhookId}`;

const owned = (orgId: string, webhookId: string) => and(eq(webhooks.orgId, orgId), eq(webhooks.webhookId, webhookId));
const present = (orgId: string, webhookId: string) => and(owned(orgId, webhookId), isNull(webhooks.deletedAt));

function toWebhook(row: WebhookRow): Webhook {
  const { webhookId, orgId, url, eventTypes, description, status, disabledReason, failingSince, createdAt, updatedAt } =
    row;
  return { webhookId, orgId, url, eventTypes, description, status, disabledReason, failingSince, createdAt, updatedAt };
}

/**
 * Writes a new, enabled subscription under the organization's lock, so that of two that race for the last place one is refused.
 *
 * @throws DomainError `state_conflict` when the organization has as many as it may
 */
export async function insertWebhook(
  tx: Tx,
  orgId: string,
  draft: WebhookDraft,
  options: { sealer: Sealer; secret: Buffer; at: Date },
): Promise<Webhook> {
  await lockOrganization(tx, orgId);
  const [existing] = await tx
    .select({ count: count() })
    .from(webhooks)
    .where(and(eq(webhooks.orgId, orgId), isNull(webhooks.deletedAt)));
  if ((existing?.count ?? 0) >= SUBSCRIPTIONS_MAX) {
    const detail = `An organization has at most ${SUBSCRIPTIONS_MAX} subscriptions. Delete one, or widen the event types of another.`;
    throw new DomainError('state_conflict', { current_state: 'subscription_limit_reached' }, detail);
  }
  const webhookId = newId();
  const webhook: Webhook = {
    ...draft,
    webhookId,
    orgId,
    status: 'enabled',
    disabledReason: null,
    failingSince: null,
    createdAt: options.at,
    updatedAt: options.at,
  };
  const secretSealed = options.sealer.seal(options.secret, webhookSecretBinding(webhookId));
  await tx.insert(webhooks).values({ ...webhook, eventTypes: [...webhook.eventTypes], secretSealed });
  return webhook;
}

/** @throws DomainError `not_found`, for another organization's and for a deleted one as well */
export async function getWebhook(db: Queryable, orgId: string, webhookId: string): Promise<Webhook> {
  const [row] = await db.select().from(webhooks).where(present(orgId, webhookId)).limit(1);
  if (!row) throw new DomainError('not_found');
  return toWebhook(row);
}

/** As `getWebhook`; until the transaction ends the subscription and its deliveries are the caller's to change. */
export async function lockWebhook(tx: Tx, orgId: string, webhookId: string): Promise<Webhook> {
  const [row] = await tx.select().from(webhooks).where(present(orgId, webhookId)).for('no key update');
  if (!row) throw new DomainError('not_found');
  return toWebhook(row);
}

/**
 * As `lockWebhook`, for sending.
 *
 * @param at decides whether the previous secret still signs
 */
export async function lockSubscription(tx: Tx, orgId: string, webhookId: string, at: Date): Promise<Subscription> {
  const [row] = await tx.select().from(webhooks).where(owned(orgId, webhookId)).for('no key update');
  if (!row) throw new DomainError('not_found');
  const previousSigns = row.previousSecretExpiresAt !== null && row.previousSecretExpiresAt > at;
  const sealed = [row.secretSealed, previousSigns ? row.previousSecretSealed : null];
  return {
    webhook: toWebhook(row),
    deleted: row.deletedAt !== null,
    secretsSealed: sealed.filter((secret) => secret !== null),
  };
}

/** Newest first. */
export async function listWebhooks(db: Database, orgId: string, page: Page): Promise<Paged<Webhook>> {
  const ofOrganization = and(eq(webhooks.orgId, orgId), isNull(webhooks.deletedAt));
  const [rows, [total]] = await Promise.all([
    db
      .select()
      .from(webhooks)
      .where(ofOrganization)
      .orderBy(desc(webhooks.createdAt), desc(webhooks.webhookId))
      .limit(page.limit)
      .offset(page.offset),
    db.select({ count: count() }).from(webhooks).where(ofOrganization),
  ]);
  return { items: rows.map(toWebhook), total: total?.count ?? 0 };
}

/** Changes a subscription that the caller has locked. Enabling forgets why it was disabled and how long it had failed. */
export async function changeWebhook(
  tx: Tx,
  webhook: Webhook,
  change: WebhookChange,
  { at }: Occasion,
): Promise<Webhook> {
  if (Object.keys(change).length === 0) return webhook;
  const { status = webhook.status, eventTypes, ...rest } = change;
  const turned =
    status === webhook.status
      ? {}
      : { status, disabledReason: status === 'disabled' ? ('requested' as const) : null, failingSince: null };
  const [row] = await tx
    .update(webhooks)
    .set({ ...rest, ...(eventTypes === undefined ? {} : { eventTypes: [...eventTypes] }), ...turned, updatedAt: at })
    .where(present(webhook.orgId, webhook.webhookId))
    .returning();
  if (!row) throw new Error(`webhook ${webhook.webhookId} was changed without its lock`);
  if (webhook.status === 'enabled' && status === 'disabled') await endPendingDeliveries(tx, webhook, 'skipped');
  return toWebhook(row);
}

/** Disables a subscription that the caller has locked, for what its endpoint answered; its pending deliveries are skipped. */
export async function disableWebhook(
  tx: Tx,
  webhook: Webhook,
  reason: Exclude<DisabledReason, 'requested'>,
  at: Date,
): Promise<void> {
  await tx
    .update(webhooks)
    .set({ status: 'disabled', disabledReason: reason, updatedAt: at })
    .where(owned(webhook.orgId, webhook.webhookId));
  await endPendingDeliveries(tx, webhook, 'skipped');
}

/** Notes that a subscription that the caller has locked began to fail, or, with null, that it works. */
export async function setFailingSince(tx: Tx, webhook: Webhook, failingSince: Date | null): Promise<void> {
  if (webhook.failingSince?.getTime() === failingSince?.getTime()) return;
  await tx.update(webhooks).set({ failingSince }).where(owned(webhook.orgId, webhook.webhookId));
}

/**
 * Gives a subscription that the caller has locked a new secret. The one before signs as well for a day; one before that no more.
 *
 * @returns the subscription and until when the previous secret signs
 */
export async function rotateWebhookSecret(
  tx: Tx,
  webhook: Webhook,
  options: { sealer: Sealer; secret: Buffer; at: Date },
) {
  const previousSecretExpiresAt = new Date(options.at.getTime() + ROTATION_OVERLAP_MS);
  const secretSealed = options.sealer.seal(options.secret, webhookSecretBinding(webhook.webhookId));
  await tx
    .update(webhooks)
    .set({ secretSealed, previousSecretSealed: webhooks.secretSealed, previousSecretExpiresAt, updatedAt: options.at })
    .where(owned(webhook.orgId, webhook.webhookId));
  return { webhook: { ...webhook, updatedAt: options.at }, previousSecretExpiresAt };
}

/** Deletes a subscription that the caller has locked: nobody finds it any more, its secrets are gone, nothing more is sent. */
export async function deleteWebhook(tx: Tx, webhook: Webhook, { at }: Occasion): Promise<void> {
  await tx
    .update(webhooks)
    .set({
      deletedAt: at,
      updatedAt: at,
      secretSealed: null,
      previousSecretSealed: null,
      previousSecretExpiresAt: null,
    })
    .where(owned(webhook.orgId, webhook.webhookId));
  await endPendingDeliveries(tx, webhook, 'canceled');
}
