/** Organizations, and their keys. For an operator, as object.ts says. */
import { and, asc, desc, eq, or, sql } from 'drizzle-orm';
import { KEY_PREFIX_LENGTH } from '../../../domain/api-key.ts';
import type { EnvironmentName } from '../../../domain/runtime.ts';
import { OPEN_STATUSES } from '../../../domain/settlement/state.ts';
import type { Queryable } from '../../client.ts';
import { apiKeys } from '../../schema/api-key.ts';
import { organizations } from '../../schema/organization.ts';
import { isWorking } from '../api-key.ts';
import { lastOf, ROWS_MAX } from './object.ts';

export async function findOrganizationObject(db: Queryable, orgId: string) {
  const [row] = await db.select().from(organizations).where(eq(organizations.orgId, orgId));
  return row;
}

/** What operators see of a key. */
export const KEY_COLUMNS = {
  keyId: apiKeys.keyId,
  name: apiKeys.name,
  scope: apiKeys.scope,
  status: apiKeys.status,
  prefix: apiKeys.prefix,
  createdAt: apiKeys.createdAt,
  lastUsedAt: apiKeys.lastUsedAt,
  lastUsedFrom: apiKeys.lastUsedFrom,
  allowedCidrs: apiKeys.allowedCidrs,
  expiresAt: apiKeys.expiresAt,
};

/** The keys that an operator may mean: by the id, or by the start of the raw key, which several keys may share. */
export const listKeysNamed = (db: Queryable, idOrPrefix: string, environment: EnvironmentName) =>
  db
    .select({ ...KEY_COLUMNS, orgId: apiKeys.orgId })
    .from(apiKeys)
    .where(
      and(
        eq(apiKeys.environment, environment),
        or(eq(apiKeys.keyId, idOrPrefix), eq(apiKeys.prefix, idOrPrefix.slice(0, KEY_PREFIX_LENGTH))),
      ),
    )
    .orderBy(asc(apiKeys.createdAt), asc(apiKeys.keyId))
    .limit(ROWS_MAX);

/** What of an organization is under way: open settlements, enabled subscriptions, valid keys. */
export async function countUnderWay(db: Queryable, orgId: string, now: Date) {
  const open = sql.param([...OPEN_STATUSES]);
  const { rows } = await db.execute<{
    open_settlements: number;
    enabled_subscriptions: number;
    valid_keys: number;
  }>(sql`
    SELECT (SELECT count(*)::int FROM settlements WHERE org_id = ${orgId} AND status = ANY (${open})) AS open_settlements,
      (SELECT count(*)::int FROM webhooks
       WHERE org_id = ${orgId} AND status = 'enabled' AND deleted_at IS NULL) AS enabled_subscriptions,
      (SELECT count(*)::int FROM api_keys WHERE org_id = ${orgId} AND status = 'active'
         AND (expires_at IS NULL OR expires_at > ${now.toISOString()}::timestamptz)) AS valid_keys`);
  return rows[0] ?? {};
}

/** The latest of those that have ended, then those that are valid; each in the order of creation. */
export const listKeysOf = (db: Queryable, orgId: string, now: Date) =>
  lastOf(
    db
      .select(KEY_COLUMNS)
      .from(apiKeys)
      .where(eq(apiKeys.orgId, orgId))
      .orderBy(sql`(${isWorking(now)}) DESC`, desc(apiKeys.createdAt), desc(apiKeys.keyId)),
  );
