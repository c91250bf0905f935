/** Subscriptions. For an operator, as object.ts says. */
import { and, desc, eq, isNotNull, isNull, or, sql } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { webhooks } from '../../schema/webhook.ts';
import { lastOf } from './object.ts';

export async function findWebhookObject(db: Queryable, webhookId: string) {
  const [row] = await db
    .select({
      orgId: webhooks.orgId,
      url: webhooks.url,
      eventTypes: webhooks.eventTypes,
      status: webhooks.status,
      disabledReason: webhooks.disabledReason,
      failingSince: webhooks.failingSince,
      createdAt: webhooks.createdAt,
      updatedAt: webhooks.updatedAt,
      deletedAt: webhooks.deletedAt,
    })
    .from(webhooks)
    .where(eq(webhooks.webhookId, webhookId));
  return row;
}

/** The latest of those that were deleted, then the others; each in the order of creation. */
export const listWebhooksOf = (db: Queryable, orgId: string) =>
  lastOf(
    db
      .select({
        webhookId: webhooks.webhookId,
        url: webhooks.url,
        status: webhooks.status,
        disabledReason: webhooks.disabledReason,
        failingSince: webhooks.failingSince,
        deletedAt: webhooks.deletedAt,
      })
      .from(webhooks)
      // Two partial indexes have them, one for each half.
      .where(and(eq(webhooks.orgId, orgId), or(isNull(webhooks.deletedAt), isNotNull(webhooks.deletedAt))))
      .orderBy(sql`${webhooks.deletedAt} IS NULL DESC`, desc(webhooks.createdAt), desc(webhooks.webhookId)),
  );
