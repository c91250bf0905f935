/**
 * Checks one stored certificate (contract §7), from its stored bytes and from what the database says now. Trusts
 * no column that the bytes can be compared with.
 */
import { createHash } from 'node:crypto';
import type { CertificateRow } from '../db/queries/certificate.ts';
import { certificateId, isLedgerConfirmed, type StepPosting } from '../domain/certificate.ts';
import type { CertificateKeys } from './certificate-key.ts';
import { EvidenceCertificate } from './schemas/certificate.ts';

export type CertificateChecks = {
  readonly exists: boolean;
  readonly digest_matches_id: boolean;
  readonly settlement_matches: boolean;
  readonly signature_valid: boolean;
  readonly ledger_balanced: boolean;
};

/**
 * @param certificate as stored
 * @param question `settlementId` that the certificate is said to be of; `journal`, all postings of its own settlement
 */
export async function checkCertificate(
  keys: CertificateKeys,
  certificate: CertificateRow,
  question: { readonly settlementId: string; readonly journal: readonly StepPosting[] },
): Promise<CertificateChecks> {
  const sha256 = createHash('sha256').update(certificate.content).digest();
  const content = readContent(certificate.content);
  return {
    exists: true,
    digest_matches_id:
      sha256.equals(certificate.sha256) && certificateId(sha256.toString('hex')) === certificate.certId,
    settlement_matches:
      [certificate.settlementId, content?.settlement_id].every((id) => id === question.settlementId) &&
      content?.org_id === certificate.orgId,
    signature_valid: await keys.verifies(certificate.signature, certificate.content),
    ledger_balanced: content !== undefined && isLedgerConfirmed(content.postings, question.journal),
  };
}

/** Undefined where the bytes are no certificate any more. */
function readContent(bytes: Buffer) {
  try {
    return EvidenceCertificate.safeParse(JSON.parse(bytes.toString())).data;
  } catch {
    return undefined;
  }
}
