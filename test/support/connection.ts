/** A connection to PostgreSQL for a few statements, outside of every pool. */
import pg from 'pg';
import { startOptions } from '../../db/database-session.ts';
import { stretched } from './patience.ts';

/** Closes the connection after the work, also when it fails. */
export async function onDatabase<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** The rows of one statement. */
export const queryOnce = <Row extends pg.QueryResultRow>(
  url: string,
  statement: string,
  values: readonly unknown[] = [],
): Promise<Row[]> => onDatabase(url, async (client) => (await client.query<Row>(statement, [...values])).rows);

/** A machine may become busy while a test holds what others wait for. The service's own limits: test/db/tenant.test.ts. */
export const PATIENCE_MS = stretched(30_000);

/** The address of PostgreSQL with limits of its own that are no shorter than `PATIENCE_MS`. */
export function patientUrl(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  const limits = ['statement_timeout', 'idle_in_transaction_session_timeout'].map(
    (name) => `-c ${name}=${PATIENCE_MS}`,
  );
  url.searchParams.set('options', [startOptions(PATIENCE_MS), ...limits].join(' '));
  return url.href;
}
