/**
 * What a decision changes, as plain data: the row, its transitions, postings, evidence, exceptions, events and messages
 * to Temporal. A change is put together here, and written by one statement (`db/queries/settlement-change.ts`).
 */
import type { Certificate } from '../certificate.ts';
import { notBefore } from '../clock.ts';
import { EVENT_OF_STATUS, type EventType } from '../event.ts';
import { smaller } from '../money.ts';
import type { OutboxMessage } from '../outbox.ts';
import {
  type Evidence,
  EXCEPTIONS_SHOWN_MAX,
  type ExceptionType,
  type NewEvidence,
  type Reception,
  type RecordedEvidence,
  receive,
  type SettlementException,
} from './evidence.ts';
import type { KnownFacts } from './facts.ts';
import {
  collectionPostings,
  type Posting,
  REFUND_STEP,
  refundDueMinor,
  refundPostings,
  reversalPostings,
  surplusPostings,
  transitionPostings,
} from './posting.ts';
import {
  canMove,
  type Failure,
  isTerminal,
  PAYOUT_STATUSES,
  type Settlement,
  type SettlementStatus,
  type SettlementTransition,
  waitWindowMs,
} from './state.ts';

/** An event that shows the settlement as it is after that part of the change. */
export type ChangeEvent = {
  readonly type: EventType;
  readonly sequence: number;
  readonly at: Date;
  readonly settlement: Settlement;
  /** The settlement's latest exceptions by then, in the order in which they were added. */
  readonly exceptions: readonly SettlementException[];
  /** The one that the event is about. */
  readonly exception?: SettlementException | undefined;
};

/** A change that is not written yet. `after` is the settlement as the change leaves it. */
export type SettlementChange = {
  readonly before: Settlement;
  readonly after: Settlement;
  /** The settlement's own clock, by which its waits are judged. */
  readonly now: Date;
  /** The date of everything that is written: never before the settlement's last change. */
  readonly at: Date;
  readonly transitions: readonly SettlementTransition[];
  readonly postings: readonly (Posting & { readonly step: string; readonly line: number })[];
  readonly evidence: (RecordedEvidence & Pick<NewEvidence, 'sha256'>) | undefined;
  /** The ids of evidence that is no longer pending. */
  readonly decided: readonly string[];
  /** Those that were recorded before. */
  readonly knownExceptions: readonly SettlementException[];
  readonly exceptions: readonly SettlementException[];
  /** Of a settlement that this change settles. */
  readonly certificate: Certificate | undefined;
  readonly events: readonly ChangeEvent[];
  readonly messages: readonly OutboxMessage[];
};

/** The event of an acceptance, the settlement's first one. */
export const acceptedEvent = (accepted: Settlement): ChangeEvent => ({
  type: EVENT_OF_STATUS[accepted.status],
  sequence: accepted.eventSequence,
  at: accepted.createdAt,
  settlement: accepted,
  exceptions: [],
});

/** A change of a locked settlement, in which nothing has happened yet. */
export function changeOf({ settlement, exceptions }: KnownFacts, now: Date, at: Date = now): SettlementChange {
  return {
    before: settlement,
    after: settlement,
    now,
    at: notBefore(notBefore(at, now), settlement.updatedAt),
    transitions: [],
    postings: [],
    evidence: undefined,
    decided: [],
    knownExceptions: exceptions,
    exceptions: [],
    certificate: undefined,
    events: [],
    messages: [],
  };
}

/** Whether there is anything to write. */
export const isEmpty = ({ before, after, evidence, decided, messages }: SettlementChange): boolean =>
  after === before && evidence === undefined && decided.length === 0 && messages.length === 0;

/** A change is not dated before what it acts on: another process, with another clock, may have dated that. */
export const datedAfter = (change: SettlementChange, actsOn: Date): SettlementChange => ({
  ...change,
  at: notBefore(change.at, actsOn),
});

export type Move = {
  readonly to: SettlementStatus;
  readonly reason: string;
  readonly evidenceId?: string | undefined;
  readonly failure?: Failure | undefined;
};

/**
 * The settlement enters another state.
 *
 * @throws Error when the table has no such transition: the decider has a fault
 */
export function withMove(change: SettlementChange, { to, reason, evidenceId, failure }: Move): SettlementChange {
  const { after: settlement, at, now } = change;
  const { status: from } = settlement;
  if (!canMove(from, to)) throw new Error(`no settlement moves from ${from} to ${to}`);
  const windowMs = waitWindowMs(to, settlement.paymentMethod);
  const version = settlement.version + 1;
  const entered: Settlement = {
    ...settlement,
    status: to,
    version,
    failure: failure ?? settlement.failure,
    expiresAt: windowMs === undefined ? null : new Date(now.getTime() + windowMs),
    updatedAt: at,
  };
  const transition = { sequence: version, from, to, at, reason, evidenceId: evidenceId ?? null };
  const moved: SettlementChange = {
    ...withPostings({ ...change, after: entered }, to, transitionPostings(settlement, to)),
    transitions: [...change.transitions, transition],
  };
  return withEvent(isRefused(from, to) ? withTakenBack(moved) : moved, EVENT_OF_STATUS[to]);
}

const isRefused = (from: SettlementStatus, to: SettlementStatus): boolean =>
  PAYOUT_STATUSES.includes(from) && isTerminal(to) && to !== 'settled';

/** What the payer's bank took back while the payout was under way is not due back once the payout has failed. */
function withTakenBack(change: SettlementChange): SettlementChange {
  const { takenBackMinor } = change.after;
  const deductedMinor = smaller(takenBackMinor, refundDueMinor(change.after));
  const reversed = withReversal(change, 'taken_back', deductedMinor);
  return { ...reversed, after: { ...reversed.after, takenBackMinor: takenBackMinor - deductedMinor } };
}

/** This evidence has decided, so it is no longer pending. */
export const withDecided = (change: SettlementChange, evidenceId: string): SettlementChange => ({
  ...change,
  decided: [...change.decided, evidenceId],
});

/** New evidence, with everything that it does to the settlement at once. */
export function withEvidence(change: SettlementChange, evidence: NewEvidence): SettlementChange {
  const reception = receive(change.after, evidence);
  const { pending, reversedMinor } = reception;
  return withReception({ ...change, evidence: { ...evidence, pending, reversedMinor } }, evidence, reception);
}

/** New evidence that decides in the same change, so it is never pending. */
export const withAnswer = (change: SettlementChange, answer: NewEvidence): SettlementChange => ({
  ...change,
  evidence: { ...answer, pending: false, reversedMinor: 0n },
});

/**
 * The settlement has ended, so no evidence stays pending. What was counted or taken back stays so. A return of what
 * never came is an exception of its own, and any other evidence came too late to decide.
 */
export function withNothingPending(change: SettlementChange, known: readonly RecordedEvidence[]): SettlementChange {
  let latest = change;
  for (const evidence of known) {
    if (!evidence.pending || latest.decided.includes(evidence.evidenceId)) continue;
    latest = withDecided(latest, evidence.evidenceId);
    if (evidence.reversedMinor > 0n) continue;
    const type = evidence.kind === 'collection_returned' ? 'returned' : 'late_evidence';
    latest = withException(latest, exceptionOf(latest, type, evidence, evidence.amountMinor));
  }
  return latest;
}

const exceptionOf = (
  { at, after }: SettlementChange,
  type: ExceptionType,
  { evidenceId, currency, failure }: Evidence,
  amountMinor: bigint | null,
): SettlementException => ({
  type,
  at,
  evidenceId,
  amountMinor,
  currency: currency ?? (amountMinor === null ? null : after.sourceCurrency),
  reason: failure?.code ?? null,
});

function withReception(change: SettlementChange, received: Evidence, reception: Reception): SettlementChange {
  const { evidenceId } = received;
  const { pending, exception, heldMinor, dueBackMinor, reversedMinor, takenBackMinor } = reception;
  const isChange = pending || exception !== null || heldMinor > 0n;
  // Later steps are dated by the settlement's last change, so none is dated before this evidence or its event.
  const touched: Settlement = {
    ...change.after,
    updatedAt: isChange ? change.at : change.after.updatedAt,
    takenBackMinor: change.after.takenBackMinor + takenBackMinor,
  };
  let latest = isChange ? { ...change, after: touched } : change;
  latest = withMoney(latest, `collection:${evidenceId}`, heldMinor, collectionPostings);
  latest = withMoney(latest, `surplus:${evidenceId}`, dueBackMinor, surplusPostings);
  if (latest.after.amountReceivedMinor > change.after.amountReceivedMinor)
    latest = withEvent(latest, 'settlement.funds_received');
  latest = withReversal(latest, `reversal:${evidenceId}`, reversedMinor);
  if (exception === null) return latest;
  return withException(latest, exceptionOf(latest, exception, received, reception.exceptionMinor));
}

function withMoney(
  change: SettlementChange,
  step: string,
  amountMinor: bigint,
  postingsOf: typeof collectionPostings,
): SettlementChange {
  if (amountMinor === 0n) return change;
  const { after } = change;
  const posted = withPostings(change, step, postingsOf(after, amountMinor));
  return { ...posted, after: { ...after, amountReceivedMinor: after.amountReceivedMinor + amountMinor } };
}

function withReversal(change: SettlementChange, step: string, amountMinor: bigint): SettlementChange {
  if (amountMinor === 0n) return change;
  const { after } = change;
  const posted = withPostings(change, step, reversalPostings(after, amountMinor));
  return { ...posted, after: { ...after, amountReceivedMinor: after.amountReceivedMinor - amountMinor } };
}

/** Money that exceeded the settlement's amount. */
export const withSurplus = (change: SettlementChange, collection: Evidence, surplusMinor: bigint): SettlementChange =>
  withException(change, exceptionOf(change, 'overpaid', collection, surplusMinor));

/** An exception, with its event. It changes no state. */
function withException(change: SettlementChange, exception: SettlementException): SettlementChange {
  const recorded = { ...change, exceptions: [...change.exceptions, exception] };
  return withEvent(recorded, 'settlement.exception', exception);
}

/** Money that was due back and was given back. */
export function withRefund(change: SettlementChange, reference: string, amountMinor: bigint): SettlementChange {
  const { after, at } = change;
  const posted = withPostings(change, `${REFUND_STEP}${reference}`, refundPostings(after, amountMinor));
  const refunded = { ...after, amountRefundedMinor: after.amountRefundedMinor + amountMinor, updatedAt: at };
  return withEvent({ ...posted, after: refunded }, 'settlement.refunded');
}

/** An outbox row. */
export const withMessage = (change: SettlementChange, message: OutboxMessage): SettlementChange => ({
  ...change,
  messages: [...change.messages, message],
});

/** Whether the change settles the settlement, which is when its certificate is issued (contract §7). */
export const isSettling = ({ before, after }: SettlementChange): boolean =>
  after.status === 'settled' && before.status !== 'settled';

/** The certificate of the settlement that the change settles. Every event from then on names it. */
export function withCertificate(change: SettlementChange, certificate: Certificate): SettlementChange {
  const named = (settlement: Settlement): Settlement =>
    settlement.status === 'settled' ? { ...settlement, certificateId: certificate.certId } : settlement;
  const events = change.events.map((event) => ({ ...event, settlement: named(event.settlement) }));
  return { ...change, certificate, after: named(change.after), events };
}

const withPostings = (change: SettlementChange, step: string, added: readonly Posting[]): SettlementChange => ({
  ...change,
  postings: [...change.postings, ...added.map((posting, line) => ({ ...posting, step, line }))],
});

function withEvent(change: SettlementChange, type: EventType, exception?: SettlementException): SettlementChange {
  const { after, at } = change;
  const sequence = after.eventSequence + 1;
  const exceptions = [...change.knownExceptions, ...change.exceptions].slice(-EXCEPTIONS_SHOWN_MAX);
  const event = { type, sequence, at, settlement: after, exceptions, exception };
  return { ...change, after: { ...after, eventSequence: sequence }, events: [...change.events, event] };
}
