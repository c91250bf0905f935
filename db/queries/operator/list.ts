/**
 * Lists across organizations, for operators. An index gives each list its order, so that a list ends as soon as it is
 * full: settlements by their last change, everything else by id, and ids are in the order of creation.
 */
import { and, asc, desc, eq, getTableColumns, gte, inArray, isNotNull, isNull, lte, type SQL, sql } from 'drizzle-orm';
import type { CorridorId } from '../../../domain/corridor.ts';
import type { EnvironmentName } from '../../../domain/runtime.ts';
import type { Scope } from '../../../domain/scope.ts';
import type { EvidenceKind } from '../../../domain/settlement/evidence.ts';
import type { SettlementStatus } from '../../../domain/settlement/state.ts';
import type { DeliveryStatus } from '../../../domain/webhook.ts';
import type { Queryable } from '../../client.ts';
import { apiKeys } from '../../schema/api-key.ts';
import { type AuditAction, auditEntries } from '../../schema/audit.ts';
import { evidence } from '../../schema/evidence.ts';
import { organizations } from '../../schema/organization.ts';
import { settlements } from '../../schema/settlement.ts';
import { webhookDeliveries, webhooks } from '../../schema/webhook.ts';
import { isExpiringLastKey } from '../metric.ts';
import { hasRefundDue, refundDueSince } from '../refund.ts';
import { pendingNow } from '../webhook-delivery.ts';
import { deliveryColumns } from './delivery.ts';
import { hasReference } from './named.ts';
import { KEY_COLUMNS } from './organization.ts';

/** What every list takes: at most `limit` items, none that is younger than `before`. */
type Cut = { readonly limit: number; readonly before?: Date | undefined; readonly orgId?: string | undefined };

const when = <Value>(value: Value | undefined, condition: (value: Value) => SQL | undefined): SQL | undefined =>
  value === undefined ? undefined : condition(value);

/** The organization is looked up, because the index of recipients begins with it. */
const isRecipient = (recipientId: string): SQL | undefined =>
  and(
    eq(settlements.recipientId, recipientId),
    sql`${settlements.orgId} = (SELECT org_id FROM recipients WHERE recipient_id = ${recipientId})`,
  );

const SETTLEMENT_ORDERS = {
  changed: [desc(settlements.updatedAt), desc(settlements.settlementId)],
  accepted: [desc(settlements.createdAt), desc(settlements.settlementId)],
  refund_due: [asc(refundDueSince), asc(settlements.settlementId)],
} as const;

/**
 * The latest changes come first, what was accepted last, or what has been due back for longest. `before` is compared
 * with the last change.
 */
export const listSettlementsBy = (
  db: Queryable,
  filter: Cut & {
    readonly statuses: readonly SettlementStatus[] | undefined;
    readonly order: keyof typeof SETTLEMENT_ORDERS;
    readonly corridor?: CorridorId | undefined;
    readonly amountMinorMin?: bigint | undefined;
    readonly recipientId?: string | undefined;
    readonly reference?: string | undefined;
    readonly isRefundDue?: boolean | undefined;
  },
) =>
  db
    .select({
      settlementId: settlements.settlementId,
      orgId: settlements.orgId,
      status: settlements.status,
      corridor: settlements.corridor,
      amountMinor: settlements.amountMinor,
      sourceCurrency: settlements.sourceCurrency,
      paymentMethod: settlements.paymentMethod,
      reference: settlements.reference,
      recipientId: settlements.recipientId,
      amountReceivedMinor: settlements.amountReceivedMinor,
      amountRefundedMinor: settlements.amountRefundedMinor,
      refundDueSince: filter.isRefundDue ? refundDueSince.mapWith(settlements.updatedAt) : sql<null>`NULL`,
      createdAt: settlements.createdAt,
      updatedAt: settlements.updatedAt,
      expiresAt: settlements.expiresAt,
    })
    .from(settlements)
    .where(
      and(
        when(filter.statuses, (statuses) => inArray(settlements.status, [...statuses])),
        when(filter.corridor, (corridor) => eq(settlements.corridor, corridor)),
        when(filter.orgId, (orgId) => eq(settlements.orgId, orgId)),
        when(filter.recipientId, isRecipient),
        when(filter.reference, hasReference),
        filter.isRefundDue ? hasRefundDue : undefined,
        when(filter.amountMinorMin, (least) => gte(settlements.amountMinor, least)),
        when(filter.before, (before) => lte(settlements.updatedAt, before)),
      ),
    )
    .orderBy(...SETTLEMENT_ORDERS[filter.order])
    .limit(filter.limit);

type DeliveryFilter = Omit<Cut, 'limit'> & {
  readonly statuses: readonly DeliveryStatus[];
  readonly webhookId?: string | undefined;
  /** Of this environment only, and without those of deleted subscriptions, which nothing sends any more. */
  readonly sendableIn?: EnvironmentName;
};

/** By the status that is shown: `shownStatus`. */
const deliveriesBy = (filter: DeliveryFilter): SQL | undefined =>
  and(
    inArray(webhookDeliveries.status, [...new Set<DeliveryStatus>([...filter.statuses, 'pending'])]),
    sql`(webhook_deliveries.status <> 'pending' OR ${inArray(pendingNow, [...filter.statuses])})`,
    when(filter.orgId, (orgId) => eq(webhookDeliveries.orgId, orgId)),
    when(filter.webhookId, (webhookId) => eq(webhookDeliveries.webhookId, webhookId)),
    when(filter.before, (before) => lte(webhookDeliveries.createdAt, before)),
    when(filter.sendableIn, (environment) =>
      and(
        isNull(webhooks.deletedAt),
        sql`EXISTS (SELECT 1 FROM organizations o
          WHERE o.org_id = webhook_deliveries.org_id AND o.environment = ${environment})`,
      ),
    ),
  );

export const listDeliveriesBy = (
  db: Queryable,
  filter: DeliveryFilter & Pick<Cut, 'limit'> & { readonly oldestFirst?: boolean },
) =>
  db
    .select({ ...deliveryColumns, orgId: webhookDeliveries.orgId })
    .from(webhookDeliveries)
    .innerJoin(webhooks, eq(webhooks.webhookId, webhookDeliveries.webhookId))
    .where(deliveriesBy(filter))
    .orderBy((filter.oldestFirst ? asc : desc)(webhookDeliveries.deliveryId))
    .limit(filter.limit);

export const SUBSCRIPTION_STATES = ['enabled', 'disabled', 'failing', 'deleted'] as const;

/** `deleted` shows deleted subscriptions only; otherwise they are left out. */
export const listSubscriptionsBy = (
  db: Queryable,
  filter: Cut & { readonly state?: (typeof SUBSCRIPTION_STATES)[number] | undefined },
) =>
  db
    .select({
      webhookId: webhooks.webhookId,
      orgId: webhooks.orgId,
      url: webhooks.url,
      status: webhooks.status,
      disabledReason: webhooks.disabledReason,
      failingSince: webhooks.failingSince,
      createdAt: webhooks.createdAt,
      deletedAt: webhooks.deletedAt,
    })
    .from(webhooks)
    .where(
      and(
        filter.state === 'deleted' ? isNotNull(webhooks.deletedAt) : isNull(webhooks.deletedAt),
        filter.state === 'failing' ? isNotNull(webhooks.failingSince) : undefined,
        filter.state === 'enabled' || filter.state === 'disabled' ? eq(webhooks.status, filter.state) : undefined,
        when(filter.orgId, (orgId) => eq(webhooks.orgId, orgId)),
        when(filter.before, (before) => lte(webhooks.createdAt, before)),
      ),
    )
    .orderBy(desc(webhooks.webhookId))
    .limit(filter.limit);

export const listEvidenceBy = (
  db: Queryable,
  filter: Cut & { readonly kind?: EvidenceKind | undefined; readonly isPending?: boolean | undefined },
) =>
  db
    .select({ ...getTableColumns(evidence), orgId: settlements.orgId })
    .from(evidence)
    .innerJoin(settlements, eq(settlements.settlementId, evidence.settlementId))
    .where(
      and(
        when(filter.kind, (kind) => eq(evidence.kind, kind)),
        when(filter.isPending, (isPending) => eq(evidence.pending, isPending)),
        when(filter.orgId, (orgId) => eq(settlements.orgId, orgId)),
        when(filter.before, (before) => lte(evidence.receivedAt, before)),
      ),
    )
    .orderBy(desc(evidence.evidenceId))
    .limit(filter.limit);

export const listAuditBy = (
  db: Queryable,
  filter: Cut & {
    readonly operator?: string | undefined;
    readonly action?: AuditAction | undefined;
    readonly objectId?: string | undefined;
  },
) =>
  db
    .select()
    .from(auditEntries)
    .where(
      and(
        when(filter.operator, (operator) => eq(auditEntries.operator, operator)),
        when(filter.action, (action) => eq(auditEntries.action, action)),
        when(filter.objectId, (objectId) => eq(auditEntries.objectId, objectId)),
        when(filter.orgId, (orgId) => eq(auditEntries.orgId, orgId)),
        when(filter.before, (before) => lte(auditEntries.at, before)),
      ),
    )
    .orderBy(desc(auditEntries.auditId))
    .limit(filter.limit);

/** Partners. `isWithoutKey`: those without an active key of scope `full`, at `now`. `isSuspended`: those that are. */
export async function listPartnersBy(
  db: Queryable,
  {
    limit,
    before,
    isWithoutKey,
    isSuspended,
    now,
  }: Omit<Cut, 'orgId'> & { readonly isWithoutKey: boolean; readonly isSuspended: boolean; readonly now: Date },
) {
  // Drizzle leaves out the table of a column where a statement selects from one table.
  const activeFullKeys = sql<number>`(
    SELECT count(*)::int FROM api_keys key
    WHERE key.org_id = organizations.org_id AND key.scope = 'full' AND key.status = 'active'
      AND (key.expires_at IS NULL OR key.expires_at > ${now.toISOString()}::timestamptz))`;
  return await db
    .select({ ...getTableColumns(organizations), fullKeys: activeFullKeys })
    .from(organizations)
    .where(
      and(
        eq(organizations.kind, 'partner'),
        isWithoutKey ? sql`${activeFullKeys} = 0` : undefined,
        isSuspended ? isNotNull(organizations.suspendedAt) : undefined,
        when(before, (at) => lte(organizations.createdAt, at)),
      ),
    )
    .orderBy(desc(organizations.orgId))
    .limit(limit);
}

export const listKeysBy = (
  db: Queryable,
  filter: Cut & {
    readonly status?: 'active' | 'rotated' | 'revoked' | 'expired' | undefined;
    readonly scope?: Scope | undefined;
    readonly isExpiring: boolean;
    readonly now: Date;
  },
) => {
  const isExpired = sql`coalesce(${apiKeys.expiresAt} <= ${filter.now.toISOString()}::timestamptz, false)`;
  const hasStatus = (status: NonNullable<typeof filter.status>): SQL | undefined => {
    if (status === 'active') return sql`${apiKeys.status} = 'active' AND NOT ${isExpired}`;
    if (status === 'expired') return sql`${apiKeys.status} = 'active' AND ${isExpired}`;
    return eq(apiKeys.status, status);
  };
  return db
    .select({ ...KEY_COLUMNS, orgId: apiKeys.orgId })
    .from(apiKeys)
    .where(
      and(
        when(filter.status, hasStatus),
        when(filter.scope, (scope) => eq(apiKeys.scope, scope)),
        filter.isExpiring ? isExpiringLastKey(filter.now) : undefined,
        when(filter.orgId, (orgId) => eq(apiKeys.orgId, orgId)),
        when(filter.before, (before) => lte(apiKeys.createdAt, before)),
      ),
    )
    .orderBy(...(filter.isExpiring ? [asc(apiKeys.expiresAt)] : []), desc(apiKeys.keyId))
    .limit(filter.limit);
};
