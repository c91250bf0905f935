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

export type CreateApplicant = (verification: Verification, requestId: string, number: number) => Promise<void>;

export type ApplicantDeps = {
  readonly client: Client;
  readonly runbookUrl: string | undefined;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

/** A second one follows when PostgreSQL lost what the first one read or stored, by a failover or a restore. */
const TRIES_MAX = 4;

/**
 * @returns a function for one try, which resolves when that has ended: it has stored the applicant, or has failed for
 *   good. Requests that come at once, or again, wait for the same try, and the run answers it as it did the first time,
 *   for as long as it runs. So read the verification then: where it has no applicant, the next try makes one
 * @throws DomainError `temporarily_unavailable` when that took too long, Temporal is down, or no try is left; repeating
 *   continues
 */
export const createApplicantByWorkflow =
  ({ client, runbookUrl, log }: ApplicantDeps): CreateApplicant =>
  async (verification, requestId, number) => {
    const { workflowType, options } = workflowStartOf(verificationMessage(verification, null, requestId), {
      runbookUrl,
    });
    const ask = () =>
      client.workflow.executeUpdateWithStart(createApplicant, {
        updateId: `create-applicant:${verification.verificationId}:${number}`,
        startWorkflowOperation: new WithStartWorkflowOperation(workflowType, {
          ...options,
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      });
    try {
      if (number > TRIES_MAX) throw new Error('every try has failed for good');
      await client.withDeadline(Date.now() + DEADLINE_MS, ask);
    } catch (error) {
      if (error instanceof WorkflowUpdateFailedError) return;
      log.warn({ err: error, verification_id: verification.verificationId }, 'no applicant was created in time');
      throw new DomainError('temporarily_unavailable', {}, UNAVAILABLE);
    }
  };
