/**
 * Subscriptions. Every change of one, or of its deliveries, runs under its row's lock. Secrets are stored sealed, and
 * only the signer opens them. A deleted subscription has no secrets, and only the sender still finds it.
 */
import { and, count, eq, gt, isNull, sql } from 'drizzle-orm';
import { notBefore } from '../../domain/clock.ts';
import { DomainError, stateConflict } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import { type DisabledReason, type FailingSpan, laneKeyOf, type Webhook, WORKING } from '../../domain/webhook.ts';
import type { Database, Queryable, Tx } from '../client.ts';
import { webhookEarlierSecrets, webhooks } from '../schema/webhook.ts';
import { statement } from '../statement.ts';
import { type List, pageOf, readPage } from './page.ts';
import { deleteExpiredRows } from './retention.ts';
import { cancelReplay } from './webhook-replay.ts';

type WebhookRow = typeof webhooks.$inferSelect;
export type WebhookDraft = Pick<Webhook, 'url' | 'eventTypes' | 'description'>;
/** What a partner may change; `status` disables and enables. */
export type WebhookChange = Partial<WebhookDraft & Pick<Webhook, 'status'>>;
/** What a sealed secret is bound to; it opens for no other subscription. */
export const webhookSecretBinding = (webhookId: string): string => `webhook.secret:${webhookId}`;

const owned = (orgId: string, webhookId: string) => and(eq(webhooks.orgId, orgId), eq(webhooks.webhookId, webhookId));
const present = (orgId: string, webhookId: string) => and(owned(orgId, webhookId), isNull(webhooks.deletedAt));

function toWebhook(row: WebhookRow): Webhook {
  const { webhookId, orgId, url, eventTypes, description, createdAt, updatedAt } = row;
  const { status, disabledReason, failingSince, lastFailedAt } = row;
  return {
    ...{ webhookId, orgId, url, eventTypes, description, createdAt, updatedAt },
    ...{ status, disabledReason, failingSince, lastFailedAt },
  };
}

/** How many subscriptions the organization has. */
export async function countWebhooks(db: Queryable, orgId: string): Promise<number> {
  const [existing] = await db
    .select({ count: count() })
    .from(webhooks)
    .where(and(eq(webhooks.orgId, orgId), isNull(webhooks.deletedAt)));
  return existing?.count ?? 0;
}

/** Writes a new, enabled subscription. */
export async function insertWebhook(
  tx: Tx,
  orgId: string,
  { at, ...draft }: WebhookDraft & { readonly webhookId: string; readonly at: Date },
  secretSealed: string,
): Promise<Webhook> {
  const webhook: Webhook = {
    ...draft,
    orgId,
    status: 'enabled',
    disabledReason: null,
    ...WORKING,
    createdAt: at,
    updatedAt: at,
  };
  const laneKey = laneKeyOf(orgId);
  await tx.insert(webhooks).values({ ...webhook, eventTypes: [...webhook.eventTypes], laneKey, secretSealed });
  return webhook;
}

/** @throws DomainError `not_found`, for another organization's and for a deleted one as well */
export async function getWebhook(db: Queryable, orgId: string, webhookId: string): Promise<Webhook> {
  const [row] = await db.select().from(webhooks).where(present(orgId, webhookId)).limit(1);
  if (!row) throw new DomainError('not_found');
  return toWebhook(row);
}

/** As `getWebhook`; locks the row until the transaction ends. */
export async function lockWebhook(tx: Tx, orgId: string, webhookId: string): Promise<Webhook> {
  const [row] = await tx.select().from(webhooks).where(present(orgId, webhookId)).for('no key update');
  if (!row) throw new DomainError('not_found');
  return toWebhook(row);
}

/**
 * As `lockWebhook`, for senders, which also end the deliveries of deleted subscriptions. They are locked in the order
 * of their ids, so that two senders never deadlock. A subscription that a failover has lost is left out: the sender
 * can then still record what it sent to the others.
 */
export async function lockSubscriptions(tx: Tx, webhookIds: readonly string[]): Promise<Webhook[]> {
  const rows = await tx
    .select()
    .from(webhooks)
    .where(sql`${webhooks.webhookId} = ANY (${sql.param([...webhookIds])}::text[])`)
    .orderBy(webhooks.webhookId)
    .for('no key update');
  return rows.map(toWebhook);
}

/**
 * What an operator has disabled gets nothing that its owner asks for: no redelivery, no replay and no test. Otherwise
 * these reach a disabled subscription as well.
 *
 * @throws DomainError `state_conflict`
 */
export function requireNotStopped({ disabledReason }: Pick<Webhook, 'disabledReason'>): void {
  if (disabledReason === 'operator') throw stateConflict('disabled_by_operator', STOPPED);
}

const STOPPED =
  'The operator of the service disabled this subscription, and alone enables it again. Ask the operator why.';

/** Newest first. */
export async function listWebhooks(db: Database, orgId: string, page: Page): Promise<Paged<Webhook>> {
  const list: List<WebhookRow> = {
    table: webhooks,
    where: and(eq(webhooks.orgId, orgId), isNull(webhooks.deletedAt)),
    createdAt: webhooks.createdAt,
    id: webhooks.webhookId,
    cursorOf: ({ createdAt: at, webhookId: id }) => ({ at, id }),
  };
  const paged = await readPage(db, list, page, pageOf(db.select().from(webhooks).$dynamic()));
  return { ...paged, items: paged.items.map(toWebhook) };
}

/** Ends all deliveries that are pending now, however many: their rows are changed later, by its workflow. */
const ONE_MORE_ENDING = sql`${webhooks.endings} + 1`;

/**
 * Changes a locked subscription. Enabling clears why it was disabled. Enabling, disabling and another address clear
 * since when it failed. Disabling ends its pending deliveries and its running replay.
 */
export async function updateWebhook(tx: Tx, webhook: Webhook, change: WebhookChange, at: Date): Promise<Webhook> {
  if (Object.keys(change).length === 0) return webhook;
  const { status = webhook.status, eventTypes, ...rest } = change;
  const disabledReason = status === 'disabled' ? ('requested' as const) : null;
  const ends = status === 'disabled' ? { endings: ONE_MORE_ENDING } : {};
  const turned = status === webhook.status ? {} : { status, disabledReason, ...WORKING, ...ends };
  const moved = rest.url === undefined || rest.url === webhook.url ? {} : WORKING;
  const [row] = await tx
    .update(webhooks)
    .set({
      ...rest,
      ...(eventTypes === undefined ? {} : { eventTypes: [...eventTypes] }),
      ...turned,
      ...moved,
      updatedAt: notBefore(at, webhook.updatedAt),
    })
    .where(present(webhook.orgId, webhook.webhookId))
    .returning();
  if (!row) throw new Error(`webhook ${webhook.webhookId} was changed without its lock`);
  if (webhook.status === 'enabled' && row.status === 'disabled') await cancelReplay(tx, webhook.webhookId);
  return toWebhook(row);
}

/**
 * Disables a locked subscription, not by its owner; its pending deliveries are skipped, and its running replay ends.
 */
export async function disableWebhook(
  tx: Tx,
  webhook: Webhook,
  reason: Exclude<DisabledReason, 'requested'>,
  at: Date,
): Promise<void> {
  await tx
    .update(webhooks)
    .set({
      status: 'disabled',
      disabledReason: reason,
      endings: ONE_MORE_ENDING,
      updatedAt: notBefore(at, webhook.updatedAt),
    })
    .where(owned(webhook.orgId, webhook.webhookId));
  await cancelReplay(tx, webhook.webhookId);
}

type Times = readonly (string | null)[];

const setFailingStatement = statement<[webhookIds: readonly string[], failingSince: Times, lastFailedAt: Times], never>(
  'set_failing_span',
  `UPDATE webhooks w SET failing_since = f.failing_since, last_failed_at = f.last_failed_at
  FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) AS f (webhook_id, failing_since, last_failed_at)
  WHERE w.webhook_id = f.webhook_id`,
);

/** Stores the spans of failures of locked subscriptions. */
export async function setFailingSpans(
  tx: Tx,
  changes: readonly { readonly webhook: Webhook; readonly span: FailingSpan }[],
): Promise<void> {
  if (changes.length === 0) return;
  const ids = changes.map(({ webhook }) => webhook.webhookId);
  const timesOf = (time: keyof FailingSpan) => changes.map(({ span }) => span[time]?.toISOString() ?? null);
  await setFailingStatement(tx, ids, timesOf('failingSince'), timesOf('lastFailedAt'));
}

/** How many earlier secrets of a subscription still sign at this time. */
export async function countEarlierSecrets(db: Queryable, { webhookId }: Webhook, at: Date): Promise<number> {
  const [found] = await db
    .select({ count: count() })
    .from(webhookEarlierSecrets)
    .where(and(eq(webhookEarlierSecrets.webhookId, webhookId), gt(webhookEarlierSecrets.expiresAt, at)));
  return found?.count ?? 0;
}

/** Gives a locked subscription a new secret; the current one becomes an earlier one, which signs until it expires. */
export async function replaceWebhookSecret(
  tx: Tx,
  webhook: Webhook,
  secretSealed: string,
  { at, secretId, expiresAt }: { readonly at: Date; readonly secretId: string; readonly expiresAt: Date },
): Promise<Webhook> {
  const current = owned(webhook.orgId, webhook.webhookId);
  await tx.execute(sql`
    INSERT INTO ${webhookEarlierSecrets} (webhook_id, secret_id, secret_sealed, expires_at)
    SELECT webhook_id, ${secretId}, secret_sealed, ${expiresAt.toISOString()}::timestamptz
    FROM ${webhooks} WHERE ${current}`);
  const updatedAt = notBefore(at, webhook.updatedAt);
  await tx.update(webhooks).set({ secretSealed, updatedAt }).where(current);
  return { ...webhook, updatedAt };
}

/** Deletes earlier secrets that no longer sign, a bounded number of them. @returns how many */
export const deleteExpiredSecrets = (db: Queryable): Promise<number> =>
  deleteExpiredRows(db, webhookEarlierSecrets, sql`${webhookEarlierSecrets.expiresAt} <= now()`);

/** Marks a locked subscription as deleted, which ends its pending deliveries and its replay, and erases its secrets. */
export async function setWebhookDeleted(tx: Tx, webhook: Webhook, at: Date): Promise<void> {
  const deletedAt = notBefore(at, webhook.updatedAt);
  await tx
    .update(webhooks)
    .set({ deletedAt, updatedAt: deletedAt, endings: ONE_MORE_ENDING, secretSealed: null })
    .where(owned(webhook.orgId, webhook.webhookId));
  await cancelReplay(tx, webhook.webhookId);
  await tx.delete(webhookEarlierSecrets).where(eq(webhookEarlierSecrets.webhookId, webhook.webhookId));
}
