/** A tenant (contract §3): whatever is read or written belongs to exactly one. */
import type { EnvironmentName } from './runtime.ts';

export type Organization = {
  readonly orgId: string;
  /** A consumer is a tenant of its own (contract §12). */
  readonly kind: 'partner' | 'consumer';
  readonly name: string;
  readonly country: string;
  readonly contactEmail: string;
  readonly environment: EnvironmentName;
  readonly createdAt: Date;
};

/** The organization object of the API. */
export function organizationResource(organization: Organization) {
  return {
    org_id: organization.orgId,
    name: organization.name,
    country: organization.country,
    contact_email: organization.contactEmail,
    status: 'active' as const,
    environment: organization.environment,
    created_at: organization.createdAt.toISOString(),
  };
}
