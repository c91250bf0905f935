/**
 * Statements that are written once, as SQL, for what runs often. PostgreSQL parses a named statement once for each
 * connection, and nothing builds its text anew. A statement names each column that it returns, never `*`: a migration
 * that adds a column must not change what a prepared statement returns.
 */
import pg from 'pg';
import { driverOf, type Queryable } from './client.ts';

/** A bigint or a Date is passed as text, and PostgreSQL casts it to what the statement says. */
export type Scalar = string | number | boolean | Buffer | null;
export type Parameter = Scalar | readonly Scalar[];

/** Runs the statement with its parameters. Timestamps and bigints are returned as text. */
export type Statement<Parameters extends readonly Parameter[], Row> = (
  db: Queryable,
  ...parameters: Parameters
) => Promise<readonly Row[]>;

/**
 * A common table expression for changes that may be lost when PostgreSQL crashes, because they are then made again.
 * Their commit does not wait for the disk. It has an effect only where the statement reads `not_durable`.
 */
export const NOT_WAITING_FOR_DISK = `not_durable AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`;

/** The texts of all statements by their names, for the test that explains each of them. */
export const statementTexts = new Map<string, string>();

const { builtins, getTypeParser } = pg.types;
const TEXT = new Set<number>([builtins.TIMESTAMPTZ, builtins.TIMESTAMP, builtins.DATE, builtins.INTERVAL]);
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => (TEXT.has(oid) ? String : getTypeParser(oid, format)),
};

/** @param name unique; at most 63 characters, which PostgreSQL would cut without an error */
export function statement<Parameters extends readonly Parameter[], Row>(
  name: string,
  text: string,
): Statement<Parameters, Row> {
  statementTexts.set(name, text);
  // Its properties are inherited: the driver copies all own ones at each call.
  const prepared: pg.QueryConfig = { name, text, types: TYPES };
  return async (db, ...parameters) =>
    (await driverOf(db).query<Row & object>(Object.create(prepared), [...parameters])).rows;
}
