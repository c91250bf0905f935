/**
 * The universes. All orders of everything that can happen to one settlement are too many. Each universe takes what
 * meets, and is walked to its end: every order of its moves, however long. The last one takes everything at once, and
 * is walked up to a number of moves from outside.
 */
import type { NewEvidence } from '../../domain/settlement/evidence.ts';
import { deactivation, decisions, verifications } from './identity.ts';
import { failedCollection, inertEvents, payments, refunds, strayReturn, takings } from './money.ts';
import {
  AHEAD,
  BEHIND,
  type Clock,
  cancels,
  EXACT,
  early,
  gates,
  lostRun,
  type Move,
  newEvidence,
  partnerCancels,
  timeAndReview,
} from './move.ts';
import { anyPayout, plainPayout } from './payout.ts';
import type { Decide, Fixture } from './shell.ts';
import type { Start } from './start.ts';

export type Universe = {
  readonly name: string;
  /** What it holds, as the end of "every order of". */
  readonly words: string;
  readonly start: Start;
  readonly isScreeningHit?: boolean;
  readonly internalFunding?: NewEvidence;
  readonly clocks: readonly Clock[];
  readonly moves: readonly Move[];
  /** How many moves may come from outside; without it, the universe is walked to its end. */
  readonly depthMax?: number;
};

/** What the shells know of the settlement of a universe. */
export const fixtureOf = (
  { start, isScreeningHit, internalFunding }: Pick<Universe, 'start' | 'isScreeningHit' | 'internalFunding'>,
  decide: Decide,
): Fixture => ({
  isScreeningHit: isScreeningHit ?? false,
  isSimulated: start.method === 'card',
  internalFunding,
  decide,
});

export const SMALL = { amount: '250', method: 'wire', checked: 'verified', checksLeft: 0 } as const;
/** From here on the recipient must be verified. */
export const LARGE = { ...SMALL, amount: '1000', checked: 'open' } as const;

export const INTERNAL_FUNDING = newEvidence('internal', {
  kind: 'collection_succeeded',
  provider: 'internal',
  amountMinor: 25_000n,
  currency: 'USD',
});

const ONE = [EXACT];
const WRONG = [EXACT, AHEAD, BEHIND];

const money: Universe = {
  name: 'money',
  words: 'three payments of three sizes and their returns, a cancel and a payout of any outcome',
  start: SMALL,
  clocks: ONE,
  moves: [
    ...timeAndReview,
    ...payments(['part', 'rest', 'excess'], 3, ONE),
    ...takings(['return', 'unnamed return'], 3, ONE),
    ...partnerCancels(ONE),
    ...plainPayout,
  ],
};

const refund: Universe = {
  name: 'refund',
  words: 'two payments of two sizes, returns, partial disputes and two refunds, before, during and after a payout',
  start: SMALL,
  clocks: ONE,
  moves: [
    ...timeAndReview,
    ...payments(['rest', 'excess'], 2, ONE),
    ...takings(['return', 'partial dispute'], 2, ONE),
    ...refunds(2, ONE),
    ...plainPayout,
  ],
};

const event: Universe = {
  name: 'event',
  words: 'two payments, their disputes, a failed one, returns of none, events of nothing, every cancel, and lost runs',
  start: SMALL,
  clocks: ONE,
  moves: [
    ...timeAndReview,
    ...payments(['part', 'exact'], 2, ONE),
    ...takings(['dispute'], 2, ONE),
    ...inertEvents,
    ...failedCollection(ONE),
    ...strayReturn(ONE),
    ...cancels,
    ...lostRun,
    ...plainPayout,
  ],
};

const payout: Universe = {
  name: 'payout',
  words: 'lost, doubled and late calls and answers, lost runs, closed gates, a deactivation, and reviews',
  start: SMALL,
  clocks: ONE,
  moves: [
    ...timeAndReview,
    ...lostRun,
    ...payments(['exact'], 1, ONE),
    ...deactivation(ONE),
    ...gates,
    ...anyPayout(ONE),
  ],
};

const payoutMoney: Universe = {
  name: 'payout money',
  words: 'the same calls and answers, with a surplus, its refund, a return or a partial dispute',
  start: SMALL,
  clocks: ONE,
  moves: [
    ...timeAndReview,
    ...payments(['excess'], 1, ONE),
    ...takings(['return', 'partial dispute'], 1, ONE),
    ...refunds(1, ONE),
    ...anyPayout(ONE),
  ],
};

const compliance: Universe = {
  name: 'compliance',
  words: 'verifications about two names, renames, a deactivation, gates, a cancel, a payment and its return',
  start: { ...LARGE, checksLeft: 1 },
  clocks: ONE,
  moves: [
    ...timeAndReview,
    ...early([
      ...verifications(ONE),
      ...partnerCancels(ONE),
      ...deactivation(ONE),
      ...gates,
      ...payments(['exact'], 1, ONE),
      ...takings(['return'], 1, ONE),
    ]),
    ...plainPayout,
  ],
};

const clocks: Universe = {
  name: 'clocks',
  words: 'what API processes do whose clocks are right, 11 days ahead or an hour behind',
  start: LARGE,
  clocks: WRONG,
  moves: [
    ...timeAndReview,
    ...payments(['exact'], 1, WRONG),
    ...takings(['dispute'], 1, WRONG),
    ...partnerCancels(WRONG),
    ...early(decisions(['payee'], WRONG)),
    ...plainPayout,
  ],
};

const screening: Universe = {
  name: 'screening',
  words: 'what happens to a payee whom screening refuses',
  start: SMALL,
  isScreeningHit: true,
  clocks: ONE,
  moves: [...timeAndReview, ...payments(['exact'], 1, ONE), ...takings(['return'], 1, ONE), ...cancels],
};

const internal: Universe = {
  name: 'internal',
  words: 'what happens to a settlement that is funded from inside',
  start: { ...SMALL, method: 'internal' },
  internalFunding: INTERNAL_FUNDING,
  clocks: ONE,
  moves: [...timeAndReview, ...gates, ...cancels, ...refunds(1, ONE), ...plainPayout],
};

/** Of everything, in the tests. */
export const DEPTH = 3;

/** Everything at once, up to a number of moves from outside. */
export const everything = (depthMax: number): Universe => ({
  name: 'everything',
  words: `all of it together, up to ${depthMax} moves from outside`,
  start: { ...LARGE, checksLeft: 1 },
  clocks: ONE,
  depthMax,
  moves: [
    ...timeAndReview,
    ...lostRun,
    ...payments(['part', 'rest', 'exact', 'excess'], 3, ONE),
    ...inertEvents,
    ...takings(['return', 'dispute', 'partial dispute'], 3, ONE),
    ...failedCollection(ONE),
    ...strayReturn(ONE),
    ...refunds(2, ONE),
    ...cancels,
    ...verifications(ONE),
    ...deactivation(ONE),
    ...gates,
    ...anyPayout(ONE),
  ],
});

/** Those that are walked to their end. */
export const WHOLE: readonly Universe[] = [
  money,
  refund,
  event,
  payout,
  payoutMoney,
  compliance,
  clocks,
  screening,
  internal,
];
