/**
 * The life of a verification: open until it is decided, or until thirty days are over. It is decided elsewhere, in
 * PostgreSQL. This workflow creates the applicant at the provider, and expires a verification that nobody decides.
 */
import {
  allHandlersFinished,
  CancellationScope,
  condition,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { VerificationActivityInput, VerificationState } from '../activities/verification.ts';
import { verificationAdvice } from '../domain/operator-advice.ts';
import type { VerificationStatus } from '../domain/verification.ts';
import { local, patient } from './activities.ts';
import {
  createApplicant,
  redispatched,
  SEARCH_ATTRIBUTES,
  type VerificationInput,
  verificationDecided,
} from './contract.ts';
import { publishDetails } from './details.ts';
import { uncancelable } from './uncancelable.ts';

const WAITING_FOR = 'verification decision';

export const verification = uncancelable(untilDecided);

async function untilDecided(input: VerificationInput): Promise<{ status: VerificationStatus }> {
  let signaled = false;
  for (const signal of [verificationDecided, redispatched]) {
    setHandler(signal, () => {
      signaled = true;
    });
  }
  // A handler runs outside of the workflow's scope, so it needs one of its own.
  const askProvider = () =>
    CancellationScope.nonCancellable(() =>
      patient('Create the applicant at the identity provider').createApplicant(input),
    );
  setHandler(createApplicant, askProvider, {
    description: 'Create the applicant at the identity provider. It takes no argument.',
  });
  const activityInput = (): VerificationActivityInput => ({ ...input, nowMs: Date.now() });

  let state = publishState(await local((activities) => activities.reviewVerification(activityInput())));
  while (state.waitMs !== null) {
    if (!signaled) await condition(() => signaled, state.waitMs, { summary: `Waiting for a ${WAITING_FOR}` });
    signaled = false;
    state = publishState(await local((activities) => activities.reviewVerification(activityInput())));
  }
  await condition(allHandlersFinished);
  return { status: state.status };
}

/** Shows operators, in Temporal UI, the verification's status, until when it waits, and what they do next. */
function publishState(state: VerificationState): VerificationState {
  const { status, waitMs, until, isManual } = state;
  const isOpen = waitMs !== null;
  upsertSearchAttributes([{ key: SEARCH_ATTRIBUTES.WaitingFor, value: isOpen ? WAITING_FOR : null }]);
  const facts = [`**${status}**`, ...(isOpen ? [`Waits for a **${WAITING_FOR}** until ${until}`] : [])];
  publishDetails(facts, verificationAdvice(status, isManual, until));
  return state;
}
