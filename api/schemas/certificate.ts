/** Evidence certificates, their verification and the published keys (contract §7). */
import { z } from 'zod';
import { CERTIFICATE_ID_PATTERN, CERTIFICATE_SCHEMA_VERSION, UNANCHORED } from '../../domain/certificate.ts';
import { EVIDENCE_KINDS } from '../../domain/settlement/evidence.ts';
import { ACCOUNTS } from '../../domain/settlement/posting.ts';
import {
  constant,
  corridor,
  currency,
  environment,
  flag,
  fxRate,
  objectId,
  openEnum,
  outputText,
  outputTextOrNull,
  pattern,
  rail,
  settlementId,
  settlementPaymentMethod,
  shownSettlementId,
  simulation,
  timestamp,
} from './common.ts';
import { settlementStatus } from './settlement.ts';

const CERTIFICATE_ID_LENGTH = 37;
const EXAMPLE_CERTIFICATE_ID = 'CERT-9F86D081884C7D659A2FEAA0C55AD015';
const EXAMPLE_SHA256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

const certificateId = () =>
  pattern(
    CERTIFICATE_ID_PATTERN,
    [CERTIFICATE_ID_LENGTH, CERTIFICATE_ID_LENGTH],
    `such as ${EXAMPLE_CERTIFICATE_ID}`,
  ).meta({
    description: 'The id of the certificate.',
    example: EXAMPLE_CERTIFICATE_ID,
  });

export const CertificatePath = z.object({ cert_id: certificateId() });

export const CertificateVerifyQuery = z.strictObject({
  settlement_id: settlementId('The settlement that the certificate is claimed to belong to.'),
});

const CertificateVersion = openEnum(
  'CertificateVersion',
  [CERTIFICATE_SCHEMA_VERSION],
  'The version of a certificate.',
);

const Anchor = z
  .object({ status: constant(UNANCHORED.status, 'The certificate is anchored nowhere.') })
  .meta({ id: 'CertificateAnchor', description: 'Where the certificate is anchored: nowhere.' });
const anchor = () => Anchor.meta({ description: 'Where the certificate is anchored: nowhere.' });

const amount = (description: string) => outputText(description, '250.00');

const CertificateMoney = z
  .object({ amount: amount('In major units.'), currency: currency('The currency of the amount.') })
  .meta({ id: 'CertificateMoney', description: 'An amount of money.' });

const CertificateAmounts = z
  .object({
    source: CertificateMoney.meta({ description: 'What the payer paid.' }),
    destination: CertificateMoney.meta({ description: 'What the recipient was paid.' }),
  })
  .meta({ id: 'CertificateAmounts', description: 'What was paid.' });

const CertificateFees = z
  .object({
    input_fee: amount('For collecting the money.'),
    platform_fee: amount('For the service.'),
    total_fees: amount('The sum of the fees.'),
    currency: currency('The currency of the fees.'),
  })
  .meta({ id: 'CertificateFees', description: 'The fees.' });

const CertificateRate = z
  .object({
    fx_rate: fxRate(),
    rate_source: constant('static_fixture', 'The rates are fixed test data.'),
  })
  .meta({ id: 'CertificateRate', description: 'The rate.' });

const CertificateParties = z
  .object({
    recipient_id: objectId('Who was paid.'),
    payee_sha256: outputText('The digest of the frozen payee, in hex.', EXAMPLE_SHA256),
  })
  .meta({ id: 'CertificateParties', description: 'Who was paid, without personal data.' });

const CertificateTimelineEntry = z
  .object({
    sequence: outputText('Counts the entries from 1.', '1'),
    status: settlementStatus('The state that was reached.'),
    at: timestamp('When it was reached.'),
    evidence_id: outputTextOrNull('The evidence that led to it.', null),
  })
  .meta({ id: 'CertificateTimelineEntry', description: 'A state that the settlement has reached.' });

const EvidenceKind = openEnum('EvidenceKind', EVIDENCE_KINDS, 'What a piece of evidence shows.');
const LedgerAccount = openEnum('LedgerAccount', ACCOUNTS, 'An account of the simulated ledger.');

const CertificateEvidence = z
  .object({
    evidence_id: objectId('The id of the evidence.'),
    kind: EvidenceKind.meta({ description: 'What it shows.' }),
    sha256: outputText("The digest of the provider's event, in hex.", EXAMPLE_SHA256),
  })
  .meta({ id: 'CertificateEvidence', description: 'A piece of evidence, by its digest.' });

const CertificatePosting = z
  .object({
    step: outputText('What booked it.', 'funding'),
    account: LedgerAccount.meta({ description: 'The account.' }),
    amount: amount('In major units; negative for a credit.'),
    currency: currency('The currency of the amount.'),
  })
  .meta({ id: 'CertificatePosting', description: 'A line of the journal.' });

/** The stored bytes are the canonical JSON (RFC 8785) of this object. */
export const EvidenceCertificate = z
  .object({
    schema_version: CertificateVersion.meta({ description: 'The version of this form.' }),
    settlement_id: shownSettlementId('The settlement that is certified.'),
    org_id: objectId('The organization that the settlement belongs to.'),
    corridor: corridor(),
    amounts: CertificateAmounts.meta({ description: 'What was paid.' }),
    fees: CertificateFees.meta({ description: 'The fees.' }),
    rate: CertificateRate.meta({ description: 'The rate.' }),
    payment_method: settlementPaymentMethod(),
    payout_rail: rail(),
    parties: CertificateParties.meta({ description: 'Who was paid, without personal data.' }),
    timeline: z.array(CertificateTimelineEntry).meta({ description: 'The states, in their order.' }),
    evidence: z.array(CertificateEvidence).meta({ description: 'The evidence, in its order.' }),
    postings: z.array(CertificatePosting).meta({ description: 'The journal of the settlement, without refunds.' }),
    environment: environment('The environment in which the settlement exists.'),
    simulation: simulation(),
    anchor: anchor(),
  })
  .meta({ id: 'EvidenceCertificate' });

const CertificateChecks = z
  .object({
    exists: flag('There is such a certificate.'),
    digest_matches_id: flag('The digest of the stored bytes matches the id.'),
    settlement_matches: flag('The certificate belongs to the settlement in the query.'),
    signature_valid: flag('A published key signed exactly these bytes.'),
    ledger_balanced: flag('The journal sums to zero per currency and matches the certified postings.'),
  })
  .meta({ id: 'CertificateChecks', description: 'What was checked.' });

export const SignedCertificate = z
  .object({
    payload: z.string().meta({
      description: 'The bytes of the certificate as text: its canonical JSON, not encoded.',
      example: '{"amounts":{}}',
    }),
    protected: z.string().meta({
      description: 'The header, base64url: `alg` EdDSA, `kid` of the JWKS, `b64` false.',
      example: 'eyJhbGciOiJFZERTQSJ9',
    }),
    signature: z
      .string()
      .meta({ description: 'Ed25519 over the header, a dot and the payload; base64url.', example: 'c2lnbmF0dXJl' }),
  })
  .meta({ id: 'SignedCertificate', description: 'A flattened JWS (RFC 7515) with an unencoded payload (RFC 7797).' });

export const CertificateVerification = z
  .object({
    cert_id: certificateId(),
    settlement_id: settlementId('The settlement in the query.'),
    valid: flag('True if every check passed.'),
    checks: CertificateChecks.meta({ description: 'What was checked.' }),
    anchor: anchor(),
    environment: environment(),
  })
  .meta({ id: 'CertificateVerification' });

/** What a certificate and its event show. Only for the document, which has it once. */
export const CertificateFields = EvidenceCertificate.omit({ timeline: true }).meta({
  id: 'CertificateFields',
  description: 'What a certificate and its event show.',
});

/** The data of `certificate.issued`: what a read answers, but for the timeline, and what names the certificate. */
export const CertificateEventData = CertificateFields.extend({
  cert_id: outputText('The id of the certificate.', EXAMPLE_CERTIFICATE_ID),
  sha256: outputText("The digest of the certificate's bytes, in hex.", EXAMPLE_SHA256),
  issued_at: timestamp('When it was issued.'),
}).meta({
  id: 'CertificateEventData',
  description: 'The certificate as a read answers it, without `timeline`, and its id and digest.',
});

const JsonWebKey = z
  .object({
    kty: constant('OKP', 'The kind of key (RFC 8037).'),
    crv: constant('Ed25519', 'The curve.'),
    x: outputText('The public key, in base64url.', '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'),
    kid: outputText('The name of the key, as a signature has it.', 'local-1'),
    use: constant('sig', 'The key verifies signatures.'),
    alg: constant('EdDSA', 'The algorithm.'),
  })
  .meta({ id: 'JsonWebKey', description: 'A public key (RFC 7517).' });

export const JsonWebKeySet = z
  .object({ keys: z.array(JsonWebKey).meta({ description: 'Every key that has signed certificates.' }) })
  .meta({ id: 'JsonWebKeySet', description: 'Public keys (RFC 7517).' });
