/** What a request, or an operator's command, began. For an operator, as object.ts says. */
import { and, asc, eq, gt, sql } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { outbox } from '../../schema/outbox.ts';
import { settlements } from '../../schema/settlement.ts';
import { verifications } from '../../schema/verification.ts';
import { webhookDeliveries } from '../../schema/webhook.ts';
import { deliveryColumns } from './delivery.ts';
import { ROWS_MAX } from './object.ts';
import { settlementColumns } from './settlement.ts';

/** A request's deliveries are looked for among those of the last week, by their ids: the column has no index. */
const DELIVERY_DAYS = 7;

export async function listOfRequest(db: Queryable, requestId: string) {
  const since = sql`id_at(now() - make_interval(days => ${DELIVERY_DAYS}))`;
  return {
    settlements: await db
      .select({ ...settlementColumns, orgId: settlements.orgId })
      .from(settlements)
      .where(eq(settlements.requestId, requestId))
      .orderBy(asc(settlements.createdAt), asc(settlements.settlementId))
      .limit(ROWS_MAX),
    verifications: await db
      .select({
        verificationId: verifications.verificationId,
        orgId: verifications.orgId,
        status: verifications.status,
        createdAt: verifications.createdAt,
      })
      .from(verifications)
      .where(eq(verifications.requestId, requestId))
      .orderBy(asc(verifications.createdAt), asc(verifications.verificationId))
      .limit(ROWS_MAX),
    deliveries: await db
      .select({ ...deliveryColumns, orgId: webhookDeliveries.orgId })
      .from(webhookDeliveries)
      .where(and(gt(webhookDeliveries.deliveryId, since), eq(webhookDeliveries.requestId, requestId)))
      .orderBy(asc(webhookDeliveries.createdAt), asc(webhookDeliveries.deliveryId))
      .limit(ROWS_MAX),
    outbox: await db
      .select()
      .from(outbox)
      .where(eq(outbox.requestId, requestId))
      .orderBy(asc(outbox.outboxId))
      .limit(ROWS_MAX),
  };
}
