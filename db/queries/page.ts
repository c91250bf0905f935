/** Reads one page of a list, newest first (contract §1). */
import { and, count, desc, inArray, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { COUNTED_MAX, type Cursor, type Page, type Paged } from '../../domain/page.ts';
import type { Queryable } from '../client.ts';

/** Rows with an id and a date, by which an index reads them newest first. */
export type Source = {
  readonly table: PgTable;
  readonly where: SQL | undefined;
  readonly createdAt: PgColumn;
  readonly id: PgColumn;
  /**
   * Columns that stand between those of `where` and `createdAt` in the index, each with the values that are wanted. The
   * index is read once for each combination of the values, newest first, so few rows are read although the wanted rows
   * are not beside each other. Every column has few values.
   */
  readonly ranges?: readonly Range[];
};

export type Range = { readonly column: PgColumn; readonly values: readonly (string | boolean)[] };

/** What a page is cut from. `idsFrom` is another table that knows which rows match, in the same order. */
export type List<Row> = Source & { readonly idsFrom?: Source; readonly cursorOf: (row: Row) => Cursor };

/** The clauses of the query that reads the rows of a page. `limit` is one more than the page has, to see the next. */
export type PageClauses = {
  readonly where: SQL | undefined;
  readonly orderBy: SQL[];
  readonly limit: number;
  readonly offset: number;
};

/**
 * One page of a list. Rows and total are two statements: an object that is added between them is in one of the two.
 *
 * @param select runs the query with these clauses
 */
export async function readPage<Row>(
  db: Queryable,
  list: List<Row>,
  page: Page,
  select: (clauses: PageClauses) => PromiseLike<Row[]>,
): Promise<Paged<Row>> {
  const source = list.idsFrom ?? list;
  const [rows, total] = await Promise.all([select(clausesOf(list, source, page)), countMatches(db, source)]);
  return { ...cutPage(rows, page, list.cursorOf), total };
}

function clausesOf(list: Pick<Source, 'createdAt' | 'id'>, source: Source, page: Page): PageClauses {
  const { limit, offset, after } = page;
  const { createdAt, id, where } = source;
  const behind = after && sql`(${createdAt}, ${id}) < (${after.at.toISOString()}::timestamptz, ${after.id})`;
  const cut = { where: and(where, behind), orderBy: [desc(createdAt), desc(id)], limit: limit + 1, offset };
  if (source === list && source.ranges === undefined) return cut;
  const orderBy = [desc(list.createdAt), desc(list.id)];
  return { where: inArray(list.id, idsOf(source, cut)), orderBy, limit: limit + 1, offset: 0 };
}

/** The ids of a page: the newest rows of each range, merged. */
function idsOf({ table, createdAt, id, ranges = [] }: Source, clauses: PageClauses): SQL {
  const { where, orderBy, limit, offset } = clauses;
  const wanted = ranges.map(
    ({ column, values }, index) =>
      sql`unnest(${sql.param(values)}::${sql.raw(column.getSQLType())}[]) AS ${wantedName(index)} (value)`,
  );
  const isWanted = ranges.map(({ column }, index) => sql`${column} = ${wantedName(index)}.value`);
  return sql`(SELECT page.id FROM ${sql.join([sql`(SELECT) AS one`, ...wanted], sql` CROSS JOIN `)}
    CROSS JOIN LATERAL (
      SELECT ${id} AS id, ${createdAt} AS created_at FROM ${table} WHERE ${and(where, ...isWanted)}
      ORDER BY ${sql.join(orderBy, sql`, `)} LIMIT ${limit + offset}
    ) AS page ORDER BY page.created_at DESC, page.id DESC LIMIT ${limit} OFFSET ${offset})`;
}

const wantedName = (index: number): SQL => sql.raw(`wanted_${index}`);

/** The rows of a page, from a query for one row more. */
export function cutPage<Row>(
  rows: readonly Row[],
  { limit }: Page,
  cursorOf: (row: Row) => Cursor,
): Omit<Paged<Row>, 'total'> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? cursorOf(last) : null };
}

/** How many rows match; null when they are more than are counted. */
async function countMatches(db: Queryable, { table, where, ranges = [] }: Source): Promise<number | null> {
  const counted = db
    .select({ one: sql`1`.as('one') })
    .from(table)
    .where(and(where, ...ranges.map(({ column, values }) => inArray(column, [...values]))))
    .limit(COUNTED_MAX + 1)
    .as('counted');
  const [row] = await db.select({ count: count() }).from(counted);
  const matches = row?.count ?? 0;
  return matches > COUNTED_MAX ? null : matches;
}
