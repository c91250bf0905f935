/** All activities; the worker registers them, workflows see their types. */
import type { ActivityDeps } from './deps.ts';
import { withFailures } from './failure.ts';
import { inLocalSandboxOnly } from './gate.ts';
import { sandboxActivities } from './sandbox.ts';
import { settlementActivities } from './settlement.ts';
import { verificationActivities, verificationSandboxActivities } from './verification.ts';
import { webhookDeliveryActivities } from './webhook-delivery.ts';

export function createActivities(deps: ActivityDeps) {
  const activities = {
    ...settlementActivities(deps),
    ...verificationActivities(deps),
    ...webhookDeliveryActivities(deps),
    ...inLocalSandboxOnly(deps.runtime, { ...sandboxActivities(deps), ...verificationSandboxActivities(deps) }),
  };
  return withFailures(activities, (error, activity) => deps.log.warn({ err: error, activity }, 'an activity failed'));
}

export type Activities = ReturnType<typeof createActivities>;
