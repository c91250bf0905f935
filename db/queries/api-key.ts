/** API keys. A key is looked up by its hash at every request: no cache, since a rotated key is invalid at once. */
import { and, eq } from 'drizzle-orm';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Queryable } from '../client.ts';
import { apiKeys } from '../schema/api-key.ts';

export type ApiKeyRow = typeof apiKeys.$inferSelect;

/** The active key with this hash in this environment, expired or not; undefined for every other. */
export async function findActiveApiKey(db: Queryable, keyHash: Buffer, environment: EnvironmentName): Promise<ApiKeyRow | undefined> {
  const [row] = await db
    .select()
    .from(apiKeys)
    .where(and(eq(apiKeys.keyHash, keyHash), eq(apiKeys.status, 'active'), eq(apiKeys.environment, environment)))
    .limit(1);
  return row;
}

/** Notes a use; callers bound how often. */
export async function touchApiKey(db: Queryable, orgId: string, keyId: string, at: Date): Promise<void> {
  await db
    .update(apiKeys)
    .set({ lastUsedAt: at })
    .where(and(eq(apiKeys.orgId, orgId), eq(apiKeys.keyId, keyId)));
}
