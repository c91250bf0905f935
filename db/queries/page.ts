/** Reads one page of a list, newest first (contract §1). */
import { and, asc, desc, inArray, lt, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgSelect, PgTable } from 'drizzle-orm/pg-core';
import { COUNTED_MAX, type Cursor, type Page, type Paged } from '../../domain/page.ts';
import type { Queryable } from '../client.ts';
import type { LongLists } from './long-list.ts';

/** Rows with an id and a date, by which an index reads them newest first. */
export type Source = {
  readonly table: PgTable;
  /** Equalities on the first columns of the index. */
  readonly where: SQL | undefined;
  readonly createdAt: PgColumn;
  readonly id: PgColumn;
  /**
   * The columns between those of `where` and `createdAt` in the index, in the index's order. The index is
   * read once for each combination of their values that exists, newest first, so few rows are read although the wanted
   * rows are not adjacent. Every column has few values, and none is null.
   */
  readonly ranges?: readonly Range[];
  /** What else a row must match: from when on it was created, and what the index does not hold. */
  readonly within?: SQL | undefined;
  /** Rows of this moment and later are not wanted. */
  readonly createdTo?: Date | undefined;
};

/** Without `values`, every value is wanted. */
export type Range = { readonly column: PgColumn; readonly values?: readonly (string | boolean)[] | undefined };

/** Where the rows of a page come from. `idsFrom` is another table that knows which rows match, in the same order. */
export type List<Row> = Source & {
  readonly idsFrom?: Source;
  readonly cursorOf: (row: Row) => Cursor;
  readonly length?: KnownLength | undefined;
};

/**
 * For a list of which some or all rows stay in it: which lists are known to be long, and the key of the rows that stay.
 * Once they are more than is counted, the list is.
 */
export type KnownLength = {
  readonly longLists: LongLists;
  readonly key: string;
  /** The rows that stay; absent if all do. */
  readonly staying?: Source | undefined;
};

/** The clauses of the query that reads the rows of a page. `limit` is one more than the page has, to see the next. */
export type PageClauses = {
  readonly where: SQL | undefined;
  readonly orderBy: SQL[];
  readonly limit: number;
  readonly offset: number;
};

/** For `readPage`: runs this query with its clauses. */
export const pageOf =
  <Query extends PgSelect>(query: Query) =>
  ({ where, orderBy, limit, offset }: PageClauses) =>
    query
      .where(where)
      .orderBy(...orderBy)
      .limit(limit)
      .offset(offset);

/**
 * One page of a list. Rows and total are two statements at once: an object that is added between them is in one of the
 * two.
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
  const staying = list.length?.staying;
  return await composePage(list, page, {
    read: async (isCounted) => {
      const rows = select(clausesOf(list, source, page));
      const [found, matches] = await Promise.all([rows, isCounted ? countMatches(db, source) : null]);
      return { rows: found, matches };
    },
    ...(staying && { staying: () => countMatches(db, staying) }),
  });
}

/** As `readPage`, without a total. */
export async function readRows<Row>(
  list: List<Row>,
  page: Page,
  select: (clauses: PageClauses) => PromiseLike<Row[]>,
): Promise<Omit<Paged<Row>, 'total'>> {
  return cutPage(await select(clausesOf(list, list.idsFrom ?? list, page)), page, list.cursorOf);
}

/** `matches`: null when they were not counted. */
export type RowsRead<Row> = { readonly rows: readonly Row[]; readonly matches: number | null };

/** What a page is made of. The counts are up to one more than `COUNTED_MAX`. */
type Parts<Row> = {
  /** Lists that are known to be longer are not counted. */
  readonly read: (isCounted: boolean) => Promise<RowsRead<Row>>;
  /** How many of the matches stay in the list; without it, all do. */
  readonly staying?: () => Promise<number>;
};

/** As `readPage`, for a list with statements of its own. */
export async function composePage<Row>(
  { length, cursorOf }: Pick<List<Row>, 'length' | 'cursorOf'>,
  page: Page,
  { read, staying: countStaying }: Parts<Row>,
): Promise<Paged<Row>> {
  const isKnown = length?.longLists.has(length.key) ?? false;
  const { rows, matches } = await read(!isKnown);
  const total = matches === null || matches > COUNTED_MAX ? null : matches;
  if (length && total === null && !isKnown) {
    const staying = countStaying ? await countStaying() : COUNTED_MAX + 1;
    if (staying > COUNTED_MAX) length.longLists.add(length.key);
  }
  return { ...cutPage(rows, page, cursorOf), total };
}

function clausesOf(list: Pick<Source, 'createdAt' | 'id'>, source: Source, page: Page): PageClauses {
  const { limit, offset, after } = page;
  const cut = { within: and(source.within, upperBound(source, after)), limit: limit + 1, offset };
  const { where } = source;
  if (source === list && source.ranges === undefined)
    return { ...cut, where: and(where, cut.within), orderBy: newestFirst(source) };
  return { where: inArray(list.id, idsOf(source, cut)), orderBy: newestFirst(list), limit: limit + 1, offset: 0 };
}

/**
 * Where the newest wanted row is: the lower one of two bounds, which implies the other. PostgreSQL would begin to read
 * at one of them, and pass every row up to the other.
 */
function upperBound({ createdAt, id, createdTo }: Source, after?: Cursor): SQL | undefined {
  if (after && (createdTo === undefined || after.at < createdTo))
    return sql`(${createdAt}, ${id}) < (${after.at.toISOString()}::timestamptz, ${after.id})`;
  return createdTo && lt(createdAt, createdTo);
}

const newestFirst = ({ createdAt, id }: Pick<Source, 'createdAt' | 'id'>): SQL[] => [desc(createdAt), desc(id)];

type Cut = { readonly within: SQL | undefined; readonly limit: number; readonly offset: number };

/** The ids of a page: the newest rows of each range, merged. */
function idsOf(source: Source, { within, limit, offset }: Cut): SQL {
  return sql`(SELECT page.id FROM ${rowsOf(source, { within, orderBy: newestFirst(source), limit: limit + offset })}
    ORDER BY page.created_at DESC, page.id DESC LIMIT ${limit} OFFSET ${offset})`;
}

/** The first rows of each range in this order, as `page`; not in order. */
function rowsOf(
  { table, createdAt, id, where, ranges = [] }: Source,
  { within, orderBy, limit }: { readonly within: SQL | undefined; readonly orderBy: SQL[]; readonly limit: number },
): SQL {
  const isInRange = ranges.map(({ column }) => sql`${column} = ${rangeColumn(column)}`);
  const rows = sql`(SELECT ${id} AS id, ${createdAt} AS created_at FROM ${table}
    WHERE ${and(where, ...isInRange, within) ?? sql`true`}
    ORDER BY ${sql.join(orderBy, sql`, `)} LIMIT ${limit}) AS page`;
  return ranges.length === 0 ? rows : sql`${rangesOf({ table, where, ranges })} CROSS JOIN LATERAL ${rows}`;
}

const rangeColumn = (column: PgColumn): SQL => sql`${sql.identifier('range')}.${sql.identifier(column.name)}`;

/**
 * The wanted ranges, as `range`. The index is searched for the first combination of values, then for the next, and so
 * on.
 */
function rangesOf({ table, where, ranges }: Required<Pick<Source, 'table' | 'ranges'>> & Pick<Source, 'where'>): SQL {
  const columns = sql.join(
    ranges.map(({ column }) => sql`${column}`),
    sql`, `,
  );
  const previous = sql.join(
    ranges.map(({ column }) => rangeColumn(column)),
    sql`, `,
  );
  const first = (condition: SQL | undefined): SQL =>
    sql`(SELECT ${columns} FROM ${table} WHERE ${condition ?? sql`true`} ORDER BY ${columns} LIMIT 1)`;
  const wanted = ranges.flatMap(({ column, values }) =>
    values === undefined
      ? []
      : [sql`${rangeColumn(column)} = ANY(${sql.param(values)}::${sql.raw(`${column.getSQLType()}[]`)})`],
  );
  return sql`(
      WITH RECURSIVE range AS (
        ${first(where)}
        UNION ALL
        SELECT next.* FROM range CROSS JOIN LATERAL ${first(and(where, sql`(${columns}) > (${previous})`))} AS next
      ) SELECT * FROM range WHERE ${and(...wanted) ?? sql`true`}
    ) AS range`;
}

/** The rows of a page, from a query for one row more. */
function cutPage<Row>(
  rows: readonly Row[],
  { limit }: Page,
  cursorOf: (row: Row) => Cursor,
): Omit<Paged<Row>, 'total'> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? cursorOf(last) : null };
}

/**
 * How many rows match, up to one more than are counted. No more entries of the index are read than that, the
 * oldest first: PostgreSQL knows of most old rows that everybody sees them, so it need not look at the rows themselves.
 */
async function countMatches(db: Queryable, source: Source): Promise<number> {
  const limit = COUNTED_MAX + 1;
  const found = rowsOf(source, {
    within: and(source.within, upperBound(source)),
    orderBy: [asc(source.createdAt), asc(source.id)],
    limit,
  });
  const { rows } = await db.execute<{ matches: number }>(
    sql`SELECT count(*)::int AS matches FROM (SELECT FROM ${found} LIMIT ${limit}) AS counted`,
  );
  return rows[0]?.matches ?? 0;
}
