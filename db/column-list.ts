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

/** The columns of a table as one JSON value: a row of many columns costs PostgreSQL's client half as much to read. */
export type JsonColumns<Row> = {
  /** `json_build_array(s.org_id, …)`, for SELECT. */
  readonly text: string;
  /** Their values as the code has them. */
  rowOf(values: readonly unknown[]): Row;
};

/**
 * @typeParam Row the table's row, or the part of it that the columns make
 * @param alias of the table in the statement
 */
export function jsonColumns<Row>(columns: ColumnList, alias: string): JsonColumns<Row> {
  const typed = columns.map(({ key, column }) => ({ key, column, type: column.getSQLType() }));
  return {
    text: `json_build_array(${typed.map(({ column, type }) => asJson(`${alias}.${column.name}`, type)).join(', ')})`,
    rowOf: (values) => {
      const row: Record<string, unknown> = {};
      for (const [index, { key, column, type }] of typed.entries()) {
        const value = values[index] ?? null;
        const driverValue = type === 'bytea' ? Buffer.from(String(value), 'hex') : value;
        row[key] = value === null ? null : column.mapFromDriverValue(driverValue);
      }
      return row as Row;
    },
  };
}

/** JSON has no bigint and no bytes. As text, no digit is lost. */
function asJson(name: string, type: string): string {
  if (type === 'bigint') return `${name}::text`;
  return type === 'bytea' ? `encode(${name}, 'hex')` : name;
}
