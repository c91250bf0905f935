/**
 * Has the workflow of a verification create its applicant at the identity provider (contract §8). The workflow is
 * started where it does not run. Its activity is repeated until the provider answers, also after this call has given
 * up.
 */
import { type Client, WithStartWorkflowOperation, WorkflowUpdateFailedError } from '@temporalio/client';
import { DomainError } from '../domain/error.ts';
import { verificationMessage } from '../domain/outbox.ts';
import type { Verification } from '../domain/verification.ts';
import { createApplicant } from '../workflows/contract.ts';
import { UNAVAILABLE } from './idverify.ts';
import { workflowStartOf } from './workflow-start.ts';

/** Longer than one attempt of the activity at the provider. */
const DEADLINE_MS = 10_000;

export type CreateApplicant = (verification: Verification, requestId: string, firstTry: number) => Promise<void>;

export type ApplicantDeps = {
  readonly client: Client;
  readonly runbookUrl: string | undefined;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

/** A second one follows when PostgreSQL lost what the first one read or stored, by a failover or a restore. */
const TRIES_MAX = 4;

/**
 * @returns a function that resolves when the applicant has been stored. If the database has lost it since, call it for
 *   the next try
 * @throws DomainError `temporarily_unavailable` when that took too long, or Temporal is down; repeating continues
 */
export const createApplicantByWorkflow =
  ({ client, runbookUrl, log }: ApplicantDeps): CreateApplicant =>
  async (verification, requestId, firstTry) => {
    const { workflowType, options } = workflowStartOf(verificationMessage(verification, null, requestId), {
      runbookUrl,
    });
    const ask = (updateId: string) =>
      client.workflow.executeUpdateWithStart(createApplicant, {
        updateId,
        startWorkflowOperation: new WithStartWorkflowOperation(workflowType, {
          ...options,
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      });
    const askInTurn = () => askUntilCreated(verification.verificationId, firstTry, ask);
    try {
      await client.withDeadline(Date.now() + DEADLINE_MS, askInTurn);
    } catch (error) {
      log.warn({ err: error, verification_id: verification.verificationId }, 'no applicant was created in time');
      throw new DomainError('temporarily_unavailable', {}, UNAVAILABLE);
    }
  };

/**
 * Requests that come at once, or again, wait for the same update. The run answers an id as it did the first time, for
 * as long as it lives: so what has failed for good is asked again under the next id, by all of them.
 */
async function askUntilCreated(
  verificationId: string,
  firstTry: number,
  ask: (updateId: string) => Promise<void>,
): Promise<void> {
  for (let number = firstTry; number <= TRIES_MAX; number += 1) {
    try {
      return await ask(`create-applicant:${verificationId}:${number}`);
    } catch (error) {
      if (number === TRIES_MAX || !(error instanceof WorkflowUpdateFailedError)) throw error;
    }
  }
  throw new Error('what each try stored is lost');
}
