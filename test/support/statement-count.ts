/** Which statements a service in this process sends to PostgreSQL, in their order. */
import type { Pool, PoolClient } from 'pg';

/** The dispatcher's own: it sends them for batches of rows, and once a second without any. */
const OF_DISPATCHER = ['claim_outbox', 'delete_outbox', 'postpone_outbox'];

/**
 * Records the statements of a pool's connections, each by its name or by its text. BEGIN and COMMIT count.
 *
 * @returns ends the recording and tells what was recorded, without the dispatcher's statements
 */
export function recordStatements(pool: Pool): () => string[] {
  const recorded: string[] = [];
  const hooked = new Map<PoolClient, PoolClient['query']>();
  const hook = (client: PoolClient): void => {
    if (hooked.has(client)) return;
    const query = client.query;
    hooked.set(client, query);
    client.query = ((...args: [unknown, ...unknown[]]) => {
      recorded.push(labelOf(args[0]));
      return Reflect.apply(query, client, args);
    }) as PoolClient['query'];
  };
  pool.on('acquire', hook);
  return () => {
    pool.off('acquire', hook);
    for (const [client, query] of hooked) client.query = query;
    return recorded.filter((label) => !OF_DISPATCHER.includes(label));
  };
}

function labelOf(query: unknown): string {
  if (typeof query === 'string') return query;
  const { name, text } = query as { readonly name?: string; readonly text?: string };
  return name ?? text ?? '';
}
