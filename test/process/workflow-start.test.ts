import { expect, test } from 'vitest';
import {
  laneMessage,
  otpMessage,
  sandboxCollectionMessage,
  settlementMessage,
  subscriptionMessage,
  verificationMessage,
} from '../../domain/outbox.ts';
import { workflowStartOf } from '../../process/workflow-start.ts';

const settlement = {
  settlementId: 'stl_1',
  orgId: 'org',
  corridor: 'US-JM',
  paymentMethod: 'card',
  requestId: 'req',
} as const;
const verification = { verificationId: 'v', orgId: 'org', verificationType: 'kyc', provider: 'idverify' } as const;
const subscription = { webhookId: 'w', orgId: 'org' } as const;

test.each([
  ['evidence of a settlement', settlementMessage(settlement, 'evidenceRecorded', 'req'), 'ALLOW_DUPLICATE_FAILED_ONLY'],
  ['a redispatched settlement', settlementMessage(settlement, 'redispatched', 'req'), 'ALLOW_DUPLICATE'],
  ['a verification', verificationMessage(verification, 'verificationDecided', 'req'), 'ALLOW_DUPLICATE_FAILED_ONLY'],
  ['a redispatched verification', verificationMessage(verification, 'redispatched', 'req'), 'ALLOW_DUPLICATE'],
  ['a subscription', subscriptionMessage(subscription, 'req'), 'ALLOW_DUPLICATE'],
  ['a lane', laneMessage(3, 'req'), 'ALLOW_DUPLICATE'],
  ['the simulated provider', sandboxCollectionMessage(settlement), 'ALLOW_DUPLICATE_FAILED_ONLY'],
  ['a one-time code', otpMessage('otp', 'req'), 'REJECT_DUPLICATE'],
] as const)(
  '%s starts a workflow that has ended by the right policy, and signals one that runs',
  (_what, message, policy) => {
    const { workflowIdReusePolicy, workflowIdConflictPolicy } = workflowStartOf(message).options;
    expect([workflowIdReusePolicy, workflowIdConflictPolicy]).toEqual([policy, 'USE_EXISTING']);
  },
);

test('a new settlement, or a new verification, does not take a run that is older than it for its own', () => {
  for (const message of [settlementMessage(settlement, null, 'req'), verificationMessage(verification, null, 'req')]) {
    const { workflowIdReusePolicy, workflowIdConflictPolicy } = workflowStartOf(message).options;
    expect([workflowIdReusePolicy, workflowIdConflictPolicy]).toEqual(['ALLOW_DUPLICATE_FAILED_ONLY', 'FAIL']);
  }
});
