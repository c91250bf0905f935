/**
 * Everything that can happen to a payout: the activity's two transactions with the call between, the rail, operators.
 */
import { FAILURES } from '../../domain/settlement/failure.ts';
import { isCallAllowed } from '../../domain/settlement/payout.ts';
import { type Clock, closed, type Move, newEvidence, outside, silent } from './move.ts';
import { ask, askNow, type Fixture, factsOf, isRecorded } from './shell.ts';
import type { Answer, Attempt, Rail, RailOutcome, Situation } from './situation.ts';

/** Of the call's answer. The rail's own messages may have the same id, or another one. */
export const ANSWER_ID = 'payout';
const MESSAGE_ID = 'message';

const ANSWERS: Readonly<Record<RailOutcome, Answer>> = { paid: 'payout_confirmed', refused: 'payout_refused' };

const answerOf = (kind: Answer, eventId: string) =>
  newEvidence(eventId, {
    kind,
    provider: 'payout_rail',
    failure: kind === 'payout_refused' ? FAILURES.payoutRefused : null,
  });

/** @param attemptsMax how many attempts may be under way at once */
const begin = (attemptsMax: number): Move => ({
  words: 'The run begins the payout.',
  isOwn: true,
  isPossible: ({ run, attempts, settlement: { status } }) =>
    attempts.length < attemptsMax &&
    (run === 'paying' ||
      (run === 'waiting' && (status === 'awaiting_funds' || status === 'funded' || status === 'paying_out'))),
  play: (situation, fixture) => playBegin(situation, fixture),
});

function playBegin(situation: Situation, fixture: Fixture) {
  const asked = askNow(fixture, situation, { type: 'begin_payout' });
  const { decision, after, before } = asked;
  const isCalled = !('refusal' in decision) && isCallAllowed(factsOf(fixture, before), decision);
  const begun: Situation = isCalled
    ? { ...after, run: 'paying', attempts: [...after.attempts, { step: 'before_call' }] }
    : { ...after, run: 'waiting' };
  return { situation: closed(begun), asked };
}

/** The position of the attempt that has not called yet. Attempts in the same step are alike. */
const callerAt = ({ attempts }: Situation): number => attempts.findIndex(({ step }) => step === 'before_call');

const replaced = (situation: Situation, at: number, attempts: readonly Attempt[]): readonly Attempt[] => [
  ...situation.attempts.slice(0, at),
  ...attempts,
  ...situation.attempts.slice(at + 1),
];

/** The call reaches the rail, and does this to it. @param answers whether anybody gets the answer */
function call(words: string, isPossible: (rail: Rail) => boolean, outcome: RailOutcome | undefined, answers = true) {
  return silent(
    words,
    (situation) => callerAt(situation) >= 0 && isPossible(situation.rail),
    (situation) => {
      const rail = { hasPayout: true, outcome: situation.rail.outcome ?? outcome };
      const answer = rail.outcome && ANSWERS[rail.outcome];
      const attempts = replaced(situation, callerAt(situation), answers ? [{ step: 'after_call', answer }] : []);
      return { rail, attempts };
    },
  );
}

const isUndecided = ({ outcome }: Rail): boolean => outcome === undefined;
const isDecided = ({ outcome }: Rail): boolean => outcome !== undefined;

const calls: readonly Move[] = [
  call('The call reaches the rail, which pays and says so.', isUndecided, 'paid'),
  call('The call reaches the rail, which refuses and says so.', isUndecided, 'refused'),
  call('The call reaches the rail, which answers again as before.', isDecided, undefined),
];

const unanswered = call('The call reaches the rail, which has no answer yet.', isUndecided, undefined);

const lostCalls: readonly Move[] = [
  {
    ...silent(
      'The call is lost before it reaches the rail.',
      (situation) => callerAt(situation) >= 0,
      (situation) => ({ attempts: replaced(situation, callerAt(situation), []) }),
    ),
    isOwn: true,
  },
  call('The call reaches the rail, and the worker dies before the answer.', isUndecided, undefined, false),
];

const NO_ANSWER = 'nothing';
const records: readonly Move[] = (['payout_confirmed', 'payout_refused', undefined] as const).map((answer) => ({
  words: `The attempt records what the rail answered: ${answer ?? NO_ANSWER}.`,
  isOwn: true,
  isPossible: (situation) => answeredAt(situation, answer) >= 0,
  play: (situation, fixture) => {
    const given = answer && answerOf(answer, ANSWER_ID);
    const asked = ask(fixture, situation, { type: 'rail_answered', answer: given }, attemptTime(situation));
    const attempts = replaced(situation, answeredAt(situation, answer), []);
    const run = situation.run === 'paying' && attempts.length === 0 ? 'waiting' : situation.run;
    return { situation: closed({ ...asked.after, attempts, run }), asked };
  },
}));

/** An attempt judges by the time at which it began, when the wait was not over. */
const attemptTime = ({ now, settlement: { status, expiresAt } }: Situation): number =>
  status === 'paying_out' && expiresAt !== null ? Math.min(now, expiresAt.getTime() - 1) : now;

const answeredAt = ({ attempts }: Situation, answer: Answer | undefined): number =>
  attempts.findIndex((attempt) => attempt.step === 'after_call' && attempt.answer === answer);

/** The rail decides after the call, and sends its own message, twice with different ids if at all. */
const lateRail = (clocks: readonly Clock[]): readonly Move[] => [
  ...(['paid', 'refused'] as const).map((outcome) =>
    silent(
      `The rail decides later: ${outcome}.`,
      ({ rail }) => rail.hasPayout && rail.outcome === undefined,
      () => ({ rail: { hasPayout: true, outcome } }),
    ),
  ),
  ...[ANSWER_ID, MESSAGE_ID].flatMap((eventId) =>
    outside(
      clocks,
      `The rail's message arrives${eventId === ANSWER_ID ? ', with the id of its answer' : ''}`,
      (situation) => situation.rail.outcome !== undefined && !isRecorded(situation, eventId),
      (situation) => ({
        situation,
        happening: { type: 'evidence', evidence: answerOf(ANSWERS[situation.rail.outcome ?? 'paid'], eventId) },
      }),
    ),
  ),
];

/** Whether the rail's answer is recorded. Then it decides, whatever operators say. */
export const knowsAnswer = ({ evidence }: Situation): boolean =>
  evidence.some(({ provider }) => provider === 'payout_rail');

/** Operators may be wrong. The run carries out what they agree on, by its next review. */
const resolutions: readonly Move[] = (['paid', 'refused'] as const).map((outcome) =>
  silent(
    `Operators agree about the review: ${outcome}.`,
    ({ settlement, resolution }) => settlement.status === 'needs_review' && resolution === undefined,
    ({ settlement, now }) => ({ resolution: { outcome, at: new Date(now - settlement.clockOffsetMs) } }),
  ),
);

/** The steps of a payout whose calls are never lost, and never overlap. */
export const plainSteps: readonly (readonly Move[])[] = [
  [begin(1)],
  calls,
  [{ ...unanswered, isOwn: true }],
  records,
  resolutions,
];

export const plainPayout: readonly Move[] = plainSteps.flat();

/** Every way in which a call can be lost, doubled or late. */
export const anyPayout = (clocks: readonly Clock[]): readonly Move[] => [
  begin(2),
  ...calls,
  unanswered,
  ...lostCalls,
  ...records,
  ...lateRail(clocks),
  ...resolutions,
];
