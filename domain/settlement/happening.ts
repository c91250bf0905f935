/** What can happen to a settlement after its acceptance: the closed list of inputs of `decide`. */
import type { NewEvidence } from './evidence.ts';

export type Happening =
  /** A provider says something about the settlement's money. */
  | { readonly type: 'evidence'; readonly evidence: NewEvidence }
  /** The run does what is due: when it starts, after a signal, and when a wait is over. */
  | { readonly type: 'review' }
  /** `by` is in the reason of the transition. `signals` is false where the run itself carries out the cancellation. */
  | { readonly type: 'cancel'; readonly by: 'partner' | 'operator'; readonly signals: boolean }
  /** The run is about to call the rail. */
  | { readonly type: 'begin_payout' }
  /** The call to the rail has returned; `answer` is undefined when the rail has none yet. */
  | { readonly type: 'rail_answered'; readonly answer: NewEvidence | undefined }
  /** An operator gave money back outside of the service. */
  | { readonly type: 'refund'; readonly reference: string; readonly amountMinor: bigint };

export type HappeningType = Happening['type'];
export type HappeningOf<Type extends HappeningType> = Extract<Happening, { readonly type: Type }>;
