/**
 * Counts what callers use of their budgets, in fixed windows, across all processes. The windows follow the database's
 * clock: the clocks of two processes that differ would otherwise begin each other's windows again.
 */
import { sql } from 'drizzle-orm';
import type { Budget, Counted } from '../../domain/rate-limit.ts';
import type { Queryable, Tx } from '../client.ts';
import { rateLimits } from '../schema/rate-limit.ts';
import { statement } from '../statement.ts';
import { deleteExpiredRows, ROWS_DELETED_MAX } from './retention.ts';

/** Counts are kept for so long; those with the prefix, whose windows are longer, for a day. */
const KEPT_SECONDS = 600;
const LONG_COUNT_PREFIX = 'otp:';

/** Who is counted for a request without a key: an address, or a network. */
export const callerOf = ({ name, windowSeconds }: Budget, who: string): string =>
  `${windowSeconds > KEPT_SECONDS ? LONG_COUNT_PREFIX : ''}${name}:${who}`;

/** Who is counted for a request with a key: its organization, and the address that it came from. */
export const organizationCaller = (orgId: string): string => `org:${orgId}`;
export const addressCaller = (limitKey: string): string => `address:${limitKey}`;

export type Count = {
  /** Who is counted, and in which budget. */
  readonly caller: string;
  readonly windowSeconds: number;
  readonly cost: number;
};

/**
 * Whether a stored window is the present one, or began after this transaction did. One that begins much later is from
 * before the database's clock was set back: it would last until the clock is there again.
 */
const IS_PRESENT = `kept.window_start BETWEEN excluded.window_start AND now() + interval '1 minute'`;

/**
 * The counting as part of a larger statement.
 *
 * @param source a SELECT of caller, length of the window in seconds, and cost; callers in one order, against deadlocks
 */
export const countingSql = (source: string): string => `
  INSERT INTO rate_limits AS kept (caller, window_start, used)
  SELECT asked.caller,
         date_bin(make_interval(secs => asked.seconds), now(), '1970-01-01Z'),
         asked.cost
    FROM (${source}) AS asked (caller, seconds, cost)
  ON CONFLICT (caller) DO UPDATE SET
    window_start = CASE WHEN ${IS_PRESENT} THEN kept.window_start ELSE excluded.window_start END,
    used = CASE WHEN ${IS_PRESENT} THEN kept.used ELSE 0 END + excluded.used
  RETURNING caller, used, date_part('epoch', window_start - now()) AS begun`;

/** The seconds until the window ends, of a row of `countingSql`. */
export const resetSecondsSql = (begun: string, seconds: string): string =>
  `greatest(1, ceil(${begun} + ${seconds}))::int`;

type CountedRow = { readonly used: number; readonly reset_seconds: number };

const countStatement = statement<[string[], number[], number[]], CountedRow>(
  'rate_limit.count',
  `WITH asked AS (
     SELECT caller, seconds, cost, position
       FROM unnest($1::text[], $2::int[], $3::int[]) WITH ORDINALITY AS asked (caller, seconds, cost, position)
   ),
   counted AS (${countingSql('SELECT caller, seconds, cost FROM asked ORDER BY caller')})
   SELECT counted.used, ${resetSecondsSql('counted.begun', 'asked.seconds')} AS reset_seconds
     FROM asked JOIN counted USING (caller) ORDER BY asked.position`,
);

/** Counts all of these at once; one statement. @returns one entry for each, in their order */
export async function countRequests(db: Queryable, counts: readonly Count[]): Promise<Counted[]> {
  const rows = await countStatement(
    db,
    counts.map(({ caller }) => caller),
    counts.map(({ windowSeconds }) => windowSeconds),
    counts.map(({ cost }) => cost),
  );
  return rows.map((row) => ({ used: row.used, resetSeconds: row.reset_seconds }));
}

export type Charge = { readonly caller: string; readonly budget: Budget; readonly cost: number };

/**
 * Charges for what the transaction writes. Beyond the quota nothing is charged, and the caller must write nothing.
 * Locks the count until the transaction ends, so that a quota is never exceeded.
 */
export async function charge(tx: Tx, { caller, budget, cost }: Charge): Promise<Counted> {
  const [counted] = await countRequests(tx, [{ caller, windowSeconds: budget.windowSeconds, cost }]);
  if (!counted) throw new Error(`nothing was counted in the budget ${budget.name}`);
  if (counted.used > budget.quota) await release(tx, { caller, cost });
  return counted;
}

/**
 * Gives back what was charged.
 *
 * @param chargedAt a window that began later gives nothing back; absent: it was charged in this transaction
 */
export async function release(
  tx: Tx,
  { caller, cost }: Pick<Charge, 'caller' | 'cost'>,
  chargedAt?: Date,
): Promise<void> {
  const before = chargedAt?.toISOString() ?? 'infinity';
  await tx.execute(sql`UPDATE rate_limits SET used = greatest(0, used - ${cost})
    WHERE caller = ${caller} AND window_start <= ${before}::timestamptz`);
}

const IS_OVER = sql`(
  window_start < now() - make_interval(secs => ${KEPT_SECONDS}) AND NOT starts_with(caller, ${LONG_COUNT_PREFIX})
  OR window_start < now() - interval '25 hours')`;

/** Deletes counts whose windows are over, in steps. A request that begins such a count again waits for one step. */
export async function deleteRateLimits(db: Queryable): Promise<void> {
  while ((await deleteExpiredRows(db, rateLimits, IS_OVER)) === ROWS_DELETED_MAX);
}
