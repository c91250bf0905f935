/**
 * What happens to one settlement in a torture run, as plain data: how it is paid, who receives it, and what is done to
 * it meanwhile. A run is a list of scenarios. The seed determines them all.
 */
import fc from 'fast-check';
import type { RailAnswer } from './world.ts';

/** `internal` is the legacy route, which the service funds itself. */
export const PAYMENTS = ['card', 'ach', 'wire', 'internal'] as const;
export type Payment = (typeof PAYMENTS)[number];

const CARD_TOKENS = ['tok_visa', 'tok_declined', 'tok_partial', 'tok_dispute', 'tok_manual'] as const;
const ACH_TOKENS = ['public-sandbox-checking', 'public-sandbox-return', 'public-sandbox-manual'] as const;

/** The recipient's names. In the sandbox they decide what happens (contract §6). */
export const NAMES = {
  plain: 'Marcia Brown',
  sanctioned: 'SANCTIONED Brown',
  refused: 'PAYOUT REFUSED Brown',
  pending: 'PAYOUT PENDING Brown',
} as const;
export type NameKind = keyof typeof NAMES;

/** Minor units of USD. From 100 000 the recipient must be verified. */
const AMOUNTS_MINOR = [25_000, 99_999, 100_000, 200_000] as const;

/**
 * How much a provider event says was collected or taken back, in relation to the settlement's amount. What is taken
 * back without an amount is the whole payment.
 */
const SIZES = ['full', 'half', 'over', 'small', 'zero'] as const;
export type Size = (typeof SIZES)[number];

const PLAIN_KINDS = [
  'cancel',
  'rename',
  'change_account',
  'deactivate',
  'verify',
  'reject',
  'advance',
  'redeliver',
  'ordinary_event',
  'temporal_cancel',
  'temporal_terminate',
  'temporal_reset',
] as const;
export type PlainKind = (typeof PLAIN_KINDS)[number];

/** One thing that the oracle does to a settlement, or to something that the settlement depends on. */
export type Act = { readonly pauseMs: number } & (
  | { readonly kind: PlainKind }
  | {
      /** `taken_back`: a card is disputed, a bank returns the money. */
      readonly kind: 'collected' | 'taken_back';
      readonly size: Size;
      readonly currency: 'own' | 'other';
      /** How often the same event is sent at the same moment. */
      readonly copies: number;
    }
  /** For cards only: a bank knows nothing but returns. */
  | { readonly kind: 'collection_failed'; readonly copies: number }
  /** A test helper has the rail answer. */
  | { readonly kind: 'rail_answers'; readonly answer: RailAnswer }
);

export type Scenario = {
  readonly payment: Payment;
  /** For cards only. */
  readonly cardToken: (typeof CARD_TOKENS)[number];
  /** For ACH only. */
  readonly achToken: (typeof ACH_TOKENS)[number];
  readonly amountMinor: number;
  readonly name: NameKind;
  /** The recipient is verified before the settlement is created. */
  readonly verified: boolean;
  /** How often the same request is sent at the same moment. */
  readonly copies: number;
  /** A request with the same key and other bytes is sent at the same moment. */
  readonly reusesKey: boolean;
  readonly acts: readonly Act[];
  /** What the operator decides when the payout is in review. */
  readonly review: 'paid' | 'refused';
  /** What an operator gives back of what is due at the end. */
  readonly refund: 'nothing' | 'half' | 'everything';
};

const ACTS_MAX = 5;
const PAUSE_MAX_MS = 600;
const COPIES_MAX = 3;

const pauseMs = fc.nat({ max: PAUSE_MAX_MS });
const copies = fc.integer({ min: 1, max: COPIES_MAX });
const plainAct = (weight: number, ...kinds: readonly PlainKind[]) => ({
  weight,
  arbitrary: fc.record({ pauseMs, kind: fc.constantFrom(...kinds) }),
});

const money = (kind: 'collected' | 'taken_back') =>
  fc.record({
    pauseMs,
    kind: fc.constant(kind),
    size: fc.constantFrom(...SIZES),
    currency: fc.oneof({ weight: 5, arbitrary: fc.constant('own' as const) }, fc.constant('other' as const)),
    copies,
  });
const failed = fc.record({ pauseMs, kind: fc.constant('collection_failed' as const), copies });
const answered = fc.record({
  pauseMs,
  kind: fc.constant('rail_answers' as const),
  answer: fc.constantFrom('confirmed' as const, 'refused' as const),
});

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: money('collected') },
  { weight: 3, arbitrary: money('taken_back') },
  { weight: 1, arbitrary: failed },
  { weight: 1, arbitrary: answered },
  plainAct(3, 'cancel'),
  plainAct(3, 'verify', 'reject'),
  plainAct(3, 'rename', 'change_account', 'deactivate'),
  plainAct(2, 'advance'),
  plainAct(2, 'temporal_cancel', 'temporal_terminate', 'temporal_reset'),
  plainAct(2, 'redeliver', 'ordinary_event'),
);

export const scenarios: fc.Arbitrary<Scenario> = fc.record({
  payment: fc.constantFrom(...PAYMENTS),
  cardToken: fc.constantFrom(...CARD_TOKENS),
  achToken: fc.constantFrom(...ACH_TOKENS),
  amountMinor: fc.constantFrom(...AMOUNTS_MINOR),
  name: fc.oneof(
    { weight: 10, arbitrary: fc.constant('plain' as const) },
    { weight: 2, arbitrary: fc.constantFrom('refused' as const, 'pending' as const) },
    fc.constant('sanctioned' as const),
  ),
  verified: fc.boolean(),
  copies,
  reusesKey: fc.boolean(),
  acts: fc.array(act, { maxLength: ACTS_MAX }),
  review: fc.constantFrom('paid' as const, 'refused' as const),
  refund: fc.oneof(
    { weight: 4, arbitrary: fc.constant('nothing' as const) },
    fc.constantFrom('half' as const, 'everything' as const),
  ),
});

const OVERPAID_MINOR = 5_000;
const SMALL_MINOR = 100;

/** How many minor units a provider event of this size carries. */
export function sizeMinor(size: Size, amountMinor: number): number {
  if (size === 'half') return Math.floor(amountMinor / 2);
  if (size === 'over') return amountMinor + OVERPAID_MINOR;
  if (size === 'small') return SMALL_MINOR;
  return size === 'zero' ? 0 : amountMinor;
}

const SEED_STRIDE = 1_000_003;
/** The seed of one scenario: different for each place of each run. */
export const scenarioSeed = (seed: number, index: number): number => (Math.imul(seed, SEED_STRIDE) + index) | 0;

/** The scenario that this seed gives to this place of the run: always the same. */
export function scenarioAt(seed: number, index: number): Scenario {
  const [scenario] = fc.sample(scenarios, { seed: scenarioSeed(seed, index), numRuns: 1, unbiased: true });
  if (scenario === undefined) throw new Error('the generator gave no scenario');
  return scenario;
}

/** A scenario as one line of a test, without what has no effect on it. */
export function showScenario(scenario: Scenario): string {
  const { cardToken, achToken, ...rest } = scenario;
  return JSON.stringify({
    ...rest,
    ...(scenario.payment === 'card' ? { cardToken } : {}),
    ...(scenario.payment === 'ach' ? { achToken } : {}),
  });
}
