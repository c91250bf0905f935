import { fc, test as property } from '@fast-check/vitest';
import { describe, expect, test } from 'vitest';
import {
  EVIDENCE_KINDS,
  type Evidence,
  type EvidenceKind,
  foldPayout,
  fundingOutcome,
  receive,
} from '../../domain/evidence.ts';
import { isTerminal, SETTLEMENT_STATUSES, type SettlementStatus } from '../../domain/settlement.ts';

const piece = (kind: EvidenceKind, change: Partial<Evidence> = {}): Evidence => ({
  evidenceId: 'evidence-1',
  kind,
  amountMinor: kind === 'collection_succeeded' ? 100n : null,
  currency: kind === 'collection_succeeded' ? 'USD' : null,
  failure: null,
  ...change,
});

/** The rules of the contract (§6) for evidence in each state: it waits to be folded, or is recorded as an exception. */
const BEFORE_FUNDING = ['accepted', 'compliance_hold', 'awaiting_funds'];
const FUNDED = ['funded', 'paying_out', 'needs_review', 'settled'];

/** The fields of a settlement of 1.00 that matter for its evidence. */
const inState = (status: SettlementStatus, amountReceivedMinor = FUNDED.includes(status) ? 100n : 0n) => ({
  status,
  sourceCurrency: 'USD' as const,
  amountMinor: 100n,
  amountReceivedMinor,
});

function expected(status: SettlementStatus, kind: EvidenceKind) {
  const reception = { pending: false, exception: null, booked: null };
  if (kind === 'dispute_opened') return { ...reception, exception: 'disputed' };
  if (kind === 'dispute_closed') return reception;
  if (kind === 'collection_failed' && FUNDED.includes(status)) return { ...reception, exception: 'returned' };
  if (status === 'needs_review' && kind.startsWith('payout_')) return { ...reception, exception: 'late_evidence' };
  if (kind === 'collection_succeeded') {
    if (BEFORE_FUNDING.includes(status)) return { ...reception, booked: 'held' };
    return { ...reception, exception: isTerminal(status) ? 'late_evidence' : 'overpaid', booked: 'due_back' };
  }
  return isTerminal(status) ? { ...reception, exception: 'late_evidence' } : { ...reception, pending: true };
}

describe('receiving evidence', () => {
  test.each(SETTLEMENT_STATUSES)('money in another currency is recorded and never applied, in %s', (status) => {
    const reception = { pending: false, exception: 'currency_mismatch', booked: null };
    expect(receive(inState(status), piece('collection_succeeded', { currency: 'CAD' }))).toEqual(reception);
    expect(receive(inState(status), piece('collection_succeeded', { currency: null }))).toEqual(reception);
  });

  test.each(SETTLEMENT_STATUSES.filter(isTerminal))('no evidence waits to be folded in %s', (status) => {
    for (const kind of EVIDENCE_KINDS) expect(receive(inState(status), piece(kind)).pending).toBe(false);
  });

  const pairs = SETTLEMENT_STATUSES.flatMap((status) =>
    EVIDENCE_KINDS.map((kind) => [status, kind, expected(status, kind)] as const),
  );
  test.each(pairs)('%s: %s is %o', (status, kind, reception) => {
    expect(receive(inState(status), piece(kind))).toEqual(reception);
  });
});

describe('receiving a return', () => {
  test.each(['failed', 'settled'] as const)(
    'of money that funded the settlement is a return, even after it %s',
    (status) => {
      expect(receive(inState(status, 100n), piece('collection_failed')).exception).toBe('returned');
    },
  );

  test.each(['failed', 'expired', 'canceled', 'rejected'] as const)(
    'of a part that never funded it is late evidence in %s',
    (status) => {
      expect(receive(inState(status, 99n), piece('collection_failed')).exception).toBe('late_evidence');
    },
  );
});

describe('what decides in awaiting_funds', () => {
  const waiting = (amountReceivedMinor: bigint) => ({ amountMinor: 200n, amountReceivedMinor });

  const anyMoney = fc.record({
    amountMinor: fc.bigInt({ min: 1n, max: 10_000n }),
    amountReceivedMinor: fc.bigInt({ min: 0n, max: 20_000n }),
  });
  property.prop([anyMoney])('is the money, exactly when it covers the amount', (settlement) => {
    const covered = settlement.amountReceivedMinor >= settlement.amountMinor;
    expect(fundingOutcome(settlement, [])).toEqual(covered ? { to: 'funded' } : undefined);
  });

  test('is a failure that came before the amount was covered, with the reason of the provider', () => {
    const failure = { code: 'R01', message: 'Insufficient funds.' };
    const refused = piece('collection_failed', { evidenceId: 'refused', failure });
    for (const amountReceivedMinor of [0n, 100n, 200n])
      expect(fundingOutcome(waiting(amountReceivedMinor), [refused])).toEqual({
        to: 'failed',
        failure,
        evidenceId: 'refused',
      });
  });

  test('is a failure with a reason of ours when the provider gave none', () => {
    expect(fundingOutcome(waiting(0n), [piece('collection_failed')])).toMatchObject({
      to: 'failed',
      failure: { code: 'collection_failed' },
    });
  });

  test('is never a failure that comes once the amount is covered: that is a return', () => {
    expect(receive(inState('awaiting_funds', 100n), piece('collection_failed')).exception).toBe('returned');
  });

  test("is never the payout rail's evidence", () => {
    const others = EVIDENCE_KINDS.filter((kind) => kind.startsWith('payout_')).map((kind) => piece(kind));
    expect(fundingOutcome(waiting(0n), others)).toBeUndefined();
  });
});

describe('folding the answers of the payout rail', () => {
  test('without an answer there is no outcome: unknown is not failed', () => {
    expect(foldPayout([])).toBeUndefined();
    expect(foldPayout([piece('collection_succeeded'), piece('dispute_opened')])).toBeUndefined();
  });

  test('the first answer counts', () => {
    const failure = { code: 'payout_refused', message: 'The payout was refused.' };
    const confirmed = piece('payout_confirmed', { evidenceId: 'confirmed' });
    const refused = piece('payout_refused', { evidenceId: 'refused', failure });
    expect(foldPayout([piece('collection_failed'), refused, confirmed])).toEqual({
      evidenceId: 'refused',
      paid: false,
      failure,
    });
    expect(foldPayout([confirmed, refused])).toEqual({ evidenceId: 'confirmed', paid: true, failure: null });
  });
});
