/** What must hold for every decision: who may decide what, what is written, and in which order. */
import { EVENT_OF_STATUS } from '../../domain/event.ts';
import { isEmpty, type SettlementChange } from '../../domain/settlement/change.ts';
import type { Evidence, NewEvidence, RecordedEvidence } from '../../domain/settlement/evidence.ts';
import { FAILURES } from '../../domain/settlement/failure.ts';
import {
  canMove,
  isTerminal,
  UNFUNDED_STATUSES,
  VERIFICATION_THRESHOLD_MINOR,
  waitWindowMs,
} from '../../domain/settlement/state.ts';
import { placesOf } from './bank.ts';
import { type Check, inWords, SHOWN, surplusOf } from './invariant.ts';
import { knowsAnswer } from './payout.ts';
import { type Asked, ask, type Fixture, writtenDates } from './shell.ts';
import type { Situation } from './situation.ts';

/** A decision that was not a refusal. */
export type Step = Asked & { readonly change: SettlementChange };

const moveTo = ({ change }: Step, status: string) => change.transitions.find(({ to }) => to === status);

function transitionsAreAllowed({ change }: Step): string | undefined {
  let { status, version } = change.before;
  for (const { from, to, sequence } of change.transitions) {
    if (from !== status || !canMove(status, to)) return `it moves from ${status} to ${to} (written as from ${from})`;
    if (sequence !== version + 1) return `transition ${sequence} follows ${version}`;
    status = to;
    version = sequence;
  }
  return status === change.after.status && version === change.after.version
    ? undefined
    : `the row says ${change.after.status}, and the transitions say ${status}`;
}

function postingsBalance({ before, change }: Step): string | undefined {
  const { postings } = change;
  for (const { step, line, currency } of postings) {
    if (before.steps.includes(step)) return `the posting step ${step} was used before`;
    const ofStep = postings.filter((posting) => posting.step === step);
    if (ofStep.filter((posting) => posting.line === line).length > 1)
      return `the posting ${step} ${line} is written twice`;
    let sum = 0n;
    for (const posting of ofStep) if (posting.currency === currency) sum += posting.amountMinor;
    if (sum !== 0n) return `the postings of ${step} in ${currency} sum to ${inWords(sum)}`;
  }
  return undefined;
}

function eventsAreInOrder({ change }: Step): string | undefined {
  let sequence = change.before.eventSequence;
  for (const event of change.events) {
    sequence += 1;
    if (event.sequence !== sequence) return `event ${event.sequence} follows ${sequence - 1}`;
  }
  if (sequence !== change.after.eventSequence) return `the row counts ${change.after.eventSequence} events`;
  const told = change.events.map(({ type }) => type);
  const moves = change.transitions.map(({ to }) => EVENT_OF_STATUS[to]);
  const missing = moves.find((type) => told.filter((each) => each === type).length !== 1);
  return missing === undefined ? undefined : `the event ${missing} is not written once`;
}

/** The last event shows the settlement as the change leaves it. */
function lastEventShowsTheRow({ change }: Step): string | undefined {
  const shown = change.events.at(-1)?.settlement ?? change.before;
  for (const [field, show] of SHOWN) {
    if (show(shown) !== show(change.after))
      return `events show ${field} as ${show(shown)}, and it is ${show(change.after)}`;
  }
  return undefined;
}

function fundsReceivedMeansGrowth({ change }: Step): string | undefined {
  let received = change.before.amountReceivedMinor;
  for (const { type, settlement } of change.events) {
    const latest = settlement.amountReceivedMinor;
    if (type === 'settlement.funds_received' && latest === received) return 'funds_received is sent, and no money came';
    received = latest;
  }
  return undefined;
}

function datesNeverGoBack({ before, change, now }: Step): string | undefined {
  for (const at of writtenDates(change)) {
    if (at < before.latestAt) return 'it is dated before what was written earlier';
    if (at < now) return 'it is dated before it is decided';
  }
  return undefined;
}

/** Only the workflow's time ends a wait or begins one. */
function waitsAreJudgedByTheRun(step: Step): string | undefined {
  const { before, change, happening } = step;
  const { expiresAt } = before.settlement;
  const isOver = expiresAt !== null && expiresAt.getTime() <= before.now;
  if ((moveTo(step, 'expired') ?? moveTo(step, 'needs_review')) && !isOver) return 'the wait is not over';
  const { after } = change;
  const windowMs = waitWindowMs(after.status, after.paymentMethod);
  if (change.transitions.length > 0 && windowMs !== undefined)
    return after.expiresAt?.getTime() === before.now + windowMs ? undefined : 'the wait does not begin now';
  if (change.transitions.length === 0 && after.expiresAt?.getTime() !== expiresAt?.getTime())
    return `${happening.type} changes the end of the wait`;
  return undefined;
}

/** Evidence and refunds are recorded by other processes, which move nothing. */
const onlyTheRunMoves = ({ happening, change }: Step): string | undefined =>
  (happening.type === 'evidence' || happening.type === 'refund') && change.transitions.length > 0
    ? `${happening.type} moves the settlement`
    : undefined;

function complianceIsKept(step: Step): string | undefined {
  const { before, change } = step;
  const { checks, decisions } = before.identity;
  const about = decisions.payee?.to;
  const reasons = change.transitions.map(({ reason }) => reason);
  if (reasons.includes('verification_rejected') && checks.payee !== 'rejected')
    return "it is rejected, and the last verification about the payee's name was not";
  if (moveTo(step, 'compliance_hold') && before.isGateClosed) return 'it waits for a verification behind a closed gate';
  if (!moveTo(step, 'awaiting_funds')) return undefined;
  if (before.isGateClosed) return 'it collects money behind a closed gate';
  if (!before.identity.recipient.isActive) return 'it collects money for an inactive recipient';
  return change.before.amountMinor >= VERIFICATION_THRESHOLD_MINOR && about !== 'verified'
    ? "it collects money, and the payee's name is not verified"
    : undefined;
}

function payoutBeginsOnlyWhenAllowed(step: Step): string | undefined {
  const { before } = step;
  if (!moveTo(step, 'paying_out')) return undefined;
  if (before.isGateClosed) return 'the payout begins behind a closed gate';
  if (!before.identity.recipient.isActive) return 'the payout begins for an inactive recipient';
  return before.bank.isTakenBeforePayout ? 'the payout begins, and the payer has taken money back before' : undefined;
}

/** Money that has arrived funds the settlement, or failed: it does not expire. The surplus is named. */
function fundingFollowsTheMoney(step: Step): string | undefined {
  const { before, change } = step;
  const { amountMinor } = before.settlement;
  if (
    moveTo(step, 'expired') &&
    before.settlement.status === 'awaiting_funds' &&
    before.bank.balanceMinor >= amountMinor
  )
    return 'it expires, and its money is here';
  if (!moveTo(step, 'funded')) return undefined;
  const named = change.exceptions.flatMap((exception) =>
    exception.type === 'overpaid' ? [`${exception.evidenceId} ${inWords(exception.amountMinor ?? 0n)}`] : [],
  );
  const surplus = surplusOf(before);
  if (before.settlement.paymentMethod === 'internal' || named.join() === surplus.join()) return undefined;
  return `the surplus is named as ${named.join(' and ')}, and is ${surplus.join(' and ')}`;
}

/** Before the payout it fails for a cause that is there. */
function failureHasCause(step: Step): string | undefined {
  const { before } = step;
  const failed = moveTo(step, 'failed');
  if (!failed || (failed.from !== 'awaiting_funds' && failed.from !== 'funded')) return undefined;
  const { isTakenBeforePayout, isFailureReported } = before.bank;
  const causes: Readonly<Record<string, boolean>> = {
    [FAILURES.gateClosed.code]: before.isGateClosed,
    [FAILURES.recipientInactive.code]: !before.identity.recipient.isActive,
  };
  const isCause = causes[failed.reason ?? ''] ?? (isTakenBeforePayout || isFailureReported);
  return isCause ? undefined : `it fails as ${failed.reason}, and that has not happened`;
}

const isTaking = ({ kind }: Evidence): boolean => kind === 'collection_returned' || kind === 'dispute_opened';

/**
 * What the payer's bank took back is an exception, with the amount that the evidence names, or else all that arrived.
 * A return of what never arrived is none while it can decide: it is a failure of the collection, until the end.
 */
function takingsAreNamed({ before, change }: Step): string | undefined {
  const isCause = ({ evidenceId }: Evidence): boolean =>
    change.transitions.some((transition) => transition.evidenceId === evidenceId);
  const isUndecided = ({ evidenceId, reversedMinor }: RecordedEvidence): boolean =>
    change.decided.includes(evidenceId) && reversedMinor === 0n;
  const swept = before.evidence.filter((evidence) => isUndecided(evidence) && !isCause(evidence));
  const { evidence: added } = change;
  const isFailure = added?.pending === true && added.reversedMinor === 0n;
  for (const evidence of added && !isFailure ? [...swept, added] : swept) {
    if (!isTaking(evidence)) continue;
    const { kind, evidenceId } = evidence;
    const amountMinor = evidence.amountMinor ?? before.bank.payments[0]?.amountMinor ?? null;
    const type = kind === 'dispute_opened' ? 'disputed' : 'returned';
    const isNamed = change.exceptions.some(
      (each) => each.type === type && each.evidenceId === evidenceId && each.amountMinor === amountMinor,
    );
    if (!isNamed) return `no exception names the ${kind} ${evidenceId} of ${inWords(amountMinor ?? 0n)}`;
  }
  return undefined;
}

/** A partner books the amount of `late_evidence` as money that came. */
function lateAmountsAreMoney({ before, change }: Step): string | undefined {
  for (const { type, evidenceId, amountMinor } of change.exceptions) {
    if (type !== 'late_evidence' || amountMinor === null) continue;
    const payment = before.bank.payments.find((each) => each.evidenceId === evidenceId);
    if (payment?.amountMinor !== amountMinor)
      return `late_evidence names ${inWords(amountMinor)}, and ${inWords(payment?.amountMinor ?? 0n)} came`;
  }
  return undefined;
}

/** A partner sees each payment: `amount_received` grows, or an exception names it. */
function paymentsAreShown({ before, change, happening }: Step): string | undefined {
  if (happening.type !== 'evidence') return undefined;
  const { evidenceId } = happening.evidence;
  if (before.bank.payments.every((payment) => payment.evidenceId !== evidenceId)) return undefined;
  const isShown =
    change.after.amountReceivedMinor > change.before.amountReceivedMinor ||
    change.exceptions.some((exception) => exception.evidenceId === evidenceId);
  return isShown ? undefined : `nothing shows the payment ${evidenceId}`;
}

/** The rail's recorded answer ends a payout. Without one, operators do. */
function payoutEndsByAnswer({ before, change, after }: Step): string | undefined {
  const { status } = before.settlement;
  if (status !== 'paying_out' && status !== 'needs_review') return undefined;
  if (!isTerminal(change.after.status)) return undefined;
  const isConfirmed = change.after.status === 'settled';
  const { resolution } = before;
  if (resolution && !knowsAnswer(after))
    return isConfirmed === (resolution.outcome === 'paid') ? undefined : 'operators said something else';
  const [answer] = after.evidence.filter(({ provider }) => provider === 'payout_rail');
  if (!answer) return `the payout ends as ${change.after.status}, and the rail said nothing`;
  return isConfirmed === (answer.kind === 'payout_confirmed')
    ? undefined
    : `the payout ends as ${change.after.status}, and the rail said ${answer.kind}`;
}

const saidBy = ({ happening }: Asked): NewEvidence | undefined =>
  happening.type === 'rail_answered'
    ? happening.answer
    : happening.type === 'evidence'
      ? happening.evidence
      : undefined;

const knows = ({ evidence }: Situation, { eventId }: NewEvidence): boolean =>
  evidence.some((known) => known.eventId === eventId);

/** What a provider says is recorded, also after the end. */
export function droppedFault(asked: Asked): string | undefined {
  const said = saidBy(asked);
  return said === undefined || knows(asked.after, said) ? undefined : `the evidence ${said.kind} is dropped`;
}

/** What operators have agreed on ends a review, by the next one of the run. */
export const reviewFault = ({ before, after, happening }: Asked): string | undefined =>
  happening.type === 'review' && before.resolution && !isTerminal(after.settlement.status)
    ? 'an outcome is agreed, and the settlement has not ended'
    : undefined;

/** After the end, what the rail says is an exception. */
function lateAnswersAreExceptions(step: Step): string | undefined {
  const { before, change } = step;
  const said = saidBy(step);
  if (said?.provider !== 'payout_rail' || !isTerminal(before.settlement.status) || knows(before, said))
    return undefined;
  const isExcepted = change.exceptions.some(({ type }) => type === 'late_evidence');
  return isExcepted ? undefined : `${said.kind} came after the end, and is not an exception`;
}

/** What the payer's bank did decides, although the run has not acted on it yet. */
const isDecidedByMoney = ({ settlement, bank }: Situation): boolean =>
  settlement.status === 'awaiting_funds' &&
  (bank.balanceMinor >= settlement.amountMinor || bank.isTakenBeforePayout || bank.isFailureReported);

const cancelComesFirst = (step: Step): string | undefined =>
  moveTo(step, 'canceled') && isDecidedByMoney(step.before)
    ? 'it is canceled, and its money had decided before'
    : undefined;

export const STEP_CHECKS: readonly Check<Step>[] = [
  transitionsAreAllowed,
  onlyTheRunMoves,
  waitsAreJudgedByTheRun,
  complianceIsKept,
  payoutBeginsOnlyWhenAllowed,
  fundingFollowsTheMoney,
  failureHasCause,
  cancelComesFirst,
  takingsAreNamed,
  lateAmountsAreMoney,
  paymentsAreShown,
  payoutEndsByAnswer,
  lateAnswersAreExceptions,
  postingsBalance,
  eventsAreInOrder,
  lastEventShowsTheRow,
  fundsReceivedMeansGrowth,
  datesNeverGoBack,
];

/** A refusal is right only for a cancel that comes too late, and for a refund of more than is due. */
export function refusalFault({ happening, before }: Asked): string | undefined {
  const { status } = before.settlement;
  if (happening.type === 'cancel') {
    const isOpen = UNFUNDED_STATUSES.includes(status) && !isDecidedByMoney(before);
    return isOpen || status === 'canceled' ? `a cancel is refused in ${status}` : undefined;
  }
  const isTooMuch = happening.type === 'refund' && happening.amountMinor > placesOf(before).dueMinor;
  return isTooMuch ? undefined : `${happening.type} is refused`;
}

/** The same happening again changes nothing. Evidence of one event reaches `decide` once. */
export function repeatFault(fixture: Fixture, { after, happening, now }: Asked): string | undefined {
  if (happening.type === 'evidence') return undefined;
  const refunds = happening.type === 'refund' ? [...after.refunds, happening] : after.refunds;
  const { decision } = ask(fixture, { ...after, refunds }, happening, now);
  return 'refusal' in decision || isEmpty(decision) ? undefined : `${happening.type} again changes something more`;
}

/** Another process has changed what the run decides by. It tells the run, unless the run was to act already. */
export function signalFault(fixture: Fixture, { before, after, happening, change }: Step): string | undefined {
  const isOutside = happening.type === 'evidence' || (happening.type === 'cancel' && happening.signals);
  if (!isOutside || isEmpty(change) || change.messages.some(({ signal }) => signal !== null)) return undefined;
  if (happening.type === 'cancel') return 'the run is not told that the settlement is canceled';
  const needsReview = (situation: Situation): boolean => {
    const { decision } = ask(fixture, situation, { type: 'review' }, situation.now);
    return !('refusal' in decision || isEmpty(decision));
  };
  return needsReview(after) && !needsReview(before) ? `${happening.type} does not tell the run` : undefined;
}
