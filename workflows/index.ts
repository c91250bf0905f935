/** The workflow types. Their names are permanent: running workflows are found by them. */
export { otp } from './otp.ts';
export { sandboxCollection } from './sandbox/collection.ts';
export { sandboxEvent } from './sandbox/event.ts';
export { sandboxVerification } from './sandbox/verification.ts';
export { settlement } from './settlement.ts';
export { sweep } from './sweep.ts';
export { verification } from './verification.ts';
export { webhookLane } from './webhook-lane.ts';
export { webhookSubscription } from './webhook-subscription.ts';
