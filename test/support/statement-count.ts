/** Which statements a service in this process sends to PostgreSQL, in their order. */

import type { Pool, PoolClient } from 'pg';
import { ALL_LANES } from '../../domain/webhook.ts';

/** The dispatcher's own: it sends them for batches of commits, and once a second without any. */
const OF_DISPATCHER = [
  ...['claim_outbox', 'find_start_delays', 'delete_outbox', 'postpone_outbox'],
  ...ALL_LANES.map((lane) => `notify_lane_${lane}`),
];

export type SentQuery = { readonly label: string; readonly text: string; readonly values: unknown[] };

/**
 * Records what a pool's connections send. BEGIN and COMMIT count.
 *
 * @returns ends the recording and returns what was recorded, without the dispatcher's statements
 */
export function recordQueries(pool: Pool): () => SentQuery[] {
  const recorded: SentQuery[] = [];
  const hooked = new Map<PoolClient, PoolClient['query']>();
  const hook = (client: PoolClient): void => {
    if (hooked.has(client)) return;
    const query = client.query;
    hooked.set(client, query);
    client.query = ((...args: [unknown, ...unknown[]]) => {
      recorded.push(sentQuery(args[0], args[1]));
      return Reflect.apply(query, client, args);
    }) as PoolClient['query'];
  };
  pool.on('acquire', hook);
  return () => {
    pool.off('acquire', hook);
    for (const [client, query] of hooked) client.query = query;
    return recorded.filter(({ label }) => !OF_DISPATCHER.includes(label));
  };
}

/** As `recordQueries`: each statement by its name or by its text. */
export function recordStatements(pool: Pool): () => string[] {
  const recorded = recordQueries(pool);
  return () => recorded().map(({ label }) => label);
}

function sentQuery(query: unknown, given: unknown): SentQuery {
  if (typeof query === 'string') return { label: query, text: query, values: Array.isArray(given) ? given : [] };
  const { name, text = '', values = given } = query as { name?: string; text?: string; values?: unknown };
  return { label: name ?? text, text, values: Array.isArray(values) ? values : [] };
}
