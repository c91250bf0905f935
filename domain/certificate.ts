/**
 * What a certificate says (contract §7): only facts frozen when the settlement settled, so that the same
 * settlement always gives the same bytes. Numbers are strings, since canonical JSON has floating-point ones only.
 */
import { formatMoney, formatRate } from './money.ts';
import type { Posting } from './posting.ts';
import type { Settlement } from './settlement.ts';
import type { EvidenceFact, SettlementTransition } from './settlement-resource.ts';

export const CERTIFICATE_SCHEMA_VERSION = '1';
export const CERTIFICATE_ID_PATTERN = /^CERT-[0-9A-F]{32}$/;

/** `CERT-` and the first 32 upper-case hex digits of the content's SHA-256. */
export const certificateId = (sha256Hex: string): string => `CERT-${sha256Hex.slice(0, 32).toUpperCase()}`;

export type CertificateFacts = {
  /** As it stands once settled. */
  readonly settlement: Settlement;
  readonly transitions: readonly SettlementTransition[];
  readonly evidence: readonly EvidenceFact[];
  readonly postings: readonly (Posting & { readonly step: string })[];
};

/** The content to be canonicalised; never contains personal data. */
export function certificateContent({ settlement, transitions, evidence, postings }: CertificateFacts) {
  const source = (amountMinor: bigint) => formatMoney(amountMinor, settlement.sourceCurrency);
  return {
    schema_version: CERTIFICATE_SCHEMA_VERSION,
    settlement_id: settlement.settlementId,
    org_id: settlement.orgId,
    corridor: settlement.corridor,
    amounts: {
      source: { amount: source(settlement.amountMinor), currency: settlement.sourceCurrency },
      destination: { amount: formatMoney(settlement.destinationAmountMinor, settlement.destinationCurrency), currency: settlement.destinationCurrency },
    },
    fees: {
      input_fee: source(settlement.inputFeeMinor),
      platform_fee: source(settlement.platformFeeMinor),
      total_fees: source(settlement.totalFeesMinor),
      currency: settlement.sourceCurrency,
    },
    rate: { fx_rate: formatRate(settlement.rateMillionths), rate_source: 'static_fixture' },
    payment_method: settlement.paymentMethod,
    payout_rail: settlement.payoutRail,
    parties: { recipient_id: settlement.recipientId },
    timeline: transitions.map((transition) => ({
      sequence: String(transition.sequence),
      status: transition.to,
      at: transition.at.toISOString(),
      evidence_id: transition.evidenceId,
    })),
    evidence: evidence.map((fact) => ({ evidence_id: fact.evidenceId, kind: fact.kind, sha256: fact.sha256 })),
    postings: postings.map((posting) => ({
      step: posting.step,
      account: posting.account,
      amount: formatMoney(posting.amountMinor, posting.currency),
      currency: posting.currency,
    })),
    environment: settlement.environment,
    simulation: true,
    anchor: { status: 'unanchored' },
  };
}
