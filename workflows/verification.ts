/**
 * A verification's life: open until it is decided or thirty days are over. The decision is taken elsewhere and read
 * from PostgreSQL; this sees to it that an open one ends.
 */
import { condition, setCurrentDetails, setHandler, upsertSearchAttributes } from '@temporalio/workflow';
import type { VerificationState, VerificationStep } from '../activities/verification.ts';
import type { VerificationStatus } from '../domain/verification.ts';
import { record } from './activities.ts';
import { redispatched, SEARCH_ATTRIBUTES, type VerificationInput, verificationDecided } from './contract.ts';

const WAITING_FOR = 'verification decision';

export async function verification(input: VerificationInput): Promise<{ status: VerificationStatus }> {
  let rung = false;
  for (const signal of [verificationDecided, redispatched]) {
    setHandler(signal, () => {
      rung = true;
    });
  }
  const step = (): VerificationStep => ({ ...input, nowMs: Date.now() });

  let state = told(await record.reviewVerification(step()));
  while (state.waitMs !== null) {
    if (!rung) await condition(() => rung, state.waitMs, { summary: `Waiting for a ${WAITING_FOR}` });
    rung = false;
    state = told(await record.reviewVerification(step()));
  }
  return { status: state.status };
}

/** Tells operators, in Temporal UI, where the verification stands. */
function told(state: VerificationState): VerificationState {
  const open = state.waitMs !== null;
  upsertSearchAttributes([{ key: SEARCH_ATTRIBUTES.WaitingFor, value: open ? WAITING_FOR : null }]);
  setCurrentDetails(open ? `**open** - waiting for a ${WAITING_FOR}` : `**${state.status}**`);
  return state;
}
