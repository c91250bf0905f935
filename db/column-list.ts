/**
 * The columns of tables as parts of statements that are written as SQL (`statement.ts`). So each column is named once,
 * in the schema, and its values are converted as the schema says.
 */
import { type Column, getTableColumns, type Table } from 'drizzle-orm';
import type { Scalar } from './statement.ts';

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

/** As rows of a table: one row, by `columnParameters`. */
export const columnRow = (columns: ColumnList, offset: number): string =>
  `(VALUES (${columnParameters(columns, offset)})) AS given (${columnNames(columns)})`;

/** As `columnRow`, for many rows: each parameter is the array of a column's values. */
export const columnArrays = (columns: ColumnList, offset: number): string => {
  const arrays = columns.map(({ column }, index) => `$${offset + index + 1}::${column.getSQLType()}[]`);
  return `unnest(${arrays.join(', ')}) AS given (${columnNames(columns)})`;
};

/** The values of `columnParameters` for one row. A column that the row does not name becomes NULL. */
export const columnValues = <Key extends string>(
  columns: ColumnList<Key>,
  row: { readonly [K in Key]?: unknown },
): Scalar[] => columns.map(({ key, column }) => parameterOf(column, row[key]));

function parameterOf(column: Column, value: unknown): Scalar {
  if (value === undefined || value === null) return null;
  const driverValue = column.mapToDriverValue(value);
  return typeof driverValue === 'bigint' ? String(driverValue) : (driverValue as Scalar);
}

/** The columns of a table under a name of their own, so that one row can hold those of several tables. */
export type AliasedColumns<Row> = {
  /** `r.org_id AS "r.org_id"`, for SELECT. */
  readonly names: string;
  /** Their values in a row that was read, as the code has them. */
  rowOf(read: Readonly<Record<string, unknown>>): Row;
};

/** @typeParam Row the table's row, or the part of it that the columns make */
export function aliasedColumns<Row>(columns: ColumnList, alias: string): AliasedColumns<Row> {
  const aliased = columns.map(({ key, column }) => ({ key, column, name: `${alias}.${column.name}` }));
  return {
    names: aliased.map(({ column, name }) => `${alias}.${column.name} AS "${name}"`).join(', '),
    rowOf: (read) => {
      const row: Record<string, unknown> = {};
      for (const { key, column, name } of aliased) {
        const value = read[name];
        row[key] = value === null ? null : column.mapFromDriverValue(value);
      }
      return row as Row;
    },
  };
}

/** The columns of a table as one JSON value: a row of many columns costs PostgreSQL's client half as much to read. */
export type JsonColumns<Row> = {
  /** `json_build_array(s.org_id, …)`, for SELECT. */
  readonly text: string;
  /** Their values as the code has them. */
  rowOf(values: readonly unknown[]): Row;
};

/** @param columns none of them of type bytea, which JSON does not have */
export function jsonColumns<Row>(columns: ColumnList, alias: string): JsonColumns<Row> {
  // JSON has no bigint: as text, no digit is lost.
  const parts = columns.map(
    ({ column }) => `${alias}.${column.name}${column.getSQLType() === 'bigint' ? '::text' : ''}`,
  );
  return {
    text: `json_build_array(${parts.join(', ')})`,
    rowOf: (values) => {
      const row: Record<string, unknown> = {};
      for (const [index, { key, column }] of columns.entries()) {
        const value = values[index] ?? null;
        row[key] = value === null ? null : column.mapFromDriverValue(value);
      }
      return row as Row;
    },
  };
}
