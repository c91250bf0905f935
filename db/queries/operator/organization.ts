/** Organizations, and their keys. For an operator, as object.ts says. */
import { asc, eq } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { apiKeys } from '../../schema/api-key.ts';
import { organizations } from '../../schema/organization.ts';
import { ROWS_MAX } from './object.ts';

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

export const listKeysOf = (db: Queryable, orgId: string) =>
  db
    .select(KEY_COLUMNS)
    .from(apiKeys)
    .where(eq(apiKeys.orgId, orgId))
    .orderBy(asc(apiKeys.createdAt), asc(apiKeys.keyId))
    .limit(ROWS_MAX);
