/** A story: moves of every kind, in any order, by clocks that may be wrong. */
import fc from 'fast-check';
import { type OutboxMessage, settlementMessage } from '../../domain/outbox.ts';
import { deactivation, decisions, verifications } from './identity.ts';
import { failedCollection, inertEvents, payments, refunds, strayReturn, takings } from './money.ts';
import { AHEAD, BEHIND, cancels, EXACT, gates, lostRun, type Move, timeAndReview } from './move.ts';
import { anyPayout, plainSteps } from './payout.ts';
import { NAMES, type Situation } from './situation.ts';
import type { Start } from './start.ts';
import { INTERNAL_FUNDING, LARGE, SMALL, type Universe } from './universe.ts';

const CLOCKS = [EXACT, AHEAD, BEHIND];

/** It moves the settlement's own clock, where time itself moves everybody's. */
const advance: Move = {
  words: 'A test helper moves the clock to the end of the wait.',
  isPossible: ({ settlement: { expiresAt }, attempts, now }) =>
    expiresAt !== null && expiresAt.getTime() > now && attempts.length === 0,
  play: (situation) => {
    const { settlement, now } = situation;
    const until = settlement.expiresAt?.getTime() ?? now;
    const clockOffsetMs = settlement.clockOffsetMs + until - now;
    return { situation: { ...situation, settlement: { ...settlement, clockOffsetMs }, now: until } };
  },
};

/** Each group is as likely as another one, however many moves it has. */
const GROUPS: readonly (readonly Move[])[] = [
  lostRun,
  payments(['part', 'rest', 'exact', 'excess'], 4, CLOCKS),
  inertEvents,
  takings(['return', 'unnamed return', 'dispute', 'partial dispute'], 4, CLOCKS),
  [...failedCollection(CLOCKS), ...strayReturn(CLOCKS)],
  refunds(3, CLOCKS),
  cancels,
  verifications(CLOCKS),
  deactivation(CLOCKS),
  gates,
  anyPayout(CLOCKS),
  [...timeAndReview, advance],
];
const OWN = GROUPS.flat().filter(({ isOwn }) => isOwn);

/** The usual course: always a move of the first group that has one. */
const COURSE: readonly (readonly Move[])[] = [
  payments(['exact'], 1, [EXACT]),
  decisions(['payee'], [EXACT]),
  ...plainSteps,
  timeAndReview,
];
const CHOSEN = { course: COURSE, own: [OWN], any: GROUPS } as const;

export type Opened = Pick<Universe, 'isScreeningHit' | 'internalFunding'> & { readonly start: Start };

const ONCE = { ...SMALL, checksLeft: 1 } as const;
const TWICE = { ...LARGE, checksLeft: 2 } as const;

const OPENINGS: readonly Opened[] = [
  { start: ONCE },
  { start: { ...ONCE, method: 'card', checked: 'open' } },
  { start: TWICE },
  { start: { ...TWICE, method: 'card' } },
  { start: { ...TWICE, checked: 'verified' } },
  { start: ONCE, isScreeningHit: true },
  { start: { ...ONCE, method: 'internal' }, internalFunding: INTERNAL_FUNDING },
];

/** Chooses among the moves that are possible then. */
type Choice = { readonly among: keyof typeof CHOSEN; readonly group: number; readonly move: number };

export type Story = { readonly opened: Opened; readonly choices: readonly Choice[] };

const CHOICES_MIN = 4;
const CHOICES_MAX = 24;
const AMONG = fc.constantFrom('course' as const, 'own' as const, 'any' as const);

export const story: fc.Arbitrary<Story> = fc.record({
  opened: fc.constantFrom(...OPENINGS),
  choices: fc.array(fc.record({ among: AMONG, group: fc.nat(), move: fc.nat() }), {
    minLength: CHOICES_MIN,
    maxLength: CHOICES_MAX,
    size: 'max',
  }),
});

/** Undefined when nothing of that kind is possible. */
export function moveOf(situation: Situation, { among, group, move }: Choice): Move | undefined {
  const groups = CHOSEN[among]
    .map((moves) => moves.filter(({ isPossible }) => isPossible(situation)))
    .filter(({ length }) => length > 0);
  const chosen = groups[among === 'course' ? 0 : group % groups.length];
  return chosen?.[move % chosen.length];
}

/** What the moves that `decide` is not asked about tell the settlement's run. */
export function silentMessages(before: Situation, after: Situation): readonly OutboxMessage[] {
  const { settlement } = before;
  const isAdvanced = after.settlement.clockOffsetMs > settlement.clockOffsetMs;
  const isDecided =
    before.identity.recipient.name !== after.identity.recipient.name ||
    NAMES.some((name) => before.identity.checks[name] === 'open' && after.identity.checks[name] !== 'open');
  if (after.resolution && !before.resolution)
    return [settlementMessage(settlement, 'evidenceRecorded', settlement.requestId)];
  if (isAdvanced) return [settlementMessage(settlement, 'clockAdvanced', settlement.requestId)];
  return isDecided && settlement.status === 'compliance_hold'
    ? [settlementMessage(settlement, 'verificationDecided', settlement.requestId)]
    : [];
}
