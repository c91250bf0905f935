/**
 * API keys. Those of one organization change one after another, under its row's lock. No key is ever deleted.
 */
import { and, count, eq, gt, isNull, ne, notInArray, or, sql } from 'drizzle-orm';
import { ACTIVE_KEYS_MAX, type ApiKey, type KeyLimits } from '../../domain/api-key.ts';
import { notBefore } from '../../domain/clock.ts';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import type { Database, Queryable, Tx } from '../client.ts';
import { apiKeys } from '../schema/api-key.ts';
import { type List, pageOf, readPage } from './page.ts';

export type ApiKeyRow = typeof apiKeys.$inferSelect;
/** What identifies a key: its id, the prefix that is shown, and the hash of the raw key under one pepper. */
export type ApiKeyCredential = Pick<ApiKey, 'keyId' | 'environment' | 'prefix'> & {
  readonly keyHash: Buffer;
  readonly pepperId: string;
};
export type NewApiKey = ApiKeyCredential & Pick<ApiKey, 'name' | 'createdAt' | 'createdBy'> & KeyLimits;

const toApiKey = ({
  keyHash: _hash,
  pepperId: _pepper,
  eventSequence: _sequence,
  eventAt: _at,
  ...row
}: ApiKeyRow): ApiKey => row;
/** Whether a key is valid at `at`. */
export const isWorking = (at: Date) =>
  and(eq(apiKeys.status, 'active'), or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, at)));
const owned = (orgId: string, keyId: string) => and(eq(apiKeys.orgId, orgId), eq(apiKeys.keyId, keyId));

/**
 * Stores when the key was last used and from which network, and its hash under the current pepper. The caller limits
 * how often.
 */
export async function touchApiKey(
  db: Queryable,
  { orgId, keyId }: Pick<ApiKey, 'orgId' | 'keyId'>,
  { at, from }: { readonly at: Date; readonly from: string },
  hashed: Partial<Pick<NewApiKey, 'keyHash' | 'pepperId'>> = {},
): Promise<void> {
  await db
    .update(apiKeys)
    .set({
      lastUsedAt: sql`greatest(${apiKeys.lastUsedAt}, ${apiKeys.createdAt}, ${at.toISOString()}::timestamptz)`,
      lastUsedFrom: from,
      ...hashed,
    })
    .where(owned(orgId, keyId));
}

/** Writes a new active key. */
export async function insertApiKey(tx: Tx, orgId: string, { keyHash, pepperId, ...key }: NewApiKey): Promise<ApiKey> {
  const unused = { status: 'active', lastUsedAt: null, lastUsedFrom: null, revokedAt: null, rotatedTo: null } as const;
  const stored: ApiKey = { ...key, orgId, ...unused };
  await tx
    .insert(apiKeys)
    .values({ ...stored, allowedCidrs: key.allowedCidrs && [...key.allowedCidrs], keyHash, pepperId });
  return stored;
}

/** @throws DomainError `not_found`, for another organization's key as well */
export async function getApiKey(db: Queryable, orgId: string, keyId: string): Promise<ApiKey> {
  const [row] = await db.select().from(apiKeys).where(owned(orgId, keyId)).limit(1);
  if (!row) throw new DomainError('not_found');
  return toApiKey(row);
}

/** Every key the organization ever had, newest first. */
export async function listApiKeys(db: Database, orgId: string, page: Page): Promise<Paged<ApiKey>> {
  const list: List<ApiKeyRow> = {
    table: apiKeys,
    where: eq(apiKeys.orgId, orgId),
    createdAt: apiKeys.createdAt,
    id: apiKeys.keyId,
    cursorOf: ({ createdAt: at, keyId: id }) => ({ at, id }),
  };
  const paged = await readPage(db, list, page, pageOf(db.select().from(apiKeys).$dynamic()));
  return { ...paged, items: paged.items.map(toApiKey) };
}

/** How many valid keys are hashed with each pepper. */
export async function countKeysByPepper(
  db: Queryable,
  at: Date,
): Promise<{ readonly pepperId: string; readonly count: number }[]> {
  return await db
    .select({ pepperId: apiKeys.pepperId, count: count() })
    .from(apiKeys)
    .where(isWorking(at))
    .groupBy(apiKeys.pepperId);
}

/** How many keys of the organization are valid at `at`. */
export async function countActiveKeys(db: Queryable, orgId: string, at: Date): Promise<number> {
  const [row] = await db
    .select({ count: count() })
    .from(apiKeys)
    .where(and(eq(apiKeys.orgId, orgId), isWorking(at)));
  return row?.count ?? 0;
}

/**
 * The valid keys that this key or one of its predecessors made, and what those made, and so on; successors count as
 * made by both the key that they replace and the one that rotated it. The oldest first. The key itself is not among
 * them.
 */
export async function listDescendants(tx: Tx, orgId: string, keyId: string, at: Date): Promise<ApiKey[]> {
  const descends = sql`${apiKeys.keyId} IN (
    WITH RECURSIVE root AS (
      SELECT key_id FROM api_keys WHERE org_id = ${orgId} AND key_id = ${keyId}
       UNION SELECT key.key_id FROM root JOIN api_keys key ON key.rotated_to = root.key_id
    ), line AS (
      SELECT key_id FROM root
       UNION SELECT made.key_id FROM line
               JOIN LATERAL (
                 SELECT key_id FROM api_keys WHERE created_by = line.key_id
                  UNION SELECT rotated_to FROM api_keys WHERE key_id = line.key_id AND rotated_to IS NOT NULL
               ) made ON true
    )
    SELECT key_id FROM line)`;
  const rows = await tx
    .select()
    .from(apiKeys)
    .where(and(eq(apiKeys.orgId, orgId), ne(apiKeys.keyId, keyId), isWorking(at), descends))
    .orderBy(apiKeys.createdAt, apiKeys.keyId)
    .limit(ACTIVE_KEYS_MAX);
  return rows.map(toApiKey);
}

/** Whether the organization has a key of scope `full` that is valid at `at`, besides these. */
export async function hasOtherFullKey(
  db: Queryable,
  orgId: string,
  keyIds: readonly string[],
  at: Date,
): Promise<boolean> {
  const [row] = await db
    .select({ keyId: apiKeys.keyId })
    .from(apiKeys)
    .where(
      and(eq(apiKeys.orgId, orgId), notInArray(apiKeys.keyId, [...keyIds]), eq(apiKeys.scope, 'full'), isWorking(at)),
    )
    .limit(1);
  return row !== undefined;
}

/** Marks a key as replaced by another one. The caller holds the organization's lock and has read the key under it. */
export async function setApiKeyRotated(tx: Tx, key: ApiKey, rotatedTo: string): Promise<ApiKey> {
  const rotated = { status: 'rotated', rotatedTo } as const;
  await tx.update(apiKeys).set(rotated).where(owned(key.orgId, key.keyId));
  return { ...key, ...rotated };
}

/** As `setApiKeyRotated`, for a key that gets no successor. */
export async function setApiKeyRevoked(tx: Tx, key: ApiKey, at: Date): Promise<ApiKey> {
  const revoked = { status: 'revoked', revokedAt: notBefore(at, key.createdAt) } as const;
  await tx.update(apiKeys).set(revoked).where(owned(key.orgId, key.keyId));
  return { ...key, ...revoked };
}
