import { fc, test as property } from '@fast-check/vitest';
import { describe, expect, test } from 'vitest';
import {
  EVIDENCE_KINDS,
  type Evidence,
  type EvidenceKind,
  foldFunding,
  foldPayout,
  receive,
} from '../../domain/evidence.ts';
import { isTerminal, SETTLEMENT_STATUSES, type SettlementStatus } from '../../domain/settlement.ts';
import { partsOf } from '../support/arbitrary.ts';

const piece = (kind: EvidenceKind, change: Partial<Evidence> = {}): Evidence => ({
  evidenceId: 'evidence-1',
  kind,
  amountMinor: kind === 'collection_succeeded' ? 100n : null,
  currency: kind === 'collection_succeeded' ? 'USD' : null,
  failure: null,
  ...change,
});

const collections = (amounts: readonly bigint[]): Evidence[] =>
  amounts.map((amountMinor, index) => piece('collection_succeeded', { evidenceId: `evidence-${index}`, amountMinor }));

const nothingYet = (amountMinor: bigint) => ({ amountMinor, amountReceivedMinor: 0n });

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
  if (kind === 'dispute_opened') return { pending: false, exception: 'disputed', surplus: false };
  if (kind === 'dispute_closed') return { pending: false, exception: null, surplus: false };
  if (kind === 'collection_failed' && FUNDED.includes(status))
    return { pending: false, exception: 'returned', surplus: false };
  if (status === 'needs_review' && kind.startsWith('payout_'))
    return { pending: false, exception: 'late_evidence', surplus: false };
  if (isTerminal(status))
    return { pending: false, exception: 'late_evidence', surplus: kind === 'collection_succeeded' };
  if (kind === 'collection_succeeded' && !BEFORE_FUNDING.includes(status))
    return { pending: false, exception: 'overpaid', surplus: true };
  return { pending: true, exception: null, surplus: false };
}

describe('receiving evidence', () => {
  test.each(SETTLEMENT_STATUSES)('money in another currency is recorded and never applied, in %s', (status) => {
    const reception = { pending: false, exception: 'currency_mismatch', surplus: false };
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

describe('folding collections', () => {
  const shuffled = fc.bigInt({ min: 1n, max: 5_000_000n }).chain((amountMinor) =>
    partsOf(amountMinor, 6)
      .chain((parts) => fc.shuffledSubarray(parts, { minLength: parts.length, maxLength: parts.length }))
      .map((parts) => ({ amountMinor, parts })),
  );

  property.prop([shuffled])(
    'parts that make up the amount fund it with the last one, in any order',
    ({ amountMinor, parts }) => {
      for (let count = 0; count < parts.length; count += 1) {
        expect(foldFunding(nothingYet(amountMinor), collections(parts.slice(0, count))).outcome).toBeUndefined();
      }
      const funding = foldFunding(nothingYet(amountMinor), collections(parts));
      expect(funding.receivedMinor).toBe(amountMinor);
      expect(funding.outcome).toEqual({ to: 'funded', overpaid: false, evidenceId: `evidence-${parts.length - 1}` });
    },
  );

  const anyMoney = fc.record({
    amountMinor: fc.bigInt({ min: 1n, max: 10_000n }),
    received: fc.array(fc.bigInt({ min: 1n, max: 8_000n }), { maxLength: 8 }),
  });

  property.prop([anyMoney])(
    'funds exactly when the amount is covered, reports an overpayment, and folds no later evidence',
    ({ amountMinor, received }) => {
      const sums = received.map((_, index) => received.slice(0, index + 1).reduce((sum, part) => sum + part, 0n));
      const covered = sums.findIndex((sum) => sum >= amountMinor);
      const funding = foldFunding(nothingYet(amountMinor), collections(received));
      const taken = covered === -1 ? received.length : covered + 1;
      expect(funding.applied.map((applied) => applied.amountMinor)).toEqual(received.slice(0, taken));
      expect(funding.receivedMinor).toBe(sums[taken - 1] ?? 0n);
      expect(funding.outcome).toEqual(
        covered === -1
          ? undefined
          : { to: 'funded', overpaid: (sums[covered] ?? 0n) > amountMinor, evidenceId: `evidence-${covered}` },
      );
    },
  );

  property.prop([anyMoney, fc.nat()])(
    'gives the same result in one fold or in two',
    ({ amountMinor, received }, cut) => {
      const evidence = collections(received);
      const first = foldFunding(nothingYet(amountMinor), evidence.slice(0, cut % (evidence.length + 1)));
      const rest = evidence.slice(first.applied.length);
      const second = first.outcome
        ? first
        : foldFunding({ amountMinor, amountReceivedMinor: first.receivedMinor }, rest);
      const whole = foldFunding(nothingYet(amountMinor), evidence);
      expect([second.receivedMinor, second.outcome]).toEqual([whole.receivedMinor, whole.outcome]);
    },
  );

  test('a failure before the amount is covered fails it with the reason of the provider', () => {
    const failure = { code: 'R01', message: 'Insufficient funds.' };
    const refused = piece('collection_failed', { evidenceId: 'refused', failure });
    const funding = foldFunding(nothingYet(200n), [...collections([100n]), refused, ...collections([100n])]);
    expect(funding.outcome).toEqual({ to: 'failed', failure, evidenceId: 'refused' });
    expect(funding.receivedMinor).toBe(100n);
  });

  test('a failure without a reason gets a default one', () => {
    expect(foldFunding(nothingYet(200n), [piece('collection_failed')]).outcome).toMatchObject({
      to: 'failed',
      failure: { code: 'collection_failed' },
    });
  });

  test('a failure after the amount was covered is not folded: it is received as a return', () => {
    const funding = foldFunding(nothingYet(100n), [
      ...collections([100n]),
      piece('collection_failed', { evidenceId: 'returned' }),
    ]);
    expect(funding.outcome).toMatchObject({ to: 'funded', evidenceId: 'evidence-0' });
    expect(receive(inState('funded'), piece('collection_failed')).exception).toBe('returned');
  });

  test("the payout rail's evidence and disputes add no money", () => {
    const others = EVIDENCE_KINDS.filter((kind) => !kind.startsWith('collection_')).map((kind) =>
      piece(kind, { amountMinor: 100n }),
    );
    expect(foldFunding(nothingYet(100n), others)).toEqual({ applied: [], receivedMinor: 0n, outcome: undefined });
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
