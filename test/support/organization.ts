/** Organizations in the database, without the API. */
import type { Database } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { organizations } from '../../db/schema/index.ts';
import type { Organization } from '../../domain/organization.ts';

/** A partner of the local sandbox. */
export async function insertTestOrganization(db: Database): Promise<Organization> {
  const organization: Organization = {
    orgId: newId(),
    kind: 'partner',
    name: 'Acme',
    country: 'JM',
    contactEmail: 'dev@acme.example',
    environment: 'local sandbox',
    tier: 'standard',
    limits: {},
    createdAt: new Date(),
    suspendedAt: null,
  };
  await db.insert(organizations).values(organization);
  return organization;
}
