/** How many objects an organization has created, against its quotas (contract §2). Each creation counts by one row. */
import { eq } from 'drizzle-orm';
import { type CountedKind, quotaExceeded, TIER_QUOTAS, TIERS } from '../../domain/quota.ts';
import type { Queryable, Tx } from '../client.ts';
import { quotaUses } from '../schema/organization.ts';
import { statement } from '../statement.ts';

const takeStatement = statement<[orgId: string, kind: CountedKind, quotas: string], { readonly used: number }>(
  'quota.take',
  `WITH allowed AS (
     SELECT org_id, coalesce(limits ->> $2, $3::jsonb ->> tier)::int AS quota FROM organizations WHERE org_id = $1
   )
   INSERT INTO quota_uses AS kept (org_id, kind, used) SELECT org_id, $2, 1 FROM allowed WHERE quota > 0
   ON CONFLICT (org_id, kind) DO UPDATE SET used = kept.used + 1
     WHERE kept.used < (SELECT quota FROM allowed)
   RETURNING used`,
);

/**
 * Counts an object that this transaction creates. Creations of one kind in one organization follow each other from here
 * to their commit.
 *
 * @throws DomainError `quota_exceeded`
 */
export async function takeQuota(tx: Tx, orgId: string, kind: CountedKind): Promise<void> {
  const ofTiers = Object.fromEntries(TIERS.map((tier) => [tier, TIER_QUOTAS[tier][kind]]));
  const taken = await takeStatement(tx, orgId, kind, JSON.stringify(ofTiers));
  if (taken.length === 0) throw quotaExceeded(kind);
}

/** What `takeQuota` has counted for an organization; kinds without an object are absent. */
export async function listQuotaUses(
  db: Queryable,
  orgId: string,
): Promise<readonly { readonly kind: CountedKind; readonly used: number }[]> {
  return await db
    .select({ kind: quotaUses.kind, used: quotaUses.used })
    .from(quotaUses)
    .where(eq(quotaUses.orgId, orgId));
}
