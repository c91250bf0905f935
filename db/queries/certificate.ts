/** Evidence certificates, and the facts in them. A settlement has one certificate, which is permanent (contract §7). */
import { and, asc, count, eq, sql } from 'drizzle-orm';
import type { SettlementFacts, StepPosting } from '../../domain/certificate.ts';
import { DomainError } from '../../domain/error.ts';
import type { SettlementTransition } from '../../domain/settlement/state.ts';
import type { Aggregated } from '../aggregated.ts';
import type { Queryable, Tx } from '../client.ts';
import { certificates } from '../schema/certificate.ts';
import { postings } from '../schema/settlement.ts';
import { statement } from '../statement.ts';
import { currentTraceparent } from '../traceparent.ts';
import { fanOutText, type NewEvent, numberedEvent } from './event.ts';

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

const ISSUED = 'certificate.issued';

const insertStatement = statement<
  [
    certId: string,
    orgId: string,
    settlementId: string,
    content: Buffer,
    sha256: Buffer,
    signature: string,
    issuedAt: string,
    eventId: string,
    body: Buffer,
    at: string,
    requestId: string,
    traceparent: string | null,
  ],
  { readonly cert_id: string }
>(
  'insert_certificate',
  `WITH issued AS (
    INSERT INTO certificates (cert_id, org_id, settlement_id, content, sha256, signature, issued_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
    RETURNING cert_id, org_id, settlement_id
  ), named AS (
    UPDATE settlements SET certificate_id = issued.cert_id FROM issued
    WHERE settlements.org_id = issued.org_id AND settlements.settlement_id = issued.settlement_id
  ), event AS (
    INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
    SELECT $8, org_id, '${ISSUED}', 'certificate', cert_id, 1, $9, $10 FROM issued
    RETURNING event_id, org_id, type, object_id, $11::text AS request_id, $12::text AS traceparent
  ), ${fanOutText('event')}
  SELECT cert_id FROM issued`,
);

type IssuedEvent = Omit<NewEvent, 'objectType' | 'objectId' | 'type'>;

/**
 * Stores a settlement's certificate with the event about it, and its id in the settlement; one statement. If the
 * settlement has a certificate, nothing is written.
 *
 * @returns the certificate that is stored
 */
export async function insertCertificate(tx: Tx, row: CertificateRow, event: IssuedEvent): Promise<CertificateRow> {
  const { certId, orgId, settlementId, content, sha256, signature, issuedAt } = row;
  const certificate = [certId, orgId, settlementId, content, sha256, signature, issuedAt.toISOString()] as const;
  const { eventId, body, at, requestId } = numberedEvent(
    { ...event, objectType: 'certificate', objectId: certId, type: ISSUED },
    1,
  );
  const issued = await insertStatement(
    tx,
    ...certificate,
    eventId,
    body,
    at.toISOString(),
    requestId,
    currentTraceparent(),
  );
  return issued.length === 1 ? row : await getSettlementCertificate(tx, orgId, settlementId);
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

type FactsRow = {
  readonly transitions: readonly Aggregated<SettlementTransition>[];
  readonly evidence: SettlementFacts['evidence'];
  readonly postings: readonly Aggregated<StepPosting>[];
};

const factsStatement = statement<[settlementId: string], FactsRow>(
  'read_certificate_facts',
  `SELECT (
    SELECT coalesce(jsonb_agg(jsonb_build_object('sequence', sequence, 'from', from_status, 'to', to_status, 'at', at,
      'reason', reason, 'evidenceId', evidence_id) ORDER BY sequence), '[]')
    FROM settlement_transitions WHERE settlement_id = $1
  ) AS transitions, (
    SELECT coalesce(jsonb_agg(jsonb_build_object('evidenceId', evidence_id, 'kind', kind,
      'sha256', encode(sha256, 'hex')) ORDER BY position), '[]')
    FROM evidence WHERE settlement_id = $1
  ) AS evidence, (
    SELECT coalesce(jsonb_agg(jsonb_build_object('step', step, 'account', account, 'currency', currency,
      'amountMinor', amount_minor::text) ORDER BY step COLLATE "C", line), '[]')
    FROM postings WHERE settlement_id = $1
  ) AS postings`,
);

/** What a certificate says in addition to the settlement's row. Read it under the settlement's lock, once it has settled. */
export async function listCertificateFacts(tx: Tx, settlementId: string): Promise<SettlementFacts> {
  const [row] = await factsStatement(tx, settlementId);
  const { transitions = [], evidence = [], postings: posted = [] } = row ?? {};
  return {
    transitions: transitions.map(({ at, ...transition }) => ({ ...transition, at: new Date(at) })),
    evidence,
    postings: posted.map(({ amountMinor, ...posting }) => ({ ...posting, amountMinor: BigInt(amountMinor) })),
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
