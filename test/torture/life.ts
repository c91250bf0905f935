/**
 * What happens to one settlement in a torture run, as plain data: how it is paid, who receives it, and what is done
 * to it on the way. A run is a list of lives; the seed decides them all.
 */
import fc from 'fast-check';

/** `internal` is the legacy route, which the service funds itself. */
export const PAYMENTS = ['card', 'ach', 'wire', 'internal'] as const;
export type Payment = (typeof PAYMENTS)[number];

export const CARD_TOKENS = ['tok_visa', 'tok_declined', 'tok_partial', 'tok_dispute', 'tok_manual'] as const;
export const ACH_TOKENS = ['public-sandbox-checking', 'public-sandbox-return', 'public-sandbox-manual'] as const;

/** What the recipient's name steers in the sandbox (contract §6). */
export const NAMES = {
  plain: 'Marcia Brown',
  sanctioned: 'SANCTIONED Brown',
  refused: 'PAYOUT REFUSED Brown',
  pending: 'PAYOUT PENDING Brown',
} as const;
export type NameKind = keyof typeof NAMES;

/** Around the threshold from which the recipient must be verified; minor units of USD. */
export const AMOUNTS_MINOR = [25_000, 99_999, 100_000, 200_000] as const;

export const SIZES = ['full', 'half', 'over', 'small'] as const;

type PlainKind = 'cancel' | 'rename' | 'change_account' | 'deactivate' | 'verify' | 'reject' | 'advance';

/** One thing that the oracle does to a settlement, or to what the settlement depends on. */
export type Act = { readonly pauseMs: number } & (
  | { readonly kind: PlainKind }
  | {
      readonly kind: 'collected';
      readonly size: (typeof SIZES)[number];
      readonly currency: 'own' | 'other';
      readonly copies: number;
    }
  | { readonly kind: 'collection_failed' | 'dispute'; readonly copies: number }
  | { readonly kind: 'temporal_cancel' | 'temporal_terminate' | 'temporal_reset' }
);

export type Life = {
  readonly payment: Payment;
  /** Of the payment's kind; ignored by wires and internal funding. */
  readonly cardToken: (typeof CARD_TOKENS)[number];
  readonly achToken: (typeof ACH_TOKENS)[number];
  readonly amountMinor: (typeof AMOUNTS_MINOR)[number];
  readonly name: NameKind;
  /** The recipient is verified before the settlement is created. */
  readonly verified: boolean;
  /** How often the very same request is sent at the same moment. */
  readonly copies: number;
  /** The key is also sent with other bytes, right afterwards. */
  readonly reusesKey: boolean;
  readonly acts: readonly Act[];
  /** What the operator decides if the payout ends in review. */
  readonly review: 'paid' | 'refused';
};

const ACTS_MAX = 5;
const PAUSE_MAX_MS = 600;
const COPIES_MAX = 3;

const pauseMs = fc.nat({ max: PAUSE_MAX_MS });
const copies = fc.integer({ min: 1, max: COPIES_MAX });
const plainAct = (...kinds: readonly PlainKind[]) => fc.record({ pauseMs, kind: fc.constantFrom(...kinds) });

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      pauseMs,
      kind: fc.constant('collected' as const),
      size: fc.constantFrom(...SIZES),
      currency: fc.oneof({ weight: 5, arbitrary: fc.constant('own' as const) }, fc.constant('other' as const)),
      copies,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ pauseMs, kind: fc.constantFrom('collection_failed' as const, 'dispute' as const), copies }),
  },
  { weight: 3, arbitrary: plainAct('cancel') },
  { weight: 3, arbitrary: plainAct('verify', 'reject') },
  { weight: 3, arbitrary: plainAct('rename', 'change_account', 'deactivate') },
  { weight: 2, arbitrary: plainAct('advance') },
  {
    weight: 2,
    arbitrary: fc.record({
      pauseMs,
      kind: fc.constantFrom('temporal_cancel' as const, 'temporal_terminate' as const, 'temporal_reset' as const),
    }),
  },
);

export const lives: fc.Arbitrary<Life> = fc.record({
  payment: fc.constantFrom(...PAYMENTS),
  cardToken: fc.constantFrom(...CARD_TOKENS),
  achToken: fc.constantFrom(...ACH_TOKENS),
  amountMinor: fc.constantFrom(...AMOUNTS_MINOR),
  name: fc.oneof(
    { weight: 5, arbitrary: fc.constant('plain' as const) },
    fc.constantFrom('sanctioned' as const, 'refused' as const, 'pending' as const),
  ),
  verified: fc.boolean(),
  copies,
  reusesKey: fc.boolean(),
  acts: fc.array(act, { maxLength: ACTS_MAX }),
  review: fc.constantFrom('paid' as const, 'refused' as const),
});

/** How many minor units a provider event of this size carries. */
export function sizeMinor(size: (typeof SIZES)[number], amountMinor: number): number {
  if (size === 'half') return Math.floor(amountMinor / 2);
  if (size === 'over') return amountMinor + 5_000;
  return size === 'small' ? 100 : amountMinor;
}

/** The life that this seed gives at this place of the run; always the same one. */
export function lifeAt(seed: number, index: number): Life {
  const [life] = fc.sample(lives, { seed: lifeSeed(seed, index), numRuns: 1, unbiased: true });
  if (life === undefined) throw new Error('the generator gave no life');
  return life;
}

const SEED_STRIDE = 1_000_003;
export const lifeSeed = (seed: number, index: number): number => (Math.imul(seed, SEED_STRIDE) + index) | 0;
