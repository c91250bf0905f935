/**
 * What the real shells do around `decide`: they read the facts, decide, and write the change. Nothing is judged here.
 * All of it is one transaction under the settlement's row lock, so it is one step.
 */
import { isEmpty, type SettlementChange } from '../../domain/settlement/change.ts';
import { type Decision, decide as decideInProduction } from '../../domain/settlement/decide.ts';
import { type NewEvidence, PAYOUT_ANSWERS, type RecordedEvidence } from '../../domain/settlement/evidence.ts';
import { decisionAboutPayee, type Facts } from '../../domain/settlement/facts.ts';
import type { Happening } from '../../domain/settlement/happening.ts';
import { isBeforeCollection } from '../../domain/settlement/state.ts';
import { withPayment } from './bank.ts';
import type { Bank, Situation } from './situation.ts';

/** `decide`, which a sabotage may wrap. Only a sabotage looks at the situation. */
export type Decide = (facts: Facts, happening: Happening, now: Date, situation: Situation) => Decision;

/** What the rail answered is dated by the time at which it is recorded. */
export const decide: Decide = (facts, happening, now, situation) =>
  decideInProduction(facts, happening, now, happening.type === 'rail_answered' ? new Date(situation.now) : now);

/** What the shells know of a settlement beside its rows. */
export type Fixture = {
  readonly isScreeningHit: boolean;
  readonly isSimulated: boolean;
  readonly internalFunding: NewEvidence | undefined;
  readonly decide: Decide;
};

/** One transaction: what was decided in which situation, and what it left. */
export type Asked = {
  readonly before: Situation;
  readonly after: Situation;
  readonly happening: Happening;
  readonly now: number;
  readonly decision: Decision;
};

/**
 * Decides about a happening and writes the change.
 *
 * @param now by the clock of the process that asks
 */
export function ask(fixture: Fixture, before: Situation, happening: Happening, now: number): Asked {
  const decision = fixture.decide(factsOf(fixture, before), happening, new Date(now), before);
  const after = 'refusal' in decision || isEmpty(decision) ? before : written(before, decision);
  return { before, after, happening, now, decision };
}

/** The run's own happenings are judged by the workflow's time. */
export const askNow = (fixture: Fixture, before: Situation, happening: Happening): Asked =>
  ask(fixture, before, happening, before.now);

/** The evidence that the shells read: every collection, every answer of the rail, and what is pending. */
const isFact = ({ kind, pending }: RecordedEvidence): boolean =>
  pending || kind === 'collection_succeeded' || PAYOUT_ANSWERS.some((answer) => answer === kind);

export function factsOf(fixture: Omit<Fixture, 'decide'>, situation: Situation): Facts {
  const { isScreeningHit, isSimulated, internalFunding } = fixture;
  const { recipient, checks, decisions } = situation.identity;
  // As the shells read it: a new verification replaces a rejection.
  const about = decisions.payee?.to === 'rejected' && checks.payee === 'open' ? undefined : decisions.payee;
  return {
    settlement: situation.settlement,
    exceptions: situation.exceptions,
    evidence: situation.evidence.filter(isFact),
    recipient,
    isScreeningHit,
    verification: decisionAboutPayee('payee', recipient, about),
    isGateClosed: situation.isGateClosed,
    isSimulated: isSimulated && isBeforeCollection(situation.settlement.status),
    internalFunding,
    resolution: situation.settlement.status === 'needs_review' ? situation.resolution : undefined,
    refunds: situation.refunds,
  };
}

/** Evidence of one provider's event is recorded once: the shell finds the event's id before it asks. */
export const isRecorded = ({ evidence }: Situation, eventId: string): boolean =>
  evidence.some((known) => known.eventId === eventId);

function written(before: Situation, change: SettlementChange): Situation {
  const { after: settlement, postings, decided } = change;
  const known =
    decided.length === 0
      ? before.evidence
      : before.evidence.map((evidence) =>
          decided.includes(evidence.evidenceId) ? { ...evidence, pending: false } : evidence,
        );
  return {
    ...before,
    settlement,
    exceptions: change.exceptions.length === 0 ? before.exceptions : [...before.exceptions, ...change.exceptions],
    evidence: change.evidence ? [...known, change.evidence] : known,
    balances: postings.length === 0 ? before.balances : balancesAfter(before.balances, change),
    steps: postings.length === 0 ? before.steps : [...before.steps, ...new Set(postings.map(({ step }) => step))],
    latestAt: Math.max(before.latestAt, ...writtenDates(change)),
    bank: change.evidence?.provider === 'internal' ? withInternal(before.bank, change.evidence) : before.bank,
  };
}

/** The money of a settlement that is funded from inside is set aside when collection begins. */
const withInternal = (bank: Bank, { evidenceId, amountMinor }: RecordedEvidence): Bank =>
  withPayment(bank, { evidenceId, amountMinor: amountMinor ?? 0n, isTaken: false });

function balancesAfter(balances: Situation['balances'], { postings }: SettlementChange): Situation['balances'] {
  const latest = new Map(balances);
  for (const { currency, account, amountMinor } of postings) {
    const name = `${currency} ${account}`;
    latest.set(name, (latest.get(name) ?? 0n) + amountMinor);
  }
  return latest;
}

/** The dates of all rows of a change. */
export function writtenDates({ at, evidence, transitions, exceptions, events, postings }: SettlementChange): number[] {
  const dates = evidence !== undefined || postings.length > 0 ? [at.getTime()] : [];
  for (const rows of [transitions, exceptions, events]) for (const row of rows) dates.push(row.at.getTime());
  return dates;
}
