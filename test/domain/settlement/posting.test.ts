import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Pricing } from '../../../domain/pricing.ts';
import {
  type Account,
  collectionPostings,
  type Posting,
  refundDueMinor,
  reversalPostings,
  surplusPostings,
  transitionPostings,
} from '../../../domain/settlement/posting.ts';
import { type SettlementStatus, TERMINAL_STATUSES, UNFUNDED_STATUSES } from '../../../domain/settlement/state.ts';
import { allLives, partsOf, pricing } from '../../support/arbitrary.ts';
import { property } from '../../support/property.ts';

type Arrival = { readonly amountMinor: bigint; readonly index: number };

type Life = {
  readonly priced: Pricing;
  readonly states: readonly SettlementStatus[];
  /** Money that comes before the settlement is funded, with the index of the state in which it comes. */
  readonly received: readonly Arrival[];
  /** Money that comes once the settlement is funded or has ended. */
  readonly surplus: readonly Arrival[];
};

/** Any path of states with any money in any state. The money covers the amount exactly when the path is funded. */
const lives: fc.Arbitrary<Life> = fc.tuple(pricing, fc.constantFrom(...allLives())).chain(([priced, states]) => {
  const funded = states.indexOf('funded');
  const last = states.length - 1;
  const collecting = funded === -1 ? last - 1 : funded - 1;
  return fc.record({
    priced: fc.constant(priced),
    states: fc.constant(states),
    received: moneyOf(priced.amountMinor, funded !== -1).chain((parts) => arriving(parts, 0, collecting)),
    surplus: fc
      .array(fc.bigInt({ min: 1n, max: 5_000_000n }), { maxLength: 3 })
      .chain((parts) => arriving(parts, collecting + 1, last)),
  });
});

function moneyOf(amountMinor: bigint, covered: boolean): fc.Arbitrary<bigint[]> {
  const whole = partsOf(amountMinor, 4);
  if (!covered) return whole.map((parts) => parts.slice(0, -1));
  const extra = fc.oneof(fc.constant(0n), fc.bigInt({ min: 1n, max: 5_000_000n }));
  return fc
    .tuple(whole, extra)
    .map(([parts, more]) => parts.map((part, index) => (index === parts.length - 1 ? part + more : part)));
}

/** Each part in one of the states from `first` to `last`. */
const arriving = (parts: readonly bigint[], first: number, last: number): fc.Arbitrary<Arrival[]> =>
  fc
    .array(fc.integer({ min: first, max: last }), { minLength: parts.length, maxLength: parts.length })
    .map((indexes) => parts.map((amountMinor, part) => ({ amountMinor, index: indexes[part] ?? first })));

/** Every set of postings of such a path, in the order in which the service writes them. */
function journalOf({ priced, states, received, surplus }: Life): Posting[][] {
  const sets: Posting[][] = [];
  let settlement = {
    ...priced,
    amountReceivedMinor: 0n,
    amountRefundedMinor: 0n,
    status: 'accepted' as SettlementStatus,
  };
  for (const [index, to] of states.entries()) {
    const from = states[index - 1];
    if (from !== undefined) sets.push(transitionPostings(settlement, to));
    settlement = { ...settlement, status: to };
    for (const { amountMinor } of [...received, ...surplus].filter((arrival) => arrival.index === index)) {
      const isHeld = UNFUNDED_STATUSES.includes(settlement.status);
      sets.push((isHeld ? collectionPostings : surplusPostings)(settlement, amountMinor));
      settlement = { ...settlement, amountReceivedMinor: settlement.amountReceivedMinor + amountMinor };
    }
  }
  return sets;
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
  property([lives], { numRuns: 1_000 })('books sets that sum to zero per currency', (life) => {
    for (const set of journalOf(life)) {
      for (const currency of new Set(set.map((posting) => posting.currency))) {
        expect(
          sumOf(set.filter((posting) => posting.currency === currency).map((posting) => posting.amountMinor)),
        ).toBe(0n);
      }
    }
  });

  property([lives], { numRuns: 1_000 })(
    'accounts at the end for every minor unit that was received: paid out, earned, or due back, and none is held',
    (life) => {
      const { priced, states } = life;
      const sets = journalOf(life);
      const of = (account: Account) => balance(sets, account, priced.sourceCurrency);
      const receivedInAll = sumOf([...life.received, ...life.surplus].map(({ amountMinor }) => amountMinor));
      const settled = states.at(-1) === 'settled';
      expect(TERMINAL_STATUSES).toContain(states.at(-1));
      expect([of('settlement_funds'), of('payout_in_transit')]).toEqual([0n, 0n]);
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

  property([lives])('holds exactly the whole amount when it is funded', (life) => {
    const { states, priced } = life;
    const until = states.indexOf('funded');
    fc.pre(until !== -1);
    const sets = journalOf({ ...life, states: states.slice(0, until + 1), surplus: [] });
    expect(balance(sets, 'settlement_funds', priced.sourceCurrency)).toBe(-priced.amountMinor);
  });
});

describe('a set of postings', () => {
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
    amountRefundedMinor: 0n,
  } as const;
  const inState = (status: SettlementStatus, amountReceivedMinor = 100n) => ({
    ...priced,
    status,
    amountReceivedMinor,
  });

  test('has no line with an amount of zero', () => {
    expect(collectionPostings(inState('accepted'), 0n)).toEqual([]);
    expect(transitionPostings(inState('awaiting_funds'), 'funded')).toEqual([]);
    const settled = transitionPostings(inState('paying_out'), 'settled');
    expect(settled.every((posting) => posting.amountMinor !== 0n)).toBe(true);
  });

  test.each([
    ['accepted', 'rejected'],
    ['accepted', 'awaiting_funds'],
    ['accepted', 'compliance_hold'],
    ['accepted', 'canceled'],
    ['compliance_hold', 'expired'],
    ['paying_out', 'needs_review'],
  ] as const)('is empty when no money moves: %s → %s', (from, to) => {
    expect(transitionPostings(inState(from, 0n), to)).toEqual([]);
  });

  test('books the rest of an overpayment as due back', () => {
    expect(transitionPostings(inState('awaiting_funds', 130n), 'funded')).toEqual([
      { account: 'settlement_funds', currency: 'USD', amountMinor: 30n },
      { account: 'refund_due', currency: 'USD', amountMinor: -30n },
    ]);
  });

  test('takes, for money taken back, first what is due back, then what is held', () => {
    expect(reversalPostings(inState('funded', 130n), 50n)).toEqual([
      { account: 'refund_due', currency: 'USD', amountMinor: 30n },
      { account: 'card_clearing', currency: 'USD', amountMinor: -30n },
      { account: 'settlement_funds', currency: 'USD', amountMinor: 20n },
      { account: 'card_clearing', currency: 'USD', amountMinor: -20n },
    ]);
  });
});

describe('what is due back', () => {
  test.each([
    ['awaiting_funds', 130n, 0n, 0n],
    ['funded', 130n, 0n, 30n],
    ['funded', 80n, 0n, 0n],
    ['paying_out', 130n, 10n, 20n],
    ['settled', 100n, 0n, 0n],
    ['failed', 130n, 50n, 80n],
  ] as const)('%s with %i received and %i given back: %i', (status, amountReceivedMinor, amountRefundedMinor, due) => {
    expect(refundDueMinor({ status, amountMinor: 100n, amountReceivedMinor, amountRefundedMinor })).toBe(due);
  });
});
