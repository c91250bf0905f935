/** What operators did by hand. Written in the transaction of the deed; a trigger holds that entries are permanent. */
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { auditEntries } from '../schema/audit.ts';

export type AuditEntry = Omit<typeof auditEntries.$inferSelect, 'auditId' | 'orgId'>;

export async function insertAuditEntry(tx: Tx, orgId: string, entry: AuditEntry): Promise<void> {
  await tx.insert(auditEntries).values({ ...entry, orgId, auditId: newId() });
}
