/**
 * A settlement's life: admit, hold until compliance has decided, wait for the money, pay out, settle; an operator
 * decides about a payout that nobody answered for. PostgreSQL holds what is true; this decides what is tried next and
 * how long is waited. Started again on a settlement that is half-way, it goes on from there.
 */
import {
  ApplicationFailure,
  allHandlersFinished,
  condition,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { SettlementState, SettlementStep } from '../activities/settlement.ts';
import { resolutionFault } from '../domain/review.ts';
import type { SettlementStatus } from '../domain/settlement.ts';
import { record, visible } from './activities.ts';
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

export async function settlement(
  input: SettlementInput,
): Promise<{ status: SettlementStatus; failure: string | null }> {
  const news = listen();
  const step = (): SettlementStep => ({ ...input, nowMs: Date.now() });
  const untilResolved = openReviewDesk(step);
  const review = async (state: SettlementState, act: (step: SettlementStep) => Promise<SettlementState>) => {
    let latest = state;
    while (latest.status === state.status) {
      await waitForNews(news, latest);
      latest = await act(step());
    }
    return told(latest);
  };

  let state = told(await record.admitSettlement(step()));
  if (state.status === 'compliance_hold') state = await review(state, record.reviewCompliance);
  if (state.status === 'awaiting_funds') state = await review(state, record.reviewFunding);
  // A run that was lost while the rail was asked asks again, which is asking once.
  if (state.status === 'funded' || state.status === 'paying_out')
    state = told(await visible('Send the payout; settle and certify what the rail confirms').sendPayout(step()));
  if (state.status === 'paying_out') state = await review(state, record.reviewPayout);
  if (state.status === 'needs_review') state = told(await untilResolved(state));
  return { status: state.status, failure: state.failureCode };
}

type News = { heard: number; read: number };

/** Counts the facts that were rung; what they are is read from the database. */
function listen(): News {
  const news: News = { heard: 0, read: 0 };
  for (const signal of [evidenceRecorded, canceled, clockAdvanced, verificationDecided, redispatched]) {
    setHandler(signal, () => {
      news.heard += 1;
    });
  }
  return news;
}

/**
 * Where an operator says what became of a payout: refused before the settlement is in review, and answered with the
 * settlement's state for as long as the workflow runs.
 *
 * @returns waits until it was said
 */
function openReviewDesk(step: () => SettlementStep): (inReview: SettlementState) => Promise<SettlementState> {
  let latest: SettlementState | undefined;
  setHandler(
    resolveReview,
    async ({ outcome, operator, note }) => {
      const resolved = await visible(`Resolve the review: ${outcome}`).resolveReview({
        ...step(),
        outcome,
        operator,
        note,
      });
      latest = resolved;
      return { status: resolved.status };
    },
    {
      description:
        'Decide about a payout of unknown outcome: {"outcome": "paid" | "refused", "operator": who, "note": how it is known}',
      validator: (resolution) => {
        const fault = latest === undefined ? 'The settlement is not in review.' : resolutionFault(resolution);
        if (fault !== undefined)
          throw ApplicationFailure.nonRetryable(fault, latest === undefined ? 'state_conflict' : 'validation');
      },
    },
  );
  return async (inReview) => {
    latest = inReview;
    await condition(() => latest?.status !== inReview.status && allHandlersFinished());
    return latest;
  };
}

/** Until a fact is rung that was not read yet, or the state's wait is over. */
async function waitForNews(news: News, state: SettlementState): Promise<void> {
  const rung = () => news.heard > news.read;
  const summary = `Waiting for ${waitingFor(state)}`;
  if (state.waitMs === null) await condition(rung);
  else if (!rung()) await condition(rung, state.waitMs, { summary });
  news.read = news.heard;
}

/** Tells operators, in Temporal UI, where the settlement stands and what it waits for. */
function told(state: SettlementState): SettlementState {
  const waiting = waitingFor(state);
  upsertSearchAttributes([
    { key: SEARCH_ATTRIBUTES.SettlementStatus, value: state.status },
    { key: SEARCH_ATTRIBUTES.WaitingFor, value: waiting },
  ]);
  setCurrentDetails(
    `**${state.status}**${waiting === null ? '' : ` - waiting for ${waiting}`}${state.failureCode === null ? '' : ` - ${state.failureCode}`}`,
  );
  return state;
}

function waitingFor(state: SettlementState): string | null {
  switch (state.status) {
    case 'compliance_hold':
      return 'verification decision';
    case 'awaiting_funds':
      return `${state.paymentMethod} evidence`;
    case 'paying_out':
      return 'payout outcome';
    case 'needs_review':
      return 'operator review';
    default:
      return null;
  }
}
