/**
 * What is kept for a time (contract §11). Events, attempts and quotes lie in months: a month is made ahead and dropped
 * as a whole. Deliveries change while they are young, so they are deleted by rows, and a month of events goes when none
 * of them is left. The service's role may do none of this: functions of the role that owns the tables do it, and refuse
 * what is younger than the contract's time. Codes and secrets, which are kept for hours, it deletes itself.
 */
import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { DELIVERIES_DELETED_MAX, PARTITIONS_AHEAD, type RetentionDays } from '../../domain/retention.ts';
import type { Queryable } from '../client.ts';
import { statement } from '../statement.ts';

const deleteDeliveriesStatement = statement<[days: number, rowsMax: number], { readonly deleted: number }>(
  'delete_expired_deliveries',
  'SELECT delete_expired_deliveries($1::int, $2::int) AS deleted',
);

/**
 * Deletes the oldest deliveries that are older than `days` and not pending.
 *
 * @returns how many were deleted, at most `DELIVERIES_DELETED_MAX`
 */
export async function deleteExpiredDeliveries(db: Queryable, days: number): Promise<number> {
  const [row] = await deleteDeliveriesStatement(db, days, DELIVERIES_DELETED_MAX);
  return row?.deleted ?? 0;
}

/** How many rows of a table one statement deletes at most. */
export const ROWS_DELETED_MAX = 2_000;

/**
 * Deletes rows that meet the condition, and leaves those that another transaction holds. The condition goes by the
 * database's clock: by that of a process that is ahead, codes and secrets would be gone while they are valid.
 *
 * @returns how many
 */
export async function deleteExpiredRows(db: Queryable, table: PgTable, condition: SQL): Promise<number> {
  const { rowCount } = await db.delete(table).where(sql`ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ${condition} LIMIT ${ROWS_DELETED_MAX} FOR UPDATE SKIP LOCKED))`);
  return rowCount ?? 0;
}

const addStatement = statement<[monthsAhead: number], { readonly added: number }>(
  'add_partitions',
  'SELECT add_partitions($1::int) AS added',
);

/** Makes the months that are missing. @returns how many tables were made */
export async function addPartitions(db: Queryable): Promise<number> {
  const [row] = await addStatement(db, PARTITIONS_AHEAD);
  return row?.added ?? 0;
}

const dropStatement = statement<[eventDays: number, quoteDays: number], { readonly dropped: string | null }>(
  'drop_expired_partition',
  'SELECT drop_expired_partition($1::int, $2::int) AS dropped',
);

/**
 * Drops the oldest expired month of one table. @returns its name; null when there is none, or while it is being read
 */
export async function dropExpiredPartition(db: Queryable, { events, quotes }: RetentionDays): Promise<string | null> {
  const [row] = await dropStatement(db, events, quotes);
  return row?.dropped ?? null;
}

/** A month of a table. */
export type Partition = {
  readonly table: string;
  readonly name: string;
  /** Null for the first one. */
  readonly from: string | null;
  /** Exclusive. */
  readonly to: string;
  /** With its indexes. */
  readonly bytes: number;
  /** As the last ANALYZE estimates it; -1 before the first one. */
  readonly rows: number;
};

const listStatement = statement<[], Partition>(
  'list_partitions',
  `SELECT p.table_name AS "table", p.name, to_char(p.from_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS "from",
    to_char(p.to_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS "to",
    pg_total_relation_size(c.oid)::float8 AS bytes, c.reltuples::float8 AS rows
  FROM partitions() p JOIN pg_class c ON c.oid = format('public.%I', p.name)::regclass ORDER BY p.table_name, p.to_at`,
);

/** All months, the oldest of each table first. */
export const listPartitions = (db: Queryable): Promise<readonly Partition[]> => listStatement(db);
