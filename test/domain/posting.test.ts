import { fc, test as property } from '@fast-check/vitest';
import { describe, expect, test } from 'vitest';
import { type Evidence, foldFunding } from '../../domain/evidence.ts';
import {
  type Account,
  collectionPostings,
  type Posting,
  surplusPostings,
  transitionPostings,
} from '../../domain/posting.ts';
import type { Pricing } from '../../domain/pricing.ts';
import { type SettlementStatus, TERMINAL_STATUSES } from '../../domain/settlement.ts';
import { allLives, partsOf, pricing } from '../support/arbitrary.ts';

type Life = {
  readonly priced: Pricing;
  readonly states: readonly SettlementStatus[];
  readonly received: readonly bigint[];
  readonly surplus: readonly bigint[];
};

/** Any path of states with any money. The money covers the amount exactly when the path is funded. */
const lives: fc.Arbitrary<Life> = fc.tuple(pricing, fc.constantFrom(...allLives())).chain(([priced, states]) =>
  fc.record({
    priced: fc.constant(priced),
    states: fc.constant(states),
    received: states.includes('awaiting_funds')
      ? moneyOf(priced.amountMinor, states.includes('funded'))
      : fc.constant([]),
    surplus: fc.array(fc.bigInt({ min: 1n, max: 5_000_000n }), { maxLength: 3 }),
  }),
);

function moneyOf(amountMinor: bigint, covered: boolean): fc.Arbitrary<bigint[]> {
  const whole = partsOf(amountMinor, 4);
  if (!covered) return whole.map((parts) => parts.slice(0, -1));
  const extra = fc.oneof(fc.constant(0n), fc.bigInt({ min: 1n, max: 5_000_000n }));
  return fc
    .tuple(whole, extra)
    .map(([parts, more]) => parts.map((part, index) => (index === parts.length - 1 ? part + more : part)));
}

/** Every set of postings of such a path, in the order in which the service writes them. */
function journalOf({ priced, states, received, surplus }: Life): Posting[][] {
  const sets: Posting[][] = [];
  let settlement = { ...priced, amountReceivedMinor: 0n };
  for (const [index, to] of states.entries()) {
    const from = states[index - 1];
    if (from === 'awaiting_funds') {
      const evidence = received.map(
        (amountMinor, at): Evidence => ({
          evidenceId: `${at}`,
          kind: 'collection_succeeded',
          amountMinor,
          currency: priced.sourceCurrency,
          failure: null,
        }),
      );
      const funding = foldFunding(settlement, evidence);
      sets.push(...funding.applied.map((applied) => collectionPostings(settlement, applied.amountMinor)));
      settlement = { ...settlement, amountReceivedMinor: funding.receivedMinor };
    }
    if (from !== undefined) sets.push(transitionPostings(settlement, from, to));
  }
  return [...sets, ...surplus.map((amountMinor) => surplusPostings(settlement, amountMinor))];
}

const sumOf = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, amount) => sum + amount, 0n);

function balance(sets: readonly Posting[][], account: Account, currency: string): bigint {
  return sumOf(
    sets
      .flat()
      .flatMap((posting) =>
        posting.account === account && posting.currency === currency ? [posting.amountMinor] : [],
      ),
  );
}

const clearingOf = {
  card: 'card_clearing',
  ach: 'bank_clearing',
  wire: 'bank_clearing',
  internal: 'internal_funding',
} as const;

describe('every path that the table of transitions allows, with any money', () => {
  property.prop([lives], { numRuns: 1_000 })('books sets that sum to zero per currency', (life) => {
    for (const set of journalOf(life)) {
      for (const currency of new Set(set.map((posting) => posting.currency))) {
        expect(
          sumOf(set.filter((posting) => posting.currency === currency).map((posting) => posting.amountMinor)),
        ).toBe(0n);
      }
    }
  });

  property.prop([lives], { numRuns: 1_000 })('holds no funds and no payout in transit after it has ended', (life) => {
    const sets = journalOf(life);
    expect(TERMINAL_STATUSES).toContain(life.states.at(-1));
    expect(balance(sets, 'settlement_funds', life.priced.sourceCurrency)).toBe(0n);
    expect(balance(sets, 'payout_in_transit', life.priced.sourceCurrency)).toBe(0n);
  });

  property.prop([lives], { numRuns: 1_000 })(
    'accounts for every minor unit that was received: paid out, earned, or due back',
    (life) => {
      const { priced, states } = life;
      const sets = journalOf(life);
      const of = (account: Account) => balance(sets, account, priced.sourceCurrency);
      const receivedInAll = sumOf([...life.received, ...life.surplus]);
      const settled = states.at(-1) === 'settled';
      expect(of(clearingOf[priced.paymentMethod])).toBe(receivedInAll);
      expect(of('refund_due')).toBe(-(settled ? receivedInAll - priced.amountMinor : receivedInAll));
      expect([of('input_fee_income'), of('platform_fee_income')]).toEqual(
        settled ? [-priced.inputFeeMinor, -priced.platformFeeMinor] : [0n, 0n],
      );
      expect(of('fx_position')).toBe(settled ? priced.totalFeesMinor - priced.amountMinor : 0n);
      expect(balance(sets, 'fx_position', priced.destinationCurrency)).toBe(
        settled ? priced.destinationAmountMinor : 0n,
      );
      expect(balance(sets, 'payout_paid', priced.destinationCurrency)).toBe(
        settled ? -priced.destinationAmountMinor : 0n,
      );
    },
  );

  property.prop([lives])('holds exactly the whole amount when it is funded', (life) => {
    const { states, priced } = life;
    const until = states.indexOf('funded');
    fc.pre(until !== -1);
    const sets = journalOf({ ...life, states: states.slice(0, until + 1), surplus: [] });
    expect(balance(sets, 'settlement_funds', priced.sourceCurrency)).toBe(-priced.amountMinor);
  });
});

describe('a set', () => {
  const priced = {
    paymentMethod: 'card',
    amountMinor: 100n,
    sourceCurrency: 'USD',
    destinationAmountMinor: 100n,
    destinationCurrency: 'BSD',
    inputFeeMinor: 0n,
    platformFeeMinor: 50n,
    totalFeesMinor: 50n,
    amountReceivedMinor: 100n,
  } as const;

  test('has no line with an amount of zero', () => {
    expect(collectionPostings(priced, 0n)).toEqual([]);
    expect(transitionPostings(priced, 'awaiting_funds', 'funded')).toEqual([]);
    expect(transitionPostings(priced, 'paying_out', 'settled').every((posting) => posting.amountMinor !== 0n)).toBe(
      true,
    );
  });

  test.each([
    ['accepted', 'rejected'],
    ['accepted', 'awaiting_funds'],
    ['accepted', 'compliance_hold'],
    ['accepted', 'canceled'],
    ['compliance_hold', 'expired'],
    ['paying_out', 'needs_review'],
  ] as const)('is empty when no money moves: %s → %s', (from, to) => {
    expect(transitionPostings({ ...priced, amountReceivedMinor: 0n }, from, to)).toEqual([]);
  });

  test('of an overpayment books the rest as due back', () => {
    expect(transitionPostings({ ...priced, amountReceivedMinor: 130n }, 'awaiting_funds', 'funded')).toEqual([
      { account: 'settlement_funds', currency: 'USD', amountMinor: 30n },
      { account: 'refund_due', currency: 'USD', amountMinor: -30n },
    ]);
  });
});
