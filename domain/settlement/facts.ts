/**
 * The facts that decisions about a settlement use: plain data, read under the settlement's row lock. That a call to the
 * rail may have gone out needs no fact of its own: the call is made only after `paying_out` was committed.
 */
import type { Recipient } from '../recipient.ts';
import type { AgreedResolution } from '../review.ts';
import type { NewEvidence, RecordedEvidence, SettlementException } from './evidence.ts';
import type { HappeningType } from './happening.ts';
import type { Settlement } from './state.ts';

/** What verification decided about a name, and when. */
export type NameDecision = { readonly to: 'verified' | 'rejected'; readonly at: Date };

export type Facts = {
  readonly settlement: Settlement;
  /** In the order in which they were added. Nothing is decided by them: events show them. */
  readonly exceptions: readonly SettlementException[];
  /** Every collection, every answer of the rail, and what is pending; oldest first. */
  readonly evidence: readonly RecordedEvidence[];
  readonly recipient: Pick<Recipient, 'isActive' | 'updatedAt'>;
  /** Screening refuses the frozen payee. */
  readonly isScreeningHit: boolean;
  /** What verification says about the frozen payee's name; undefined while it says nothing. */
  readonly verification: NameDecision | undefined;
  /** A launch gate forbids the next step that moves value, now. */
  readonly isGateClosed: boolean;
  /** The simulated provider will report this collection by itself; false once the collection has begun. */
  readonly isSimulated: boolean;
  /** Evidence that funds a settlement from inside; undefined where a provider collects. */
  readonly internalFunding: NewEvidence | undefined;
  /** What operators have agreed on about a payout in review; undefined while they have not. */
  readonly resolution: AgreedResolution | undefined;
  /** What operators recorded as given back, by its reference. */
  readonly refunds: readonly { readonly reference: string; readonly amountMinor: bigint }[];
};

type KnownFact = 'settlement' | 'exceptions';
type StepFact = Exclude<keyof Facts, KnownFact | 'refunds'>;

/** The facts that every change needs. */
export type KnownFacts = Pick<Facts, KnownFact>;

/** The other facts that each happening needs. */
type Needs = {
  readonly evidence: never;
  readonly review: StepFact;
  readonly cancel: 'evidence';
  readonly begin_payout: StepFact;
  readonly rail_answered: StepFact;
  readonly refund: 'refunds';
};

export type FactsOf<Type extends HappeningType> = KnownFacts & Pick<Facts, Needs[Type]>;

/** The facts of a step of the settlement's run. */
export type StepFacts = FactsOf<'review'>;

/**
 * What verification says about the frozen payee (contract §4, §6). While the recipient still has this name, its present
 * status counts, so that a rejected recipient's new verification is waited for.
 *
 * @param about the latest decision about the payee's name, unless a new verification has replaced it
 */
export function decisionAboutPayee(
  payeeName: string,
  { name, verificationStatus: to, updatedAt }: Pick<Recipient, 'name' | 'verificationStatus' | 'updatedAt'>,
  about: NameDecision | undefined,
): NameDecision | undefined {
  if (name !== payeeName) return about;
  return to === 'verified' || to === 'rejected' ? { to, at: about?.at ?? updatedAt } : undefined;
}
