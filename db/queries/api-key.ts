/**
 * API keys. A key is looked up by its hash at every request, without a cache, because a rotated key is invalid at once.
 * The keys of one organization change one after another, under its row's lock. No key is ever deleted.
 */
import { and, count, desc, eq, gt, inArray, isNull, ne, or, sql } from 'drizzle-orm';
import type { ApiKey } from '../../domain/api-key.ts';
import { notBefore } from '../../domain/clock.ts';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Database, Queryable, Tx } from '../client.ts';
import { apiKeys } from '../schema/api-key.ts';

export type ApiKeyRow = typeof apiKeys.$inferSelect;
/** What identifies a key: its id, the prefix that is shown, and the hash of the raw key under one pepper. */
export type ApiKeyCredential = Pick<ApiKey, 'keyId' | 'environment' | 'prefix'> & {
  readonly keyHash: Buffer;
  readonly pepperId: string;
};
export type NewApiKey = ApiKeyCredential & Pick<ApiKey, 'name' | 'scope' | 'createdAt' | 'expiresAt'>;

const toApiKey = ({ keyHash: _hash, pepperId: _pepper, ...row }: ApiKeyRow): ApiKey => row;
const owned = (orgId: string, keyId: string) => and(eq(apiKeys.orgId, orgId), eq(apiKeys.keyId, keyId));

/** The active key with one of these hashes (one for each pepper) in this environment, expired or not. */
export async function findActiveApiKey(
  db: Queryable,
  keyHashes: readonly Buffer[],
  environment: EnvironmentName,
): Promise<ApiKeyRow | undefined> {
  const [row] = await db
    .select()
    .from(apiKeys)
    .where(
      and(inArray(apiKeys.keyHash, [...keyHashes]), eq(apiKeys.status, 'active'), eq(apiKeys.environment, environment)),
    )
    .limit(1);
  return row;
}

/**
 * Stores when the key was last used, and its hash under the current pepper. The caller limits how often.
 */
export async function touchApiKey(
  db: Queryable,
  { orgId, keyId }: Pick<ApiKey, 'orgId' | 'keyId'>,
  at: Date,
  hashed: Partial<Pick<NewApiKey, 'keyHash' | 'pepperId'>> = {},
): Promise<void> {
  await db
    .update(apiKeys)
    .set({
      lastUsedAt: sql`greatest(${apiKeys.lastUsedAt}, ${apiKeys.createdAt}, ${at.toISOString()}::timestamptz)`,
      ...hashed,
    })
    .where(owned(orgId, keyId));
}

/** Writes a new active key. */
export async function insertApiKey(tx: Tx, orgId: string, { keyHash, pepperId, ...key }: NewApiKey): Promise<ApiKey> {
  const unused = { status: 'active', lastUsedAt: null, revokedAt: null, rotatedTo: null } as const;
  const stored: ApiKey = { ...key, orgId, ...unused };
  await tx.insert(apiKeys).values({ ...stored, keyHash, pepperId });
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
  const ofOrganization = eq(apiKeys.orgId, orgId);
  const [rows, [total]] = await Promise.all([
    db
      .select()
      .from(apiKeys)
      .where(ofOrganization)
      .orderBy(desc(apiKeys.createdAt), desc(apiKeys.keyId))
      .limit(page.limit)
      .offset(page.offset),
    db.select({ count: count() }).from(apiKeys).where(ofOrganization),
  ]);
  return { items: rows.map(toApiKey), total: total?.count ?? 0 };
}

/** How many valid keys are hashed with each pepper; `pepperId` is null for keys from before it was stored. */
export async function countKeysByPepper(
  db: Queryable,
  at: Date,
): Promise<{ readonly pepperId: string | null; readonly count: number }[]> {
  const working = and(eq(apiKeys.status, 'active'), or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, at)));
  return await db
    .select({ pepperId: apiKeys.pepperId, count: count() })
    .from(apiKeys)
    .where(working)
    .groupBy(apiKeys.pepperId);
}

/** Whether the organization has another key of scope `full` that is valid at `at`. */
export async function hasOtherFullKey(tx: Tx, orgId: string, keyId: string, at: Date): Promise<boolean> {
  const [row] = await tx
    .select({ keyId: apiKeys.keyId })
    .from(apiKeys)
    .where(
      and(
        eq(apiKeys.orgId, orgId),
        ne(apiKeys.keyId, keyId),
        eq(apiKeys.scope, 'full'),
        eq(apiKeys.status, 'active'),
        or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, at)),
      ),
    )
    .limit(1);
  return row !== undefined;
}

/** Marks a key as replaced by another one. The caller holds the organization's lock and has read the key under it. */
export async function setApiKeyRotated(tx: Tx, key: ApiKey, rotatedTo: string): Promise<void> {
  await tx.update(apiKeys).set({ status: 'rotated', rotatedTo }).where(owned(key.orgId, key.keyId));
}

/** As `setApiKeyRotated`, for a key that gets no successor. */
export async function setApiKeyRevoked(tx: Tx, key: ApiKey, at: Date): Promise<ApiKey> {
  const revoked = { status: 'revoked', revokedAt: notBefore(at, key.createdAt) } as const;
  await tx.update(apiKeys).set(revoked).where(owned(key.orgId, key.keyId));
  return { ...key, ...revoked };
}
