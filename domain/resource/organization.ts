/** An organization as the API shows it (contract §3). */
import type { Organization } from '../organization.ts';

/** The fields of OrganizationResponse. */
export function organizationResource(organization: Organization) {
  return {
    org_id: organization.orgId,
    name: organization.name,
    country: organization.country,
    contact_email: organization.contactEmail,
    status: organization.suspendedAt === null ? ('active' as const) : ('suspended' as const),
    environment: organization.environment,
    created_at: organization.createdAt.toISOString(),
  };
}
