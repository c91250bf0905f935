/** The model: what the contract (§6) allows passes it, and faults that the service once had do not. */
import { expect, test } from 'vitest';
import type { Arrival } from './arrival.ts';
import { createModel, type Fact } from './model.ts';
import type { Scenario } from './scenario.ts';
import type { Seen } from './world.ts';

const SCENARIO: Scenario = {
  payment: 'wire',
  cardToken: 'tok_manual',
  achToken: 'public-sandbox-manual',
  amountMinor: 25_000,
  name: 'plain',
  verified: false,
  copies: 1,
  reusesKey: false,
  acts: [],
  review: 'paid',
  refund: 'nothing',
};
const HELD: Scenario = { ...SCENARIO, amountMinor: 100_000 };
const PENDING: Scenario = { ...SCENARIO, name: 'pending' };

const seen = (status: Seen['status'], rest: Partial<Seen> = {}): Fact => ({
  kind: 'seen',
  seen: { status, failure: null, receivedMinor: 0, refundedMinor: 0, exceptions: [], ...rest },
});
const arrived = (arrival: Arrival): Fact => ({ kind: 'arrived', arrival });
const collected = (amountMinor: number): Fact => arrived({ what: 'collected', amountMinor, currency: 'USD' });
const returned = (amountMinor: number, currency = 'USD'): Fact =>
  arrived({ what: 'returned', amountMinor, currency, code: 'R01' });
const disputed = (currency: string): Fact => arrived({ what: 'disputed', amountMinor: null, currency });
const deactivated: Fact = { kind: 'deactivated' };
const overdue: Fact = { kind: 'advance', accepted: true };
const RECEIVED: Partial<Seen> = { receivedMinor: 25_000 };
const paidOut = (receivedMinor = 25_000) => seen('paying_out', { receivedMinor });
const inReview: readonly Fact[] = [
  collected(25_000),
  paidOut(),
  overdue,
  seen('needs_review', { receivedMinor: 25_000 }),
];

type Case = readonly [rule: string, scenario: Scenario, facts: readonly Fact[], allowed: Fact, forbidden: Fact];

const CASES: readonly Case[] = [
  [
    'a payout under way does not fail because its recipient is deactivated',
    PENDING,
    [collected(25_000), paidOut(), deactivated],
    paidOut(),
    seen('failed', { failure: 'recipient_inactive', receivedMinor: 25_000 }),
  ],
  [
    'a payout that nobody calls for any more is reviewed after three days',
    SCENARIO,
    [collected(25_000), paidOut(), deactivated, overdue],
    seen('needs_review', { receivedMinor: 25_000 }),
    seen('failed', { failure: 'recipient_inactive', receivedMinor: 25_000 }),
  ],
  [
    'a recipient who was deactivated before the payout is not paid',
    SCENARIO,
    [seen('awaiting_funds'), deactivated, collected(25_000)],
    seen('failed', { failure: 'recipient_inactive', receivedMinor: 25_000 }),
    paidOut(),
  ],
  [
    'a dispute of no amount in another currency takes nothing back',
    SCENARIO,
    [collected(25_000), disputed('CAD')],
    seen('paying_out', { ...RECEIVED, exceptions: ['disputed - CAD'] }),
    seen('failed', { failure: 'payment_disputed', exceptions: ['disputed 250.00 USD'] }),
  ],
  [
    'a dispute of no amount takes back what has arrived',
    HELD,
    [seen('compliance_hold'), disputed('USD'), collected(12_500), disputed('USD'), { kind: 'cancel', accepted: true }],
    seen('canceled', { exceptions: ['disputed - USD', 'disputed 125.00 USD'] }),
    seen('canceled', { receivedMinor: 12_500, exceptions: ['disputed - USD', 'disputed 125.00 USD'] }),
  ],
  [
    'money that was returned before the payout is not paid out',
    HELD,
    [
      seen('compliance_hold'),
      collected(100_000),
      returned(100_000),
      { kind: 'verification_opening' },
      { kind: 'decided', decision: 'verified' },
    ],
    seen('failed', { failure: 'payment_returned', exceptions: ['returned 1000.00 USD'] }),
    paidOut(100_000),
  ],
  [
    'money that was returned is not due back a second time',
    HELD,
    [seen('compliance_hold'), collected(12_500), returned(0), { kind: 'cancel', accepted: true }],
    seen('canceled', { exceptions: ['returned 125.00 USD'] }),
    seen('canceled', { receivedMinor: 12_500, exceptions: ['returned 125.00 USD'] }),
  ],
  [
    'a return of money that was never counted fails with the code of the bank',
    SCENARIO,
    [seen('awaiting_funds'), returned(25_000)],
    seen('failed', { failure: 'R01' }),
    seen('failed', { failure: 'payment_returned', exceptions: ['returned 250.00 USD'] }),
  ],
  [
    'a return in another currency is an exception, and decides nothing',
    SCENARIO,
    [seen('awaiting_funds'), returned(25_000, 'CAD')],
    seen('awaiting_funds', { exceptions: ['returned 250.00 CAD'] }),
    seen('failed', { failure: 'R01' }),
  ],
  [
    'money that was returned during the payout is not due back when the payout fails',
    PENDING,
    [...inReview, returned(10_000), { kind: 'resolved', outcome: 'refused' }],
    seen('failed', { failure: 'payout_refused', receivedMinor: 15_000, exceptions: ['returned 100.00 USD'] }),
    seen('failed', { failure: 'payout_refused', receivedMinor: 25_000, exceptions: ['returned 100.00 USD'] }),
  ],
  [
    'a payout that the rail confirms in review does not fail',
    PENDING,
    [...inReview, { kind: 'answer_requested', answer: 'confirmed', accepted: true }],
    seen('settled', RECEIVED),
    seen('failed', { ...RECEIVED, failure: 'payout_refused' }),
  ],
  [
    'an answer of the rail after the end is recorded',
    PENDING,
    [
      ...inReview,
      { kind: 'answer_requested', answer: 'confirmed', accepted: true },
      { kind: 'resolved', outcome: 'refused' },
    ],
    seen('failed', { ...RECEIVED, failure: 'payout_refused', exceptions: ['late_evidence - -'] }),
    seen('settled', { ...RECEIVED, exceptions: ['late_evidence - -'] }),
  ],
  [
    'a rejection about another name rejects nothing',
    { ...HELD, verified: true },
    [{ kind: 'renamed' }],
    seen('awaiting_funds'),
    seen('rejected', { failure: 'verification_rejected' }),
  ],
  [
    'overpaid names the surplus',
    SCENARIO,
    [seen('awaiting_funds'), collected(20_000), collected(12_000)],
    seen('settled', { receivedMinor: 32_000, exceptions: ['overpaid 70.00 USD'] }),
    seen('settled', { receivedMinor: 32_000, exceptions: ['overpaid 120.00 USD'] }),
  ],
  [
    'an event of nothing changes nothing',
    SCENARIO,
    [seen('awaiting_funds'), collected(0)],
    seen('awaiting_funds'),
    seen('failed', { failure: 'R01' }),
  ],
  [
    'a payment after a return makes up for what was paid out, and is not due back',
    SCENARIO,
    [collected(25_000), seen('settled', RECEIVED), returned(25_000), collected(25_000)],
    seen('settled', { ...RECEIVED, exceptions: ['late_evidence 250.00 USD', 'returned 250.00 USD'] }),
    seen('settled', { receivedMinor: 50_000, exceptions: ['late_evidence 250.00 USD', 'returned 250.00 USD'] }),
  ],
  [
    'a return names its amount, also of money that was given back already',
    SCENARIO,
    [
      collected(20_000),
      { kind: 'cancel', accepted: true },
      { kind: 'refunded', amountMinor: 15_000 },
      returned(20_000),
    ],
    seen('canceled', { receivedMinor: 15_000, refundedMinor: 15_000, exceptions: ['returned 200.00 USD'] }),
    seen('canceled', { receivedMinor: 15_000, refundedMinor: 15_000, exceptions: ['returned 50.00 USD'] }),
  ],
  [
    'a payment after such a return is due back less what was given back',
    SCENARIO,
    [
      collected(20_000),
      { kind: 'cancel', accepted: true },
      { kind: 'refunded', amountMinor: 15_000 },
      returned(20_000),
      collected(20_000),
    ],
    { kind: 'refunded', amountMinor: 5_000 },
    { kind: 'refunded', amountMinor: 5_001 },
  ],
  [
    'a return after the end is no late evidence, although nothing was counted',
    SCENARIO,
    [seen('awaiting_funds'), { kind: 'cancel', accepted: true }, returned(25_000)],
    seen('canceled', { exceptions: ['returned 250.00 USD'] }),
    seen('canceled', { exceptions: ['late_evidence 250.00 USD'] }),
  ],
  [
    'a return that the end overtakes is no late evidence',
    HELD,
    [seen('compliance_hold'), returned(100_000), { kind: 'cancel', accepted: true }],
    seen('canceled', { exceptions: ['returned 1000.00 USD'] }),
    seen('canceled', { exceptions: ['late_evidence 1000.00 USD'] }),
  ],
  [
    'no more is given back than is due',
    SCENARIO,
    [collected(30_000), seen('settled', { receivedMinor: 30_000, exceptions: ['overpaid 50.00 USD'] })],
    { kind: 'refunded', amountMinor: 5_000 },
    { kind: 'refunded', amountMinor: 5_001 },
  ],
];

const observed = (scenario: Scenario, facts: readonly Fact[]): readonly boolean[] => {
  const model = createModel(scenario);
  return facts.map((fact) => model.observe(fact));
};

test.for(CASES)('%s', ([, scenario, facts, allowed, forbidden]) => {
  const before = facts.map(() => true);
  expect(observed(scenario, [...facts, allowed])).toEqual([...before, true]);
  expect(observed(scenario, [...facts, forbidden])).toEqual([...before, false]);
});

test('an answer of the rail that was accepted is waited for: it is never dropped', () => {
  const model = createModel(PENDING);
  const facts: readonly Fact[] = [
    ...inReview,
    { kind: 'answer_requested', answer: 'confirmed', accepted: true },
    { kind: 'resolved', outcome: 'refused' },
    seen('failed', { ...RECEIVED, failure: 'payout_refused' }),
  ];
  expect(facts.map((fact) => model.observe(fact))).toEqual(facts.map(() => true));
  expect(model.motion()).toBe('certain');
});
