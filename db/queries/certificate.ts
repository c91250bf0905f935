/** Evidence certificates, and the facts in them. A settlement has one certificate, which is permanent (contract §7). */
import { and, asc, count, eq, sql } from 'drizzle-orm';
import type { CertificateFacts, SettlementFacts, StepPosting } from '../../domain/certificate.ts';
import { DomainError } from '../../domain/error.ts';
import type { SettlementChange } from '../../domain/settlement/change.ts';
import type { SettlementTransition } from '../../domain/settlement/state.ts';
import { type Aggregated, jsonListSql } from '../aggregated.ts';
import type { Queryable, Tx } from '../client.ts';
import { certificates } from '../schema/certificate.ts';
import { postings } from '../schema/settlement.ts';
import { statement } from '../statement.ts';
import { transitionsOf, transitionsSql } from './settlement-history.ts';

export type CertificateRow = typeof certificates.$inferSelect;

/** How many certificates are signed with each JWS header. The header names the signing key. */
export async function countCertificatesByHeader(
  db: Queryable,
): Promise<{ readonly header: string; readonly count: number }[]> {
  const header = sql<string>`split_part(${certificates.signature}, '.', 1)`;
  return await db.select({ header, count: count() }).from(certificates).groupBy(header);
}

/** @throws DomainError `not_found`, for another organization's certificate as well */
export async function getCertificate(db: Queryable, orgId: string, certId: string): Promise<CertificateRow> {
  const [row] = await db
    .select()
    .from(certificates)
    .where(and(eq(certificates.orgId, orgId), eq(certificates.certId, certId)))
    .limit(1);
  if (!row) throw new DomainError('not_found');
  return row;
}

type FactsRow = {
  readonly transitions: readonly Aggregated<SettlementTransition>[];
  readonly evidence: SettlementFacts['evidence'];
  readonly postings: readonly Aggregated<StepPosting>[];
};

const factsStatement = statement<[settlementId: string], FactsRow>(
  'read_certificate_facts',
  `SELECT ${transitionsSql('$1')} AS transitions, ${jsonListSql(`
    SELECT json_build_object('evidenceId', evidence_id, 'kind', kind, 'sha256', encode(sha256, 'hex'))
    FROM evidence WHERE settlement_id = $1 ORDER BY position`)} AS evidence, ${jsonListSql(`
    SELECT json_build_object('step', step, 'account', account, 'currency', currency, 'amountMinor', amount_minor::text)
    FROM postings WHERE settlement_id = $1 ORDER BY line`)} AS postings`,
);

/**
 * The facts of a settlement's certificate, once a change that settles it is written. Read under the settlement's lock,
 * before the change is written.
 */
export async function readCertificateFacts(
  tx: Tx,
  { after: settlement, ...change }: SettlementChange,
): Promise<CertificateFacts> {
  const [row] = await factsStatement(tx, settlement.settlementId);
  const { transitions = [], evidence = [], postings: posted = [] } = row ?? {};
  const booked = posted.map(({ amountMinor, ...posting }) => ({ ...posting, amountMinor: BigInt(amountMinor) }));
  return {
    settlement,
    transitions: [...transitionsOf(transitions), ...change.transitions],
    evidence: change.evidence ? [...evidence, change.evidence] : evidence,
    postings: [...booked, ...change.postings].toSorted(byStep),
  };
}

/** As COLLATE "C" does. The lines of a step come from one change, in their order. */
const byStep = (one: StepPosting, other: StepPosting): number =>
  Buffer.compare(Buffer.from(one.step), Buffer.from(other.step));

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
