/**
 * Organizations. An organization's row is also the lock for changes of its keys and for its number of subscriptions.
 */
import { eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Organization } from '../../domain/organization.ts';
import type { Allowance } from '../../domain/quota.ts';
import type { Queryable, Tx } from '../client.ts';
import { organizations } from '../schema/organization.ts';

export async function insertOrganization(tx: Tx, organization: Organization): Promise<void> {
  await tx.insert(organizations).values(organization);
}

/** @throws DomainError `not_found` */
export async function getOrganization(db: Queryable, orgId: string): Promise<Organization> {
  const [row] = await db.select().from(organizations).where(eq(organizations.orgId, orgId)).limit(1);
  if (!row) throw new DomainError('not_found');
  return row;
}

/** Gives a locked organization other limits. */
export async function setAllowance(tx: Tx, orgId: string, { tier, limits }: Allowance): Promise<void> {
  await tx.update(organizations).set({ tier, limits }).where(eq(organizations.orgId, orgId));
}

/** Suspends a locked organization since this time, or resumes it by null. */
export async function setSuspended(tx: Tx, orgId: string, suspendedAt: Date | null): Promise<void> {
  await tx.update(organizations).set({ suspendedAt }).where(eq(organizations.orgId, orgId));
}

/**
 * Locks an organization's row until the transaction ends. Rows that refer to it can still be written meanwhile.
 *
 * @throws DomainError `not_found`
 */
export async function lockOrganization(tx: Tx, orgId: string): Promise<Organization> {
  const [row] = await tx.select().from(organizations).where(eq(organizations.orgId, orgId)).for('no key update');
  if (!row) throw new DomainError('not_found');
  return row;
}
