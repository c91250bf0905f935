/** What can happen next: every step of the run, and everything that the world outside can do at any time. */
import type { NewEvidence } from '../../domain/settlement/evidence.ts';
import type { Happening } from '../../domain/settlement/happening.ts';
import { isTerminal, UNFUNDED_STATUSES } from '../../domain/settlement/state.ts';
import { type Asked, ask, askNow, type Fixture } from './shell.ts';
import type { Situation } from './situation.ts';

/** The situation after a move, and what `decide` was asked in it, if it was. */
export type Played = { readonly situation: Situation; readonly asked?: Asked };

export type Move = {
  readonly words: string;
  /** It comes without anybody's help: a step of the run, a call that fails, time. */
  readonly isOwn?: boolean;
  /** How far the clock of the API process that does it is ahead of the workflow's time. */
  readonly aheadMs?: number;
  readonly isPossible: (situation: Situation) => boolean;
  readonly play: (situation: Situation, fixture: Fixture) => Played;
};

/** A clock of an API process, and how far it is ahead of the workflow's time. */
export type Clock = { readonly words: string; readonly aheadMs: number };

const HOUR_MS = 60 * 60_000;
export const EXACT: Clock = { words: '', aheadMs: 0 };
/** Further ahead than any wait is long. */
export const AHEAD: Clock = { words: ', by a clock that is 11 days ahead', aheadMs: 11 * 24 * HOUR_MS };
export const BEHIND: Clock = { words: ', by a clock that is an hour behind', aheadMs: -HOUR_MS };

export const isOpen = ({ settlement }: Situation): boolean => !isTerminal(settlement.status);

/** The run that waits sees the end, and ends. */
export const playedBy = (asked: Asked): Played => ({ situation: closed(asked.after), asked });

export const closed = (situation: Situation): Situation =>
  isOpen(situation) || situation.run !== 'waiting' ? situation : { ...situation, run: 'gone' };

/** The move of an API process or an operator, who may have any of these clocks. */
export const outside = (
  clocks: readonly Clock[],
  words: string,
  isPossible: Move['isPossible'],
  happeningOf: (situation: Situation) => { readonly situation: Situation; readonly happening: Happening },
): Move[] =>
  clocks.map((clock) => ({
    words: words + clock.words,
    aheadMs: clock.aheadMs,
    isPossible,
    play: (before, fixture) => {
      const { situation, happening } = happeningOf(before);
      return playedBy(ask(fixture, situation, happening, before.now + clock.aheadMs));
    },
  }));

/** A move that `decide` is not asked about. */
export const silent = (
  words: string,
  isPossible: Move['isPossible'],
  change: (situation: Situation) => Partial<Situation>,
): Move => ({ words, isPossible, play: (situation) => ({ situation: { ...situation, ...change(situation) } }) });

export const newEvidence = (
  evidenceId: string,
  says: Pick<NewEvidence, 'kind'> & Partial<NewEvidence>,
): NewEvidence => ({
  evidenceId,
  provider: 'bankledger',
  eventId: evidenceId,
  amountMinor: null,
  currency: null,
  failure: null,
  sha256: '',
  ...says,
});

const timePasses: Move = {
  words: 'The wait is over.',
  isOwn: true,
  isPossible: ({ settlement, now }) =>
    !isTerminal(settlement.status) && settlement.expiresAt !== null && settlement.expiresAt.getTime() > now,
  play: (situation) => ({
    situation: { ...situation, now: situation.settlement.expiresAt?.getTime() ?? situation.now },
  }),
};

const review: Move = {
  words: 'The run reviews the settlement.',
  isOwn: true,
  isPossible: ({ run }) => run === 'waiting',
  play: (situation, fixture) => playedBy(askNow(fixture, situation, { type: 'review' })),
};

/** As long as the settlement may still collect money. What happens later is in the universes of the payout. */
export const early = (moves: readonly Move[]): readonly Move[] =>
  moves.map((move) => ({
    ...move,
    isPossible: (situation) => UNFUNDED_STATUSES.includes(situation.settlement.status) && move.isPossible(situation),
  }));

/** The steps of every life. */
export const timeAndReview: readonly Move[] = [review, timePasses];

/** A run that is lost is started again by the sweep. Its attempts of the payout may still be under way. */
export const lostRun: readonly Move[] = [
  silent(
    'The run is terminated.',
    (situation) => isOpen(situation) && situation.run !== 'gone',
    () => ({ run: 'gone' }),
  ),
  {
    ...silent(
      'The sweep starts the run again.',
      (situation) => isOpen(situation) && situation.run === 'gone',
      () => ({ run: 'waiting' }),
    ),
    isOwn: true,
  },
];

export const partnerCancels = (clocks: readonly Clock[]): readonly Move[] => cancelBy('partner', clocks);

const cancelBy = (by: 'partner' | 'operator', clocks: readonly Clock[]): Move[] =>
  outside(
    clocks,
    `The ${by} cancels`,
    () => true,
    (situation) => ({ situation, happening: { type: 'cancel', by, signals: true } }),
  );

/** By everybody who can. */
export const cancels: readonly Move[] = [
  ...cancelBy('partner', [EXACT]),
  ...cancelBy('operator', [EXACT]),
  {
    words: 'The run is canceled in Temporal UI.',
    isPossible: ({ run }) => run !== 'gone',
    play: (situation, fixture) =>
      playedBy(askNow(fixture, situation, { type: 'cancel', by: 'operator', signals: false })),
  },
];

export const gates: readonly Move[] = [
  silent(
    'A launch gate is closed.',
    (situation) => isOpen(situation) && !situation.isGateClosed,
    () => ({ isGateClosed: true }),
  ),
  silent(
    'The launch gate is opened again.',
    (situation) => isOpen(situation) && situation.isGateClosed,
    () => ({ isGateClosed: false }),
  ),
];
