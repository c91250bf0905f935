/**
 * What operators did. An entry is written in the transaction of the change, as its last statement: from then until the
 * commit every other writer of entries waits, so that their chain is in the order of commit.
 */
import { and, asc, desc, eq, sql } from 'drizzle-orm';
import { type AuditLink, chained, GENESIS } from '../audit-chain.ts';
import type { Queryable, Tx } from '../client.ts';
import { newId } from '../id.ts';
import { AUDIT_ACTIONS, type AuditAction, auditEntries } from '../schema/audit.ts';

export { AUDIT_ACTIONS, type AuditAction };

/** What an operator does: who, why, and the request id that events show. */
export type OperatorAct = { readonly operator: string; readonly note: string; readonly requestId: string };

export type AuditRow = typeof auditEntries.$inferSelect;
export type AuditEntry = Omit<AuditRow, 'auditId' | 'orgId' | keyof AuditLink | 'previousHash'>;

/** @param orgId the organization of the object; null for the whole service */
export async function insertAuditEntry(tx: Tx, orgId: string | null, entry: AuditEntry): Promise<void> {
  await insertAuditEntries(tx, [{ ...entry, orgId }]);
}

/** Makes every other writer of entries wait until the transaction ends: for one who decides by the entries. */
export async function lockAudit(tx: Tx): Promise<void> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock(hashtextextended('audit_entries', 0))`);
}

/** Several entries in one statement. */
export async function insertAuditEntries(
  tx: Tx,
  entries: readonly (AuditEntry & { readonly orgId: string | null })[],
): Promise<void> {
  if (entries.length === 0) return;
  await lockAudit(tx);
  // A statement of its own: its snapshot has what the writer before has committed.
  let last = await findLastLink(tx);
  const rows: AuditRow[] = [];
  for (const entry of entries) {
    const row = chained(last, { ...entry, auditId: newId() });
    rows.push(row);
    last = row;
  }
  await tx.insert(auditEntries).values(rows);
}

async function findLastLink(tx: Tx): Promise<AuditLink> {
  const [last] = await tx
    .select({ sequence: auditEntries.sequence, hash: auditEntries.hash })
    .from(auditEntries)
    .orderBy(desc(auditEntries.sequence))
    .limit(1);
  return last ?? GENESIS;
}

/**
 * Entries in the order of their chain. Two with one number, which the database refuses, are told apart by their ids.
 */
export async function listAuditChain(
  db: Queryable,
  after: Pick<AuditRow, 'sequence' | 'auditId'>,
  limit: number,
): Promise<AuditRow[]> {
  return await db
    .select()
    .from(auditEntries)
    .where(sql`(${auditEntries.sequence}, ${auditEntries.auditId}) > (${after.sequence}, ${after.auditId})`)
    .orderBy(asc(auditEntries.sequence), asc(auditEntries.auditId))
    .limit(limit);
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
    .orderBy(desc(auditEntries.sequence))
    .limit(1);
  return entry;
}
