/**
 * What operators read across organizations: what waits, what is stuck, and which organization owns it. Each read is
 * bounded, by index.
 */
import { and, asc, eq, gt, inArray, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { Currency } from '../../../domain/money.ts';
import { type OutboxKind, type OutboxMessage, settlementMessage, verificationMessage } from '../../../domain/outbox.ts';
import type { PaymentMethod } from '../../../domain/payment-method.ts';
import { environmentName, type RuntimeEnvironment } from '../../../domain/runtime.ts';
import type { SettlementStatus } from '../../../domain/settlement/state.ts';
import type { Queryable } from '../../client.ts';
import { organizations } from '../../schema/organization.ts';
import { settlements } from '../../schema/settlement.ts';
import { verifications } from '../../schema/verification.ts';
import { webhookDeliveries, webhooks } from '../../schema/webhook.ts';
import { isOverdue, isUntaken, OVERDUE_GRACE_MS, untaken } from '../metric.ts';
import { isOpenSettlement, settlementsWithEntry } from '../settlement.ts';

export type WaitingSettlement = {
  readonly settlementId: string;
  readonly orgId: string;
  readonly status: SettlementStatus;
  readonly paymentMethod: PaymentMethod;
  readonly recipientId: string;
  readonly amountMinor: bigint;
  readonly sourceCurrency: Currency;
  readonly reference: string | null;
  /** An operator must act: it is in review, its wait should have ended, or no worker moves it. */
  readonly isActionable: boolean;
  /** When it entered the state; `expiresAt`: when the wait ends. Both on its own clock. */
  readonly since: Date;
  readonly expiresAt: Date | null;
};
export type WaitingVerification = {
  readonly verificationId: string;
  readonly orgId: string;
  readonly recipientId: string;
  readonly since: Date;
  readonly expiresAt: Date;
};
export type StuckOutboxRow = {
  readonly kind: OutboxKind;
  readonly objectId: string;
  readonly attempts: number;
  readonly lastError: string | null;
  readonly since: Date;
};
export type LateDelivery = {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly orgId: string;
  readonly dueAt: Date;
};

/** A state without a wait is left within seconds. After this time, no worker handles the settlement. */
const UNATTENDED_MS = 5 * 60_000;
const OUTBOX_LATE_SECONDS = 60;

const settlementColumns = sql`
  settlement_id AS "settlementId", org_id AS "orgId", status, payment_method AS "paymentMethod",
  recipient_id AS "recipientId", amount_minor AS "amountMinor", source_currency AS "sourceCurrency", reference,
  entered_at AS since, expires_at AS "expiresAt"`;

/** Whether the settlement's wait should have ended, or it stays in a state without a wait. */
const isStuck = (now: Date) => {
  const ownNow = sql`(${now.toISOString()}::timestamptz + clock_offset_ms * interval '1 millisecond')`;
  return sql`(${isOverdue(ownNow)}
      OR (status IN ('accepted', 'funded') AND entered_at < ${ownNow} - ${UNATTENDED_MS} * interval '1 millisecond'))`;
};

/** Settlements that have not ended: what an operator must act on, then the others; the longest in their state first. */
export async function listWaitingSettlements(db: Queryable, now: Date, limit: number): Promise<WaitingSettlement[]> {
  const { rows } = await db.execute<WaitingSettlement>(sql`
    SELECT ${settlementColumns}, (status = 'needs_review' OR ${isStuck(now)}) AS "isActionable" FROM ${settlementsWithEntry}
    WHERE ${isOpenSettlement} ORDER BY "isActionable" DESC, since, settlement_id LIMIT ${limit}`);
  return rows.map(withDates);
}

/** Open verifications, oldest first. */
export async function listWaitingVerifications(db: Queryable, limit: number): Promise<WaitingVerification[]> {
  const { rows } = await db.execute<WaitingVerification>(sql`
    SELECT verification_id AS "verificationId", org_id AS "orgId", recipient_id AS "recipientId",
      created_at AS since, expires_at AS "expiresAt"
    FROM verifications WHERE status IN ('pending', 'in_review') ORDER BY created_at, verification_id LIMIT ${limit}`);
  return rows.map((row) => ({ ...row, since: new Date(row.since), expiresAt: new Date(row.expiresAt) }));
}

/** Settlements whose wait should have ended, and those that stay in a state without a wait. */
export async function listStuckSettlements(db: Queryable, now: Date, limit: number): Promise<WaitingSettlement[]> {
  const { rows } = await db.execute<WaitingSettlement>(sql`
    SELECT ${settlementColumns}, true AS "isActionable" FROM ${settlementsWithEntry}
    WHERE ${isOpenSettlement} AND ${isStuck(now)}
    ORDER BY since, settlement_id LIMIT ${limit}`);
  return rows.map(withDates);
}

/** Outbox rows that have not reached Temporal for a minute, on the database's clock. */
export async function listStuckOutbox(db: Queryable, limit: number): Promise<StuckOutboxRow[]> {
  const { rows } = await db.execute<StuckOutboxRow>(sql`
    SELECT kind, object_id AS "objectId", attempts, last_error AS "lastError", created_at AS since FROM outbox
    WHERE created_at < now() - make_interval(secs => ${OUTBOX_LATE_SECONDS}) ORDER BY outbox_id LIMIT ${limit}`);
  return rows.map((row) => ({ ...row, since: new Date(row.since) }));
}

/** Deliveries past their time that no lane took (`untaken`). @param only this one, if it is one of them */
export async function listLateDeliveries(
  db: Queryable,
  now: Date,
  { limit, only }: { readonly limit: number; readonly only?: string },
): Promise<LateDelivery[]> {
  const due = new Date(now.getTime() - OVERDUE_GRACE_MS).toISOString();
  const { deliveryId, webhookId, orgId, nextAttemptAt } = webhookDeliveries;
  const rows = await db
    .select({ deliveryId, webhookId, orgId, dueAt: nextAttemptAt })
    .from(webhookDeliveries)
    .where(
      and(
        isUntaken(due),
        only === undefined ? undefined : eq(deliveryId, only),
        sql`${webhookId} IN (SELECT u.webhook_id FROM (${untaken(due)}) u)`,
      ),
    )
    .orderBy(asc(nextAttemptAt), asc(deliveryId))
    .limit(limit);
  return rows.flatMap(({ dueAt, ...row }) => (dueAt === null ? [] : [{ ...row, dueAt }]));
}

/**
 * Of a delivery, for an operator, who knows only its id: whose it is, and whether its subscription was deleted. One of
 * another environment is not found.
 */
export async function findDeliveryOwner(
  db: Queryable,
  { runtime }: { readonly runtime: RuntimeEnvironment },
  deliveryId: string,
): Promise<{ orgId: string; webhookId: string; isDeleted: boolean } | undefined> {
  const { orgId, webhookId } = webhookDeliveries;
  const [row] = await db
    .select({ orgId, webhookId, isDeleted: sql<boolean>`${webhooks.deletedAt} IS NOT NULL` })
    .from(webhookDeliveries)
    .innerJoin(webhooks, eq(webhooks.webhookId, webhookId))
    .innerJoin(organizations, eq(organizations.orgId, orgId))
    .where(and(eq(webhookDeliveries.deliveryId, deliveryId), eq(organizations.environment, environmentName(runtime))))
    .limit(1);
  return row;
}

const withDates = (row: WaitingSettlement): WaitingSettlement => ({
  ...row,
  amountMinor: BigInt(row.amountMinor),
  since: new Date(row.since),
  expiresAt: row.expiresAt === null ? null : new Date(row.expiresAt),
});

/** A page in the order of ids: `limit` objects after the id `after`. */
export type OpenPage = { readonly after: string; readonly limit: number };

/**
 * Leaves out what changed in this time, and what is not `among` these ids. A date that is later than this time comes
 * from a wrong clock, and leaves nothing out.
 */
export type OpenFilter = {
  readonly recent?: { readonly since: Date; readonly until: Date };
  readonly among?: readonly string[];
};

const notIn = (changedAt: SQLWrapper, { since, until }: NonNullable<OpenFilter['recent']>): SQL =>
  sql`NOT (${changedAt} > ${since.toISOString()}::timestamptz AND ${changedAt} <= ${until.toISOString()}::timestamptz)`;

/** An object for which a workflow should run, and the message that starts or signals it. */
export type OpenObject = { readonly orgId: string; readonly message: OutboxMessage };

/** Settlements that have not ended, in the order of their ids. Changes count on each one's own clock. */
export async function listOpenSettlements(
  db: Queryable,
  { after, limit, recent, among }: OpenPage & OpenFilter,
  requestId: string,
): Promise<OpenObject[]> {
  const { settlementId, orgId, corridor, paymentMethod, updatedAt, clockOffsetMs } = settlements;
  const ownAge = sql`${updatedAt} - ${clockOffsetMs} * interval '1 millisecond'`;
  const rows = await db
    .select({ settlementId, orgId, corridor, paymentMethod })
    .from(settlements)
    .where(
      and(
        isOpenSettlement,
        gt(settlementId, after),
        recent && notIn(ownAge, recent),
        among && inArray(settlementId, [...among]),
      ),
    )
    .orderBy(asc(settlementId))
    .limit(limit);
  return rows.map((row) => ({ orgId: row.orgId, message: settlementMessage(row, 'redispatched', requestId) }));
}

/** Open verifications, in the order of their ids. Their creation counts as their change. */
export async function listOpenVerifications(
  db: Queryable,
  { after, limit, recent, among }: OpenPage & OpenFilter,
  requestId: string,
): Promise<OpenObject[]> {
  const { verificationId, orgId, verificationType, provider, createdAt } = verifications;
  const rows = await db
    .select({ verificationId, orgId, verificationType, provider })
    .from(verifications)
    .where(
      and(
        // The statuses are literals, so that the planner uses the partial index of open verifications.
        sql`${verifications.status} IN ('pending', 'in_review')`,
        gt(verificationId, after),
        recent && notIn(createdAt, recent),
        among && inArray(verificationId, [...among]),
      ),
    )
    .orderBy(asc(verificationId))
    .limit(limit);
  return rows.map((row) => ({ orgId: row.orgId, message: verificationMessage(row, 'redispatched', requestId) }));
}
