/** An API key as its organization sees it (contract §3). */
import { type ApiKey, apiKeyStatus } from '../api-key.ts';

/** The key object of the API. It has neither the raw key nor its hash. */
export function apiKeyResource(key: ApiKey, now: Date) {
  return {
    key_id: key.keyId,
    org_id: key.orgId,
    name: key.name,
    scope: key.scope,
    status: apiKeyStatus(key, now),
    environment: key.environment,
    prefix: key.prefix,
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    last_used_from: key.lastUsedFrom,
    allowed_cidrs: key.allowedCidrs && [...key.allowedCidrs],
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    rotated_to: key.rotatedTo,
    created_by: key.createdBy,
  };
}
