/** Evidence certificates, their verification and the published keys (contract §7). */
import { z } from 'zod';
import { CERTIFICATE_ID_PATTERN, CERTIFICATE_SCHEMA_VERSIONS, UNANCHORED } from '../../domain/certificate.ts';
import { EVIDENCE_KINDS } from '../../domain/evidence.ts';
import { PAYMENT_METHODS } from '../../domain/payment-method.ts';
import { ACCOUNTS } from '../../domain/posting.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement.ts';
import {
  corridor,
  currency,
  EXAMPLE_SETTLEMENT_ID,
  environment,
  objectId,
  pattern,
  rail,
  settlementId,
  timestamp,
} from './common.ts';

const CERTIFICATE_ID_LENGTH = 37;

const certificateId = () =>
  pattern(CERTIFICATE_ID_PATTERN, CERTIFICATE_ID_LENGTH, CERTIFICATE_ID_LENGTH).meta({
    example: 'CERT-9F86D081884C7D659A2FEAA0C55AD015',
  });

export const CertificatePath = z.object({ cert_id: certificateId() });

/** A loose object, because every request has other headers too. */
export const CertificateConditions = z.looseObject({
  'if-none-match': z
    .string()
    .optional()
    .meta({ description: 'If it contains the ETag of the certificate, the answer is 304.' }),
});

export const CertificateVerifyQuery = z.strictObject({
  settlement_id: settlementId().meta({ description: 'The settlement that the certificate is claimed to belong to.' }),
});

const anchor = () => z.object({ status: z.literal(UNANCHORED.status) });
const amount = () => z.string().meta({ example: '250.00' });
const money = () => z.object({ amount: amount(), currency: currency() });

/** The stored bytes are the canonical JSON (RFC 8785) of this object. */
export const EvidenceCertificate = z
  .object({
    schema_version: z.enum(CERTIFICATE_SCHEMA_VERSIONS),
    settlement_id: z.string().meta({ example: EXAMPLE_SETTLEMENT_ID }),
    org_id: objectId(),
    corridor: corridor(),
    amounts: z.object({ source: money(), destination: money() }),
    fees: z.object({ input_fee: amount(), platform_fee: amount(), total_fees: amount(), currency: currency() }),
    rate: z.object({ fx_rate: z.string().meta({ example: '157.250000' }), rate_source: z.literal('static_fixture') }),
    payment_method: z.enum(PAYMENT_METHODS),
    payout_rail: rail(),
    parties: z.object({ recipient_id: z.string(), payee_sha256: z.string().nullable().optional() }),
    timeline: z.array(
      z.object({
        sequence: z.string().meta({ example: '1' }),
        status: z.enum(SETTLEMENT_STATUSES),
        at: timestamp(),
        evidence_id: z.string().nullable(),
      }),
    ),
    evidence: z.array(z.object({ evidence_id: z.string(), kind: z.enum(EVIDENCE_KINDS), sha256: z.string() })),
    postings: z.array(
      z.object({ step: z.string(), account: z.enum(ACCOUNTS), amount: amount(), currency: currency() }),
    ),
    environment: environment(),
    simulation: z.literal(true),
    anchor: anchor(),
  })
  .meta({ id: 'EvidenceCertificate' });

export const CertificateVerification = z
  .object({
    cert_id: certificateId(),
    settlement_id: settlementId(),
    valid: z.boolean().meta({ description: 'True if every check passed.' }),
    checks: z.object({
      exists: z.boolean(),
      digest_matches_id: z.boolean().meta({ description: 'The digest of the stored bytes matches the id.' }),
      settlement_matches: z.boolean().meta({ description: 'The certificate belongs to the settlement in the query.' }),
      signature_valid: z.boolean().meta({ description: 'A published key signed exactly these bytes.' }),
      ledger_balanced: z
        .boolean()
        .meta({ description: 'The journal sums to zero per currency and matches the certified postings.' }),
    }),
    anchor: anchor(),
    environment: environment(),
  })
  .meta({ id: 'CertificateVerification' });

export const JsonWebKeySet = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal('OKP'),
        crv: z.literal('Ed25519'),
        x: z.string(),
        kid: z.string(),
        use: z.literal('sig'),
        alg: z.literal('EdDSA'),
      }),
    ),
  })
  .meta({ id: 'JsonWebKeySet' });
