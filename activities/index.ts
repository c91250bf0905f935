/** All activities. The worker registers them; workflows import their types. */
import { asyncLocalStorage } from '@temporalio/activity';
import type { ActivityDeps } from './deps.ts';
import { withFailures } from './failure.ts';
import { inLocalSandboxOnly } from './local-sandbox.ts';
import { otpActivities } from './otp.ts';
import { sandboxActivities } from './sandbox.ts';
import { settlementActivities } from './settlement.ts';
import { sweepActivities } from './sweep.ts';
import { verificationActivities, verificationSandboxActivities } from './verification.ts';
import { webhookDeliveryActivities } from './webhook-delivery.ts';
import { webhookSubscriptionActivities } from './webhook-subscription.ts';

export function createActivities(deps: ActivityDeps) {
  const activities = {
    ...settlementActivities(deps),
    ...verificationActivities(deps),
    ...webhookDeliveryActivities(deps),
    ...webhookSubscriptionActivities(deps),
    ...otpActivities(deps),
    ...sweepActivities(deps),
    ...inLocalSandboxOnly(deps.runtime, { ...sandboxActivities(deps), ...verificationSandboxActivities(deps) }),
  };
  return withFailures(activities, (error, activity) =>
    deps.log.warn({ err: error, activity, ...runFields() }, 'an activity failed'),
  );
}

/** The run that an activity belongs to; empty when a test calls the activity outside of Temporal. */
function runFields(): Record<string, unknown> {
  const info = asyncLocalStorage.getStore()?.info;
  return info === undefined
    ? {}
    : { workflow_id: info.workflowExecution?.workflowId, run_id: info.workflowExecution?.runId, attempt: info.attempt };
}

export type Activities = ReturnType<typeof createActivities>;
