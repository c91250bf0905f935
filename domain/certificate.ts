/**
 * The content of a certificate (contract §7). It has only facts that no longer change once the settlement has settled,
 * so that the same settlement always gives the same bytes. Numbers are strings, because canonical JSON has only
 * floating-point numbers.
 */

import { type Currency, formatMoney, formatRate } from './money.ts';
import type { EvidenceFact } from './settlement/evidence.ts';
import { type Posting, REFUND_STEP } from './settlement/posting.ts';
import type { Settlement, SettlementTransition } from './settlement/state.ts';

/** Of the content's form. A certificate keeps the one that it was issued in. */
export const CERTIFICATE_SCHEMA_VERSION = '2';
export const CERTIFICATE_ID_PATTERN = /^CERT-[0-9A-F]{32}$/;

/** No certificate is anchored, and every certificate says so. */
export const UNANCHORED = { status: 'unanchored' } as const;

/** `CERT-` and the first 32 upper-case hex digits of the content's SHA-256. */
export const certificateId = (sha256Hex: string): string => `CERT-${sha256Hex.slice(0, 32).toUpperCase()}`;

/** The fixed first bytes of a PKCS#8 Ed25519 key (RFC 8410), in hex; the seed follows. */
export const PKCS8_HEAD_HEX = '302e020100300506032b657004220420';

/** A signed certificate. */
export type Certificate = {
  readonly certId: string;
  /** RFC 8785 canonical JSON. */
  readonly content: string;
  /** Of the content in UTF-8, in lower-case hex. */
  readonly sha256: string;
  /** Detached JWS over the unencoded content (RFC 7797): `<header>..<signature>`. */
  readonly signature: string;
};

/** A line of the journal with the step that booked it. */
export type StepPosting = Posting & { readonly step: string };

/** A settlement's history from the other tables. Each list is in its stored order. */
export type SettlementFacts = {
  readonly transitions: readonly SettlementTransition[];
  readonly evidence: readonly EvidenceFact[];
  readonly postings: readonly StepPosting[];
};

/** `settlement` is its row after it settled. */
export type CertificateFacts = SettlementFacts & { readonly settlement: Settlement };

/** A line of the journal as a certificate shows it. */
type CertificatePosting = {
  readonly step: string;
  readonly account: string;
  readonly amount: string;
  readonly currency: string;
};

/**
 * The content before it is canonicalised. It never contains personal data. The step of a refund has a reference that an
 * operator wrote, so no refund is in it.
 *
 * @throws Error when the history does not end in `settled`, because the last postings would be missing
 */
export function certificateContent({ settlement, transitions, evidence, postings }: CertificateFacts) {
  if (transitions.at(-1)?.to !== 'settled')
    throw new Error(`settlement ${settlement.settlementId} has not settled and cannot be certified`);
  const source = (amountMinor: bigint) => formatMoney(amountMinor, settlement.sourceCurrency);
  return {
    schema_version: CERTIFICATE_SCHEMA_VERSION,
    settlement_id: settlement.settlementId,
    org_id: settlement.orgId,
    corridor: settlement.corridor,
    amounts: {
      source: { amount: source(settlement.amountMinor), currency: settlement.sourceCurrency },
      destination: {
        amount: formatMoney(settlement.destinationAmountMinor, settlement.destinationCurrency),
        currency: settlement.destinationCurrency,
      },
    },
    fees: {
      input_fee: source(settlement.inputFeeMinor),
      platform_fee: source(settlement.platformFeeMinor),
      total_fees: source(settlement.totalFeesMinor),
      currency: settlement.sourceCurrency,
    },
    rate: { fx_rate: formatRate(settlement.rateMillionths), rate_source: 'static_fixture' as const },
    payment_method: settlement.paymentMethod,
    payout_rail: settlement.payoutRail,
    parties: { recipient_id: settlement.recipientId, payee_sha256: settlement.payeeSha256 },
    timeline: transitions.map((transition) => ({
      sequence: String(transition.sequence),
      status: transition.to,
      at: transition.at.toISOString(),
      evidence_id: transition.evidenceId,
    })),
    evidence: evidence.map((fact) => ({ evidence_id: fact.evidenceId, kind: fact.kind, sha256: fact.sha256 })),
    postings: postings.filter(({ step }) => !step.startsWith(REFUND_STEP)).map(certificatePosting),
    environment: settlement.environment,
    simulation: true as const,
    anchor: UNANCHORED,
  };
}

const certificatePosting = ({ step, account, amountMinor, currency }: StepPosting) => ({
  step,
  account,
  amount: formatMoney(amountMinor, currency),
  currency,
});

/**
 * Whether the journal sums to zero per currency and still has exactly the certified lines of each certified step. Steps
 * that were booked later, such as money that came too late, are allowed.
 *
 * @param journal all postings of the settlement, in the order in which they were certified
 */
export function isLedgerConfirmed(certified: readonly CertificatePosting[], journal: readonly StepPosting[]): boolean {
  const sums = new Map<Currency, bigint>();
  for (const { currency, amountMinor } of journal) sums.set(currency, (sums.get(currency) ?? 0n) + amountMinor);
  const steps = new Set(certified.map((posting) => posting.step));
  const current = journal.filter((posting) => steps.has(posting.step)).map(certificatePosting);
  return (
    [...sums.values()].every((sum) => sum === 0n) &&
    current.length === certified.length &&
    current.every((posting, line) => isSame(posting, certified[line]))
  );
}

const isSame = (posting: CertificatePosting, other: CertificatePosting | undefined): boolean =>
  posting.step === other?.step &&
  posting.account === other.account &&
  posting.amount === other.amount &&
  posting.currency === other.currency;
