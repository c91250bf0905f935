/** What operators did. An entry is written in the transaction of the change; a trigger makes entries permanent. */
import { and, desc, eq, sql } from 'drizzle-orm';
import type { Queryable, Tx } from '../client.ts';
import { newId } from '../id.ts';
import { AUDIT_ACTIONS, type AuditAction, auditEntries } from '../schema/audit.ts';

export { AUDIT_ACTIONS, type AuditAction };

/** What an operator does: who, why, and the request id that events show. */
export type OperatorAct = { readonly operator: string; readonly note: string; readonly requestId: string };

export type AuditEntry = Omit<typeof auditEntries.$inferSelect, 'auditId' | 'orgId'>;

/** @param orgId the organization of the object; null for the whole service */
export async function insertAuditEntry(tx: Tx, orgId: string | null, entry: AuditEntry): Promise<void> {
  await insertAuditEntries(tx, [{ ...entry, orgId }]);
}

/** Several entries in one statement. */
export async function insertAuditEntries(
  tx: Tx,
  entries: readonly (AuditEntry & { readonly orgId: string | null })[],
): Promise<void> {
  if (entries.length > 0)
    await tx.insert(auditEntries).values(entries.map((entry) => ({ ...entry, auditId: newId() })));
}

/** The latest entry of this action for an object whose id starts with `objectIdStart`. */
export async function findLatestAuditEntry(
  db: Queryable,
  action: AuditAction,
  objectIdStart: string,
): Promise<AuditEntry | undefined> {
  const [entry] = await db
    .select()
    .from(auditEntries)
    .where(and(eq(auditEntries.action, action), sql`starts_with(${auditEntries.objectId}, ${objectIdStart})`))
    .orderBy(desc(auditEntries.at), desc(auditEntries.auditId))
    .limit(1);
  return entry;
}
