/**
 * Which settlements a list shows (contract §1), and the index that reads them newest first: by one entry of the
 * metadata, by reference, by recipient, or by none of them. In each, status, corridor and payment method follow, then
 * the date. What else is wanted is checked for each row.
 */
import { and, eq, gte, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { CorridorId } from '../../domain/corridor.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { isTerminal, type SettlementStatus } from '../../domain/settlement.ts';
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
  const named = reference === undefined ? isRecipient(selection) : eq(settlements.reference, reference);
  return {
    ...SETTLEMENTS,
    where: and(eq(settlements.orgId, orgId), named),
    createdTo: selection.createdTo,
    within: and(
      createdFrom(settlements.createdAt, selection),
      reference === undefined ? undefined : isRecipient(selection),
    ),
    ...(isNamed || isChosen(selection) ? { ranges: rangesOf(settlements, selection) } : {}),
  };
}

/** The settlements with one label; the others are checked for each of them, and so are recipient and reference. */
function labeled(
  db: Queryable,
  orgId: string,
  { selection, label: [key, value] }: { readonly selection: SettlementSelection; readonly label: [string, string] },
): Source {
  const { metadata, reference } = selection;
  const others = [
    isRecipient(selection),
    reference === undefined ? undefined : eq(settlements.reference, reference),
    Object.keys(metadata ?? {}).length > 1
      ? sql`${settlements.metadata} @> ${JSON.stringify(metadata)}::jsonb`
      : undefined,
  ].filter((condition) => condition !== undefined);
  const isSame = eq(settlements.settlementId, settlementMetadata.settlementId);
  // A value and not EXISTS, which PostgreSQL may turn into a join that reads every settlement first.
  const matching = db
    .select({ isWanted: sql`true` })
    .from(settlements)
    .where(and(isSame, ...others))
    .limit(1);
  return {
    table: settlementMetadata,
    createdAt: settlementMetadata.createdAt,
    id: settlementMetadata.settlementId,
    where: and(
      eq(settlementMetadata.orgId, orgId),
      eq(settlementMetadata.key, key),
      eq(settlementMetadata.value, value),
    ),
    ranges: rangesOf(settlementMetadata, selection),
    createdTo: selection.createdTo,
    within: and(
      createdFrom(settlementMetadata.createdAt, selection),
      others.length === 0 ? undefined : sql`(${matching})`,
    ),
  };
}

/**
 * Whether the selected settlements can only become more. Nothing of a settlement changes that a filter reads but its
 * status, and a terminal one stays.
 */
export const onlyGrows = ({ statuses }: SettlementSelection): boolean => statuses?.every(isTerminal) ?? true;

const isRecipient = ({ recipientId }: SettlementSelection): SQL | undefined =>
  recipientId === undefined ? undefined : eq(settlements.recipientId, recipientId);

const createdFrom = (column: PgColumn, { createdFrom: from }: SettlementSelection): SQL | undefined =>
  from && gte(column, from);

const isChosen = ({ statuses, corridor, paymentMethod }: SettlementSelection): boolean =>
  statuses !== undefined || corridor !== undefined || paymentMethod !== undefined;

const rangesOf = (
  { status, corridor, paymentMethod }: typeof settlements | typeof settlementMetadata,
  selection: SettlementSelection,
): Range[] => [
  { column: status, values: selection.statuses },
  { column: corridor, values: selection.corridor && [selection.corridor] },
  { column: paymentMethod, values: selection.paymentMethod && [selection.paymentMethod] },
];
