/** Entries of metadata, by which lists are filtered. */
import { and, eq, getTableColumns, type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn, type PgTable } from 'drizzle-orm/pg-core';
import type { Queryable } from '../client.ts';
import type { recipientMetadata } from '../schema/recipient.ts';
import type { settlementMetadata } from '../schema/settlement.ts';

/** An entry of the metadata. */
export type Label = readonly [key: string, value: string];

/** Their primary keys have all of their columns. */
type LabelTable = typeof settlementMetadata | typeof recipientMetadata;

/**
 * Whether the object of a row has the label: one entry of an index is looked up. It is a value, because PostgreSQL may
 * turn EXISTS into a join that reads every object first, and it compares every column of the index, because the row's
 * table then need not be read either.
 *
 * @param row has each column of `labels` but the key and the value, by the same name
 */
export function hasLabel(db: Queryable, labels: LabelTable, row: PgTable, [key, value]: Label): SQL {
  const wanted: PgTable = alias(labels as PgTable, 'wanted');
  const ofRow: Readonly<Record<string, PgColumn>> = getTableColumns(row);
  const compared = Object.entries(getTableColumns(wanted)).map(([name, column]) =>
    eq(column, name === 'key' ? key : name === 'value' ? value : ofRow[name]),
  );
  const found = db
    .select({ isFound: sql`true` })
    .from(wanted)
    .where(and(...compared))
    .limit(1);
  return sql`(${found})`;
}
