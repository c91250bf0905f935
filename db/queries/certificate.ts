/** Evidence certificates, and the facts in them. A settlement has one certificate, for ever (contract §7). */
import { and, asc, count, eq, sql } from 'drizzle-orm';
import type { SettlementFacts, StepPosting } from '../../domain/certificate.ts';
import { DomainError } from '../../domain/error.ts';
import type { Queryable, Tx } from '../client.ts';
import { certificates } from '../schema/certificate.ts';
import { evidence } from '../schema/evidence.ts';
import { postings, settlementTransitions } from '../schema/settlement.ts';

export type CertificateRow = typeof certificates.$inferSelect;

/** How many certificates are signed with each JWS header. The header names the signing key. */
export async function countCertificatesByHeader(
  db: Queryable,
): Promise<{ readonly header: string; readonly count: number }[]> {
  const header = sql<string>`split_part(${certificates.signature}, '.', 1)`;
  return await db.select({ header, count: count() }).from(certificates).groupBy(header);
}

/** The organization's certificate with this id. */
export async function findCertificate(
  db: Queryable,
  orgId: string,
  certId: string,
): Promise<CertificateRow | undefined> {
  const [row] = await db
    .select()
    .from(certificates)
    .where(and(eq(certificates.orgId, orgId), eq(certificates.certId, certId)))
    .limit(1);
  return row;
}

/** As `findCertificate`. @throws DomainError `not_found`, for another organization's certificate as well */
export async function getCertificate(db: Queryable, orgId: string, certId: string): Promise<CertificateRow> {
  const certificate = await findCertificate(db, orgId, certId);
  if (!certificate) throw new DomainError('not_found');
  return certificate;
}

/**
 * Stores a settlement's certificate, unless the settlement has one.
 *
 * @returns the certificate that is stored, and whether this call stored it
 */
export async function insertCertificate(
  tx: Tx,
  certificate: CertificateRow,
): Promise<{ readonly certificate: CertificateRow; readonly inserted: boolean }> {
  const inserted = await tx
    .insert(certificates)
    .values(certificate)
    .onConflictDoNothing()
    .returning({ certId: certificates.certId });
  if (inserted.length === 1) return { certificate, inserted: true };
  return {
    certificate: await getSettlementCertificate(tx, certificate.orgId, certificate.settlementId),
    inserted: false,
  };
}

/** @throws when the settlement has none. Then another settlement has a certificate of this id: a digest collision. */
async function getSettlementCertificate(tx: Tx, orgId: string, settlementId: string): Promise<CertificateRow> {
  const [row] = await tx
    .select()
    .from(certificates)
    .where(and(eq(certificates.orgId, orgId), eq(certificates.settlementId, settlementId)));
  if (!row) throw new Error(`the certificate of settlement ${settlementId} has the id of another one`);
  return row;
}

/** What a certificate says besides the settlement's row. Read it under the settlement's lock, once it has settled. */
export async function listCertificateFacts(tx: Tx, settlementId: string): Promise<SettlementFacts> {
  const transitions = await tx
    .select()
    .from(settlementTransitions)
    .where(eq(settlementTransitions.settlementId, settlementId))
    .orderBy(asc(settlementTransitions.sequence));
  const received = await tx
    .select({ evidenceId: evidence.evidenceId, kind: evidence.kind, sha256: evidence.sha256 })
    .from(evidence)
    .where(eq(evidence.settlementId, settlementId))
    .orderBy(asc(evidence.position));
  return {
    transitions,
    evidence: received.map((fact) => ({ ...fact, sha256: fact.sha256.toString('hex') })),
    postings: await listPostings(tx, settlementId),
  };
}

/** A settlement's journal by step and line. The order does not depend on the database's locale. */
export async function listPostings(db: Queryable, settlementId: string): Promise<StepPosting[]> {
  return await db
    .select({
      step: postings.step,
      account: postings.account,
      currency: postings.currency,
      amountMinor: postings.amountMinor,
    })
    .from(postings)
    .where(eq(postings.settlementId, settlementId))
    .orderBy(sql`${postings.step} COLLATE "C"`, asc(postings.line));
}
