/** A connection to PostgreSQL for a few statements, outside of every pool. */
import pg from 'pg';

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
