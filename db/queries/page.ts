/** Reads one page of a list, newest first (contract §1). */
import { and, count, desc, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { COUNTED_MAX, type Cursor, type Page, type Paged } from '../../domain/page.ts';
import type { Queryable } from '../client.ts';

/** What a page is cut from. An index on the columns of `where`, then `createdAt` and `id`, reads any page in its order. */
export type List<Row> = {
  readonly table: PgTable;
  readonly where: SQL | undefined;
  readonly createdAt: PgColumn;
  readonly id: PgColumn;
  readonly cursorOf: (row: Row) => Cursor;
};

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
  const [rows, total] = await Promise.all([select(clausesOf(list, page)), countMatches(db, list)]);
  return { ...cutPage(rows, page, list.cursorOf), total };
}

function clausesOf({ where, createdAt, id }: Omit<List<never>, 'cursorOf'>, page: Page): PageClauses {
  const { limit, offset, after } = page;
  const behind = after && sql`(${createdAt}, ${id}) < (${after.at.toISOString()}::timestamptz, ${after.id})`;
  return { where: and(where, behind), orderBy: [desc(createdAt), desc(id)], limit: limit + 1, offset };
}

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
async function countMatches(db: Queryable, { table, where }: Omit<List<never>, 'cursorOf'>): Promise<number | null> {
  const counted = db
    .select({ one: sql`1`.as('one') })
    .from(table)
    .where(where)
    .limit(COUNTED_MAX + 1)
    .as('counted');
  const [row] = await db.select({ count: count() }).from(counted);
  const matches = row?.count ?? 0;
  return matches > COUNTED_MAX ? null : matches;
}
