/**
 * What the printable forms of a certificate show (contract §7); `certificate-html.ts` and `certificate-pdf.ts` lay it
 * out. Everything comes from the bytes of the certificate, so that the same certificate always gives the same forms.
 */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { certificateId } from '../../domain/certificate.ts';
import { EvidenceCertificate } from '../schemas/certificate.ts';

/** Each column by its title and its share of the width. */
export type CertificateTable = {
  readonly title: string;
  readonly columns: readonly (readonly [string, number])[];
  readonly rows: readonly (readonly string[])[];
};

export type CertificateView = {
  readonly certId: string;
  readonly sha256Hex: string;
  /** When the settlement settled: the date of the PDF. */
  readonly settledAt: Date;
  /** What a reader looks for first: the amount, the payee and the date. */
  readonly summary: { readonly amount: string; readonly payee: string; readonly date: string };
  /** Each a word and its meaning. */
  readonly warnings: readonly (readonly [string, string])[];
  readonly facts: readonly (readonly [string, string])[];
  readonly tables: readonly CertificateTable[];
  /** The id and the digest. No address, because there is no public verification. */
  readonly qrText: string;
  readonly howToVerify: string;
};

/**
 * What only the owner is shown, and what the certificate does not contain, because it may be given to anybody: the
 * payee, and the owner's reference, null if there is none.
 */
export type OwnFacts = { readonly payeeName: string; readonly reference: string | null };

type StoredCertificate = { readonly certId: string; readonly content: Buffer };

/** @throws Error if the id does not match the bytes: only what was certified is printed */
export function certificateView({ certId, content }: StoredCertificate, own: OwnFacts): CertificateView {
  const sha256Hex = createHash('sha256').update(content).digest('hex');
  if (certificateId(sha256Hex) !== certId) throw new Error(`the bytes of certificate ${certId} have another digest`);
  const certificate = EvidenceCertificate.parse(JSON.parse(content.toString()));
  const last = certificate.timeline.at(-1);
  if (!last) throw new Error(`certificate ${certId} has an empty timeline`);
  return {
    certId,
    sha256Hex,
    settledAt: new Date(last.at),
    summary: {
      amount: `${certificate.amounts.destination.amount} ${certificate.amounts.destination.currency}`,
      payee: own.payeeName,
      date: `${last.at.slice(0, 10)}, ${last.at.slice(11, 19)} UTC`,
    },
    warnings: [
      ['SIMULATION', 'No value moved. This is a record of the local sandbox.'],
      ['UNANCHORED', 'It is on no public ledger, and has no trusted timestamp.'],
    ],
    facts: [...facts(certificate), ...ownFacts(own)],
    tables: tables(certificate),
    qrText: `${certId} sha256:${sha256Hex}`,
    howToVerify: [
      'The certificate is the JSON form of this document; this form is for reading. With a key of the organization,',
      'GET /v1/caribbean/certificate/{cert_id}/verify checks it; offline, its SHA-256 gives the id above, and its',
      'detached signature verifies with the keys of /.well-known/jwks.json.',
    ].join(' '),
  };
}

/** The facts with the id and the digest before them. */
export const allFacts = ({ certId, sha256Hex, facts: others }: CertificateView): CertificateView['facts'] => [
  ['Certificate', certId],
  ['SHA-256', sha256Hex],
  ...others,
];

type Certificate = z.infer<typeof EvidenceCertificate>;

const ownFacts = ({ payeeName, reference }: OwnFacts): CertificateView['facts'] => [
  ['Payee (not certified)', payeeName],
  ...(reference === null ? [] : [['Reference (not certified)', reference] as const]),
];

function facts({ amounts, fees, rate, ...certificate }: Certificate): CertificateView['facts'] {
  return [
    ['Settlement', certificate.settlement_id],
    ['Organization', certificate.org_id],
    ['Recipient', certificate.parties.recipient_id],
    ['Payee (SHA-256)', certificate.parties.payee_sha256],
    ['Corridor', certificate.corridor],
    ['Amount sent', `${amounts.source.amount} ${amounts.source.currency}`],
    ['Amount paid out', `${amounts.destination.amount} ${amounts.destination.currency}`],
    ['Rate', `${rate.fx_rate} (${words(rate.rate_source)})`],
    ['Input fee', `${fees.input_fee} ${fees.currency}`],
    ['Platform fee', `${fees.platform_fee} ${fees.currency}`],
    ['Fees in total', `${fees.total_fees} ${fees.currency}`],
    ['Payment method', words(certificate.payment_method)],
    ['Payout rail', words(certificate.payout_rail)],
    ['Environment', certificate.environment],
    ['Anchor', certificate.anchor.status],
  ];
}

function tables({ timeline, evidence, postings }: Certificate): CertificateView['tables'] {
  return [
    {
      title: 'Timeline',
      columns: [
        ['Status', 2],
        ['At (UTC)', 2.5],
        ['Evidence', 4],
      ],
      rows: timeline.map((step) => [words(step.status), step.at, step.evidence_id ?? 'none']),
    },
    {
      title: 'Evidence',
      columns: [
        ['Kind', 2],
        ['Id and SHA-256', 6.5],
      ],
      rows: evidence.map((fact) => [words(fact.kind), `${fact.evidence_id}\n${fact.sha256}`]),
    },
    {
      title: 'Ledger postings',
      columns: [
        ['Account', 2],
        ['Amount', 2.5],
        ['Step', 4],
      ],
      rows: postings.map((posting) => [words(posting.account), `${posting.amount} ${posting.currency}`, posting.step]),
    },
  ];
}

const words = (name: string): string => name.replaceAll('_', ' ');
