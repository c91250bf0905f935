/**
 * The id of each workflow. An id is permanent: it is how the service finds a workflow, and it is public for
 * settlements and verifications (`workflow_id`). Never change the form of one.
 */
export const settlementWorkflowId = (settlementId: string): string => `settlement:${settlementId}`;

export const verificationWorkflowId = (verificationId: string): string => `verification:${verificationId}`;

/** It runs while a retry of the subscription waits; its runs follow one another. */
export const webhookSubscriptionWorkflowId = (webhookId: string): string => `webhook-subscription:${webhookId}`;

/** It always runs. @param lane its number, from 0 */
export const laneWorkflowId = (lane: number | string): string => `webhook-lane:${lane}`;

/** Of the schedule that starts the sweeps; Temporal adds the time to it for each sweep's own workflow. */
export const SWEEP_ID = 'sweep';

export const otpWorkflowId = (challengeId: string): string => `otp:${challengeId}`;

export const sandboxCollectionWorkflowId = (settlementId: string): string => `sandbox-collection:${settlementId}`;

export const sandboxEventWorkflowId = (commandId: string): string => `sandbox-event:${commandId}`;

export const sandboxVerificationWorkflowId = (verificationId: string): string =>
  `sandbox-verification:${verificationId}`;
