/**
 * The life of a settlement: admit it, hold it until compliance decides, wait for the money, send the payout, settle. An
 * operator decides about a payout whose outcome is unknown. PostgreSQL holds the state. The workflow decides which
 * activity runs next and how long to wait; when it starts on a settlement under way, it continues from the state.
 *
 * A cancellation of the run never interrupts an activity: it is a request to cancel the settlement (contract §6).
 */
import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  log,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { SettlementActivityInput, SettlementState } from '../activities/settlement.ts';
import { settlementAdvice, settlementWait } from '../domain/operator-advice.ts';
import type { SettlementStatus } from '../domain/settlement/state.ts';
import { local, remote, untilMs } from './activities.ts';
import {
  canceled,
  clockAdvanced,
  evidenceRecorded,
  redispatched,
  resolveReview,
  SEARCH_ATTRIBUTES,
  type SettlementInput,
  verificationDecided,
} from './contract.ts';
import { publishDetails } from './details.ts';
import { continueAsNewRun } from './new-run.ts';

export async function settlement(
  input: SettlementInput,
): Promise<{ status: SettlementStatus; failure: string | null }> {
  const run: Run = { input, signals: countSignals(), canceling: false, payoutSent: false, inReview: undefined };
  handleResolveReview(run);
  handleCancellation(run);
  const { status, failureCode } = await CancellationScope.nonCancellable(() => untilEnded(run));
  return { status, failure: failureCode };
}

async function untilEnded(run: Run): Promise<SettlementState> {
  let state = await admit(run);
  if (state.status === 'compliance_hold') state = await awaitCompliance(run, state);
  if (state.status === 'awaiting_funds') state = await awaitFunds(run, state);
  // paying_out: an earlier run stopped while it called the rail. It is called again: the rail deduplicates by id.
  if (state.status === 'funded' || (state.status === 'paying_out' && !run.payoutSent))
    state = publishState(run, await sendPayout(run));
  if (state.status === 'paying_out') state = await awaitPayout(run, state);
  if (state.status === 'needs_review') state = await awaitOperator(run, state);
  // An operator's update may come while the rail's own evidence decides.
  await condition(() => !run.canceling && allHandlersFinished());
  return state;
}

type Run = {
  readonly input: SettlementInput;
  readonly signals: Signals;
  /** The activity of a cancellation request is running. */
  canceling: boolean;
  /**
   * An activity of this run found the settlement past `awaiting_funds`, and called the rail if there was something to
   * pay.
   */
  payoutSent: boolean;
  /** The state since the settlement came into review; undefined before. */
  inReview: SettlementState | undefined;
};

const admit = async (run: Run) =>
  publishState(run, await local((activities) => activities.admitSettlement(activityInput(run))));

const review = (run: Run) => local((activities) => activities.reviewSettlement(activityInput(run)));

const awaitCompliance = (run: Run, state: SettlementState) => awaitChange(run, state, () => review(run));

/**
 * New evidence usually covers the amount. So one activity decides by it and, where it does, sends the payout: the
 * settlement does not rest in `funded`. Nothing but evidence lets it be paid, so every other signal is a review.
 */
const awaitFunds = (run: Run, state: SettlementState) =>
  awaitChange(run, state, (hasEvidence) => (hasEvidence ? sendPayout(run) : review(run)));

async function sendPayout(run: Run): Promise<SettlementState> {
  const summary = 'Send the payout once the money is there, and settle when the rail confirms it';
  const state = await remote(summary).sendPayout(activityInput(run));
  run.payoutSent = state.status !== 'awaiting_funds';
  return state;
}

const awaitPayout = (run: Run, state: SettlementState) => awaitChange(run, state, () => review(run));

/** The input of an activity that runs now. */
const activityInput = ({ input }: Run): SettlementActivityInput => ({ ...input, nowMs: Date.now() });

/** Runs `next` after each signal, and once the wait is over, until the settlement's status changes. */
async function awaitChange(
  run: Run,
  state: SettlementState,
  next: (hasEvidence: boolean) => Promise<SettlementState>,
): Promise<SettlementState> {
  let latest = state;
  while (latest.status === state.status) {
    latest = await next(await nextSignal(run.signals, latest));
    // A new run would call the rail again.
    if (latest.status === state.status && state.status !== 'paying_out') await shortenHistory(run);
  }
  return publishState(run, latest);
}

/**
 * Continues as a new run when Temporal says that this one's history has grown long: thousands of signals have come. The
 * new run reviews the settlement when it starts, so it needs nothing from this one.
 */
async function shortenHistory(run: Run): Promise<void> {
  const isDue = workflowInfo().continueAsNewSuggested && !run.canceling && allHandlersFinished();
  if (isDue) await continueAsNewRun(run.input);
}

/** How many signals came, how many of them before the last review, and whether one of the others is evidence. */
type Signals = { received: number; reviewed: number; hasEvidence: boolean };

/** Counts the signals. They carry nothing: the review reads from the database what has changed. */
function countSignals(): Signals {
  const signals: Signals = { received: 0, reviewed: 0, hasEvidence: false };
  for (const signal of [evidenceRecorded, canceled, clockAdvanced, verificationDecided, redispatched]) {
    setHandler(signal, () => {
      signals.received += 1;
      signals.hasEvidence ||= signal === evidenceRecorded;
    });
  }
  return signals;
}

/**
 * Waits until a signal comes that no review has followed, or until the state's wait is over.
 *
 * @returns whether evidence came
 */
async function nextSignal(signals: Signals, state: SettlementState): Promise<boolean> {
  const isNew = () => isUnreviewed(signals);
  const summary = `Waiting for ${waitingFor(state)}`;
  const { waitMs, waitEndMs } = state;
  if (waitMs === null) await condition(isNew);
  else if (!isNew()) await condition(isNew, waitEndMs == null ? waitMs : untilMs(waitEndMs), { summary });
  const { hasEvidence } = signals;
  signals.reviewed = signals.received;
  signals.hasEvidence = false;
  return hasEvidence;
}

const isUnreviewed = (signals: Signals): boolean => signals.received > signals.reviewed;

/**
 * Carries out a cancellation of the run, which Temporal UI offers: it cancels the settlement where the contract allows,
 * and otherwise changes nothing. Temporal reports only the first request. A later one could cancel nothing more: no
 * settlement comes back to a state that can be canceled.
 */
function handleCancellation(run: Run): void {
  const cancel = async (): Promise<void> => {
    run.canceling = true;
    // It fails for a settlement that the database has lost. The review that follows fails too, and ends the run.
    await local((activities) => activities.cancelOnRequest(activityInput(run))).catch((error: unknown) =>
      log.warn('a cancellation by Temporal could not be carried out', { error }),
    );
    run.canceling = false;
    // The wait, if there is one, reviews the settlement and sees that it was canceled.
    run.signals.received += 1;
  };
  void CancellationScope.current().cancelRequested.catch(() => CancellationScope.nonCancellable(cancel));
}

/** Waits until what operators have agreed on, or the rail's late evidence, has resolved the review. */
async function awaitOperator(run: Run, state: SettlementState): Promise<SettlementState> {
  run.inReview = state;
  const isResolved = () => run.inReview?.status !== state.status;
  for (;;) {
    await condition(() => (isResolved() || isUnreviewed(run.signals)) && allHandlersFinished());
    if (!isResolved()) {
      run.signals.reviewed = run.signals.received;
      run.inReview = await review(run);
    }
    if (isResolved()) return publishState(run, run.inReview);
    await shortenHistory(run);
  }
}

/**
 * Accepts the update by which an operator's command waits for the end of a review (contract §6). It carries no
 * decision: the activity reads what operators have agreed on. It is refused before the settlement is in review. Once
 * the review is resolved, it answers with the settlement's status for as long as the workflow runs.
 */
function handleResolveReview(run: Run): void {
  const handler = async () => {
    // Handlers run outside of the workflow's scope: without a scope of its own, this one fails in a canceled run.
    const resolved = await CancellationScope.nonCancellable(() =>
      remote('Resolve the review as operators have agreed').resolveReview(activityInput(run)),
    );
    run.inReview = resolved;
    return { status: resolved.status };
  };
  const validator = () => {
    if (run.inReview === undefined)
      throw ApplicationFailure.nonRetryable('The settlement is not in review.', 'state_conflict');
  };
  const description = 'Carry out what operators have agreed on by `ops resolve`. It takes no argument.';
  setHandler(resolveReview, handler, { validator, description });
}

/**
 * Shows operators, in Temporal UI, the settlement's status, what it waits for and until when, and what they do next.
 */
function publishState({ input: { settlementId } }: Run, state: SettlementState): SettlementState {
  const { status, failureCode, until, recipientId } = state;
  const waiting = waitingFor(state);
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.SettlementStatus, value: status },
    { key: SEARCH_ATTRIBUTES.WaitingFor, value: waiting },
  ]);
  const facts = [
    `**${status}**${failureCode === null ? '' : `: ${failureCode}`}`,
    ...(waiting === null ? [] : [`Waits for **${waiting}**${until === null ? '' : ` until ${until}`}`]),
  ];
  const { paymentMethod } = state;
  publishDetails(
    facts,
    settlementAdvice({ settlementId, status, recipientId, paymentMethod, until, isOverdue: false }),
  );
  return state;
}

const waitingFor = ({ status, paymentMethod }: SettlementState): string | null => settlementWait(status, paymentMethod);
