/** For tests of certificates: the facts of one, and altered signatures. */
import type { CertificateFacts } from '../../domain/certificate.ts';
import type { SettlementStatus } from '../../domain/settlement/state.ts';

const AT = Date.UTC(2026, 10, 21, 8);
const PATH: readonly SettlementStatus[] = ['accepted', 'awaiting_funds', 'funded', 'paying_out', 'settled'];
const COLLECTED = '0193a5c0-0000-7000-8000-000000000001';
const PAID = '0193a5c0-0000-7000-8000-000000000002';

/** A settled settlement with fixed values: nothing is random or read from a clock. */
export const certificateFacts = (changes: Partial<CertificateFacts> = {}): CertificateFacts => ({
  settlement: {
    settlementId: 'stl_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
    orgId: '0193a5c0-0000-7000-8000-00000000000a',
    origin: 'v2',
    status: 'settled',
    version: PATH.length,
    eventSequence: 6,
    corridor: 'US-JM',
    recipientId: '0193a5c0-0000-7000-8000-00000000000b',
    payeeSealed: 'sealed',
    payeeSha256: '33'.repeat(32),
    paymentMethod: 'card',
    payoutRail: 'bank_transfer',
    amountMinor: 25_000n,
    sourceCurrency: 'USD',
    destinationAmountMinor: 3_782_963n,
    destinationCurrency: 'JMD',
    rateMillionths: 157_250_000n,
    inputFeeMinor: 755n,
    platformFeeMinor: 188n,
    totalFeesMinor: 943n,
    amountReceivedMinor: 25_000n,
    amountRefundedMinor: 0n,
    takenBackMinor: 0n,
    purpose: null,
    reference: null,
    metadata: {},
    environment: 'local sandbox',
    failure: null,
    expiresAt: null,
    clockOffsetMs: 0,
    certificateId: null,
    requestId: 'test-request',
    createdAt: new Date(AT),
    updatedAt: new Date(AT + 4_000),
  },
  transitions: PATH.map((to, index) => ({
    sequence: index + 1,
    from: PATH[index - 1] ?? null,
    to,
    at: new Date(AT + index * 1_000),
    reason: null,
    evidenceId: to === 'funded' ? COLLECTED : to === 'settled' ? PAID : null,
  })),
  evidence: [
    { evidenceId: COLLECTED, kind: 'collection_succeeded', sha256: '11'.repeat(32) },
    { evidenceId: PAID, kind: 'payout_confirmed', sha256: '22'.repeat(32) },
  ],
  postings: [
    { step: `collection:${COLLECTED}`, account: 'card_clearing', currency: 'USD', amountMinor: 25_000n },
    { step: `collection:${COLLECTED}`, account: 'settlement_funds', currency: 'USD', amountMinor: -25_000n },
    { step: 'paying_out', account: 'settlement_funds', currency: 'USD', amountMinor: 24_057n },
    { step: 'paying_out', account: 'payout_in_transit', currency: 'USD', amountMinor: -24_057n },
    { step: 'settled', account: 'settlement_funds', currency: 'USD', amountMinor: 943n },
    { step: 'settled', account: 'input_fee_income', currency: 'USD', amountMinor: -755n },
    { step: 'settled', account: 'platform_fee_income', currency: 'USD', amountMinor: -188n },
    { step: 'settled', account: 'payout_in_transit', currency: 'USD', amountMinor: 24_057n },
    { step: 'settled', account: 'fx_position', currency: 'USD', amountMinor: -24_057n },
    { step: 'settled', account: 'fx_position', currency: 'JMD', amountMinor: 3_782_963n },
    { step: 'settled', account: 'payout_paid', currency: 'JMD', amountMinor: -3_782_963n },
  ],
  ...changes,
});

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * A signature with any one character changed, and with its last one, some of whose bits say nothing, changed to every
 * other.
 */
export function otherTexts(signature: string): string[] {
  const changed = [...signature].map(
    (digit, place) => signature.slice(0, place) + (digit === 'A' ? 'B' : 'A') + signature.slice(place + 1),
  );
  const ended = [...BASE64URL].map((digit) => signature.slice(0, -1) + digit);
  return [...changed, ...ended].filter((text) => text !== signature);
}
