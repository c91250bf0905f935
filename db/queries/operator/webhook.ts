/** Subscriptions. For an operator, as object.ts says. */
import { and, asc, eq, isNotNull, isNull, or } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { webhooks } from '../../schema/webhook.ts';
import { ROWS_MAX } from './object.ts';

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

export const listWebhooksOf = (db: Queryable, orgId: string) =>
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
    .orderBy(asc(webhooks.createdAt), asc(webhooks.webhookId))
    .limit(ROWS_MAX);
