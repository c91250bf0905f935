/**
 * Which settlements a list shows (contract §1), and the index that reads them newest first: by reference, by recipient,
 * by one entry of the metadata, or by none of them. In each, status, corridor and payment method follow, then the date;
 * by recipient and by none of them there is also one in which the date follows at once.
 * What else is wanted is checked for each row, so the filter that most likely selects the fewest comes first: a
 * reference names a payment, a recipient has some of them, and a label may be on all.
 */
import { and, eq, gte, type SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { CorridorId } from '../../domain/corridor.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { isTerminal, type SettlementStatus } from '../../domain/settlement/state.ts';
import type { Queryable } from '../client.ts';
import { settlementMetadata, settlements } from '../schema/settlement.ts';
import { hasLabel, type Label } from './label.ts';
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

/** Where the rows of a page of these settlements come from; `idsFrom` where another table reads them in their order. */
export function sourceOf(
  db: Queryable,
  orgId: string,
  selection: SettlementSelection,
): Source & { readonly idsFrom?: Source } {
  const { recipientId, reference } = selection;
  const isNamed = recipientId !== undefined || reference !== undefined;
  const [label, ...others] = Object.entries(selection.metadata ?? {});
  if (label && !isNamed)
    return { ...SETTLEMENTS, where: undefined, idsFrom: labeled(db, orgId, { selection, label, others }) };
  const named = reference === undefined ? isRecipient(selection) : eq(settlements.reference, reference);
  return {
    ...SETTLEMENTS,
    where: and(eq(settlements.orgId, orgId), named),
    createdTo: selection.createdTo,
    within: and(
      createdFrom(settlements.createdAt, selection),
      reference === undefined ? undefined : isRecipient(selection),
      ...Object.entries(selection.metadata ?? {}).map((wanted) =>
        hasLabel(db, settlementMetadata, settlements, wanted),
      ),
    ),
    ...(reference !== undefined || isChosen(selection) ? { ranges: rangesOf(settlements, selection) } : {}),
  };
}

/** The settlements with one label; the others are checked for each of them. */
function labeled(
  db: Queryable,
  orgId: string,
  { selection, label, others }: { selection: SettlementSelection; label: Label; others: readonly Label[] },
): Source {
  const [key, value] = label;
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
      ...others.map((wanted) => hasLabel(db, settlementMetadata, settlementMetadata, wanted)),
    ),
  };
}

/**
 * The selected settlements that stay selected: of the fields that filters read, only the status changes, and a terminal
 * one stays.
 *
 * @returns the selection itself if all of them do, and undefined if none does
 */
export function stayingOf(selection: SettlementSelection): SettlementSelection | undefined {
  const statuses = selection.statuses?.filter(isTerminal);
  if (statuses?.length === selection.statuses?.length) return selection;
  return statuses?.length === 0 ? undefined : { ...selection, statuses };
}

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
