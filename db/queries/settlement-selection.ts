/**
 * Which settlements a list shows (contract §1), and the index that reads them newest first: by metadata, by recipient,
 * by reference, or by status, corridor and payment method together.
 */
import { and, eq, exists, gte, inArray, lt, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { CORRIDOR_IDS, type CorridorId } from '../../domain/corridor.ts';
import { PAYMENT_METHODS, type PaymentMethod } from '../../domain/payment-method.ts';
import { SETTLEMENT_STATUSES, type SettlementStatus } from '../../domain/settlement.ts';
import type { Queryable } from '../client.ts';
import { settlementMetadata, settlements } from '../schema/settlement.ts';
import type { Range, Source } from './page.ts';

/** Every filter that is given must match. */
export type SettlementSelection = {
  readonly statuses?: readonly SettlementStatus[] | undefined;
  readonly corridor?: CorridorId | undefined;
  readonly paymentMethod?: PaymentMethod | undefined;
  readonly recipientId?: string | undefined;
  readonly reference?: string | undefined;
  readonly createdFrom?: Date | undefined;
  /** Exclusive. */
  readonly createdTo?: Date | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
};

const SETTLEMENTS = {
  table: settlements,
  createdAt: settlements.createdAt,
  id: settlements.settlementId,
} as const;

/** What a page of these settlements is cut from; `idsFrom` where another table reads them in their order. */
export function sourceOf(
  db: Queryable,
  orgId: string,
  selection: SettlementSelection,
): Source & { readonly idsFrom?: Source } {
  const [label] = Object.entries(selection.metadata ?? {});
  if (label) return { ...SETTLEMENTS, where: undefined, idsFrom: labeled(db, orgId, { selection, label }) };
  const { recipientId, reference } = selection;
  const isNamed = recipientId !== undefined || reference !== undefined;
  const created = and(eq(settlements.orgId, orgId), ...createdWithin(settlements.createdAt, selection));
  const ranges = rangesOf(selection);
  if (!isNamed) return { ...SETTLEMENTS, where: created, ...(isChosen(selection) ? { ranges } : {}) };
  return { ...SETTLEMENTS, where: and(created, ...chosenBy(selection)) };
}

/** The settlements with one label; what else is wanted is checked for each of them. */
function labeled(
  db: Queryable,
  orgId: string,
  { selection, label: [key, value] }: { readonly selection: SettlementSelection; readonly label: [string, string] },
): Source {
  const { metadata, ...rest } = selection;
  const others = [
    ...chosenBy(rest),
    Object.keys(metadata ?? {}).length > 1 && sql`${settlements.metadata} @> ${JSON.stringify(metadata)}::jsonb`,
  ].filter((condition) => condition !== false && condition !== undefined);
  const isSame = eq(settlements.settlementId, settlementMetadata.settlementId);
  return {
    table: settlementMetadata,
    createdAt: settlementMetadata.createdAt,
    id: settlementMetadata.settlementId,
    where: and(
      eq(settlementMetadata.orgId, orgId),
      eq(settlementMetadata.key, key),
      eq(settlementMetadata.value, value),
      ...createdWithin(settlementMetadata.createdAt, selection),
      others.length === 0
        ? undefined
        : exists(
            db
              .select({ one: sql`1` })
              .from(settlements)
              .where(and(isSame, ...others)),
          ),
    ),
  };
}

const createdWithin = (column: PgColumn, { createdFrom, createdTo }: SettlementSelection): (SQL | undefined)[] => [
  createdFrom && gte(column, createdFrom),
  createdTo && lt(column, createdTo),
];

const isChosen = ({ statuses, corridor, paymentMethod }: SettlementSelection): boolean =>
  statuses !== undefined || corridor !== undefined || paymentMethod !== undefined;

const rangesOf = ({ statuses, corridor, paymentMethod }: SettlementSelection): Range[] => [
  { column: settlements.status, values: statuses ?? SETTLEMENT_STATUSES },
  { column: settlements.corridor, values: corridor === undefined ? CORRIDOR_IDS : [corridor] },
  { column: settlements.paymentMethod, values: paymentMethod === undefined ? PAYMENT_METHODS : [paymentMethod] },
];

function chosenBy(selection: SettlementSelection): (SQL | undefined)[] {
  const { statuses, corridor, paymentMethod, recipientId, reference } = selection;
  return [
    statuses && inArray(settlements.status, [...statuses]),
    corridor && eq(settlements.corridor, corridor),
    paymentMethod && eq(settlements.paymentMethod, paymentMethod),
    recipientId === undefined ? undefined : eq(settlements.recipientId, recipientId),
    reference === undefined ? undefined : eq(settlements.reference, reference),
  ];
}
