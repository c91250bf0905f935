/**
 * The columns of tables as parts of statements that are written as SQL (`statement.ts`). So such a statement names each
 * column once, in the schema, and its values are converted as the schema says.
 */
import { type Column, getTableColumns, type Table } from 'drizzle-orm';
import type { Parameter } from './statement.ts';

/** Columns by the names that the code has for them. */
export type ColumnList<Key extends string = string> = readonly { readonly key: Key; readonly column: Column }[];

/** The columns of a table: those named, or all of them. */
export function columnsOf<T extends Table, Key extends string & keyof T['_']['columns']>(
  table: T,
  keys?: readonly Key[],
): ColumnList<Key> {
  const columns: Record<string, Column> = getTableColumns(table);
  const named = keys ?? (Object.keys(columns) as Key[]);
  return named.flatMap((key) => {
    const column = columns[key];
    return column === undefined ? [] : [{ key, column }];
  });
}

/** `org_id, status`, for INSERT. */
export const columnNames = (columns: ColumnList): string => columns.map(({ column }) => column.name).join(', ');

/**
 * `$3::text, $4::jsonb`: a parameter for each column, for INSERT … SELECT.
 *
 * @param offset how many parameters come before
 */
export const columnParameters = (columns: ColumnList, offset: number): string =>
  columns.map(({ column }, index) => `$${offset + index + 1}::${column.getSQLType()}`).join(', ');

/** The values of `columnParameters` for one row. A column that the row does not name becomes NULL. */
export const columnValues = <Key extends string>(
  columns: ColumnList<Key>,
  row: { readonly [K in Key]?: unknown },
): Parameter[] => columns.map(({ key, column }) => parameterOf(column, row[key]));

function parameterOf(column: Column, value: unknown): Parameter {
  if (value === undefined || value === null) return null;
  const driverValue = column.mapToDriverValue(value);
  return typeof driverValue === 'bigint' ? String(driverValue) : (driverValue as Parameter);
}

/** `r.org_id AS "r.org_id"`: the columns of an alias, so that one row can hold those of several tables. */
export const aliasedColumns = (columns: ColumnList, alias: string): string =>
  columns.map(({ column }) => `${alias}.${column.name} AS "${alias}.${column.name}"`).join(', ');

/** The row of `aliasedColumns`, with the values as the code has them. `Row` is the table's row. */
export const aliasedRow = <Row>(columns: ColumnList, alias: string, raw: Readonly<Record<string, unknown>>): Row =>
  Object.fromEntries(
    columns.map(({ key, column }) => {
      const value = raw[`${alias}.${column.name}`];
      return [key, value === null ? null : column.mapFromDriverValue(value)];
    }),
  ) as Row;
