/**
 * Events are kept for a time, and then deleted with their deliveries (contract §11). The service's role may delete
 * none: a function of the role that owns the tables does it, and refuses what is younger than the contract's time.
 */
import { EVENT_RETENTION } from '../../domain/event.ts';
import type { Queryable } from '../client.ts';
import { statement } from '../statement.ts';

const deleteExpiredStatement = statement<[days: number, rowsMax: number], { readonly deleted: number }>(
  'delete_expired_events',
  'SELECT delete_expired_events($1::int, $2::int) AS deleted',
);

/**
 * Deletes the oldest of the events that are older than `retentionDays`. An event with a pending delivery stays.
 *
 * @returns how many were deleted, at most `EVENT_RETENTION.deletedMax`
 */
export async function deleteExpiredEvents(db: Queryable, retentionDays: number): Promise<number> {
  const [row] = await deleteExpiredStatement(db, retentionDays, EVENT_RETENTION.deletedMax);
  return row?.deleted ?? 0;
}
