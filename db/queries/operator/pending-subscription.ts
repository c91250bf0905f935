/**
 * Subscriptions with retries or a running replay, across organizations, for redispatches and sweeps. A page costs what
 * it lists, however many there are.
 */
import { type SQL, sql } from 'drizzle-orm';
import { subscriptionMessage } from '../../../domain/outbox.ts';
import type { Queryable } from '../../client.ts';
import type { OpenFilter, OpenObject, OpenPage } from './waiting.ts';

type SubscriptionKey = { readonly webhookId: string; readonly orgId: string };

/**
 * The first `limit` of these subscriptions for which a condition holds, in the order of their ids. One with retries is
 * searched in their index after the one before it, until enough are found.
 *
 * @param isWanted the condition, for the expression that holds an id
 */
async function pendingSubscriptions(
  db: Queryable,
  { after, limit }: OpenPage,
  isWanted: (webhookId: SQL) => SQL,
): Promise<SubscriptionKey[]> {
  const { rows } = await db.execute<SubscriptionKey>(sql`
    WITH RECURSIVE retried (webhook_id, is_wanted, found) AS (
      SELECT ${after}::text, false, 0
      UNION ALL
      SELECT next.webhook_id, next.is_wanted, previous.found + next.is_wanted::int
      FROM retried previous CROSS JOIN LATERAL (
        SELECT d.webhook_id, ${isWanted(sql`d.webhook_id`)} AS is_wanted FROM webhook_deliveries d
        WHERE d.status = 'pending' AND d.lane_key IS NULL AND d.webhook_id > previous.webhook_id
        ORDER BY d.webhook_id LIMIT 1
      ) next WHERE previous.found < ${limit}
    ), pending AS (
      SELECT webhook_id FROM retried WHERE is_wanted
      UNION (SELECT r.webhook_id FROM webhook_replays r
        WHERE r.status = 'running' AND r.webhook_id > ${after} AND ${isWanted(sql`r.webhook_id`)}
        ORDER BY r.webhook_id LIMIT ${limit})
    )
    SELECT w.webhook_id AS "webhookId", w.org_id AS "orgId" FROM pending p CROSS JOIN LATERAL (
      SELECT webhook_id, org_id FROM webhooks WHERE webhook_id = p.webhook_id LIMIT 1
    ) w ORDER BY p.webhook_id LIMIT ${limit}`);
  return rows;
}

/** Those of these subscriptions for which a condition holds, in the order of their ids. */
async function subscriptionsAmong(
  db: Queryable,
  { after, limit }: OpenPage,
  { among, isWanted }: { readonly among: readonly string[]; readonly isWanted: (webhookId: SQL) => SQL },
): Promise<SubscriptionKey[]> {
  const { rows } = await db.execute<SubscriptionKey>(sql`
    SELECT w.webhook_id AS "webhookId", w.org_id AS "orgId" FROM webhooks w
    WHERE w.webhook_id = ANY (${sql.param([...among])}::text[]) AND w.webhook_id > ${after}
      AND ${isWanted(sql`w.webhook_id`)}
    ORDER BY w.webhook_id LIMIT ${limit}`);
  return rows;
}

const openSubscription =
  (requestId: string) =>
  (key: SubscriptionKey): OpenObject => ({ orgId: key.orgId, message: subscriptionMessage(key, requestId) });

/** Subscriptions with retries, due or not, or a running replay, in the order of their ids. */
export async function listPendingSubscriptions(
  db: Queryable,
  page: OpenPage,
  requestId: string,
): Promise<OpenObject[]> {
  return (await pendingSubscriptions(db, page, () => sql`true`)).map(openSubscription(requestId));
}

/**
 * Subscriptions with retries that are due, or to be ended, or a running replay. What became due in that time is left
 * out.
 */
export async function listDueSubscriptions(
  db: Queryable,
  { recent, among, ...page }: OpenPage & OpenFilter,
  requestId: string,
): Promise<OpenObject[]> {
  const latest = recent === undefined ? sql`now()` : sql`${recent.since.toISOString()}::timestamptz`;
  // With EXISTS, PostgreSQL may read all that are due into a hash table first.
  const isDue = (webhookId: SQL) => sql`(
    (SELECT true FROM webhook_deliveries due WHERE due.webhook_id = ${webhookId} AND due.status = 'pending'
      AND due.lane_key IS NULL AND due.next_attempt_at <= ${latest} LIMIT 1) IS NOT NULL
    OR (SELECT true FROM webhook_replays due WHERE due.webhook_id = ${webhookId} AND due.status = 'running'
      AND due.created_at <= ${latest} LIMIT 1) IS NOT NULL)`;
  const rows = among
    ? await subscriptionsAmong(db, page, { among, isWanted: isDue })
    : await pendingSubscriptions(db, page, isDue);
  return rows.map(openSubscription(requestId));
}

/** Longer than any round of a subscription's workflow. At its end, the row says when the workflow looks next. */
const UNHEARD_MINUTES = 10;

/** Subscriptions with retries or a running replay whose workflow should have looked at them long ago. */
export const listUnheardSubscriptions = (db: Queryable, limit: number): Promise<SubscriptionKey[]> =>
  pendingSubscriptions(
    db,
    { after: '', limit },
    (webhookId) => sql`coalesce((SELECT s.retries_at FROM webhooks s WHERE s.webhook_id = ${webhookId})
      < now() - ${UNHEARD_MINUTES} * interval '1 minute', false)`,
  );
