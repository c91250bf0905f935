/** `show` of an organization. */
import { hasOtherFullKey } from '../db/queries/api-key.ts';
import { listAuditEntries } from '../db/queries/operator/object.ts';
import { findOrganizationObject, listKeysOf } from '../db/queries/operator/organization.ts';
import { listSettlementsOf } from '../db/queries/operator/settlement.ts';
import { listWebhooksOf } from '../db/queries/operator/webhook.ts';
import { maskEmail, maskName } from '../domain/mask.ts';
import { advice, organizationAdvice } from '../domain/operator-advice.ts';
import type { OwnLimits } from '../domain/quota.ts';
import type { OpsDeps } from './command.ts';
import type { Report } from './report.ts';
import { auditRow, keyRow, settlementRow, webhookRow } from './report-row.ts';

export async function reportOrganization({ db, now }: OpsDeps, orgId: string): Promise<Report | undefined> {
  const organization = await findOrganizationObject(db, orgId);
  if (!organization) return undefined;
  const isPartner = organization.kind === 'partner';
  const at = now();
  const hasFullKey = await hasOtherFullKey(db, orgId, [], at);
  return {
    kind: 'organization',
    id: orgId,
    facts: {
      organization_kind: organization.kind,
      name: isPartner ? organization.name : maskName(organization.name),
      country: organization.country,
      contact: maskEmail(organization.contactEmail),
      status: organization.suspendedAt === null ? 'active' : 'suspended',
      suspended_at: organization.suspendedAt,
      tier: organization.tier,
      own_limits: limitsText(organization.limits),
      environment: organization.environment,
      created_at: organization.createdAt,
    },
    lists: {
      keys: (await listKeysOf(db, orgId, at)).map((key) => keyRow(key, at)),
      subscriptions: (await listWebhooksOf(db, orgId)).map(webhookRow),
      latest_settlements: (await listSettlementsOf(db, orgId)).map(settlementRow),
      audit: (await listAuditEntries(db, orgId)).map(auditRow),
    },
    next: [
      isPartner || organization.suspendedAt !== null
        ? organizationAdvice(orgId, { hasFullKey, isSuspended: organization.suspendedAt !== null })
        : advice('None: a consumer signs in with a code and has no key.'),
    ],
  };
}

/** None: it has those of its tier. */
const limitsText = (limits: OwnLimits): string | null =>
  Object.entries(limits)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ') || null;
