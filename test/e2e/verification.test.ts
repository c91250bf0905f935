import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  sandboxVerificationWorkflowId,
  settlementWorkflowId,
  verificationWorkflowId,
} from '../../domain/workflow-id.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';
import type { Caller } from '../support/api.ts';
import { historyText } from '../support/history.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { complete, openVerification, statusOf } from '../support/verification.ts';

let stack: TestStack;
let caller: Caller;

beforeAll(async () => {
  stack = await startStack();
  caller = await stack.api.createCaller();
});
afterAll(() => stack.close());

const WAIT = { timeout: 20_000, interval: 25 };

const settle = async (recipientId: string): Promise<string> => {
  const body = settleBody(recipientId, { amount: '1000.00' });
  const answer = await stack.api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
  expect(answer.statusCode, answer.body).toBe(202);
  return jsonOf(answer).settlement_id;
};

const applicant = async (recipientId: string) => {
  const answer = await stack.api.call(caller, 'POST', '/v1/kyc/idverify/applicant', {
    recipient_id: recipientId,
    org_id: caller.orgId,
  });
  expect(answer.statusCode, answer.body).toBe(201);
  return jsonOf(answer);
};

async function untilDecided(recipientId: string, status: string): Promise<void> {
  const read = async () => (await statusOf(stack.api, caller, recipientId)).verification_status;
  await expect.poll(read, WAIT).toBe(status);
}

const statusesOf = ({ timeline }: { timeline: { status: string }[] }) => timeline.map(({ status }) => status);

describe('a settlement that is held for verification', () => {
  test('settles once its recipient is verified by hand', async () => {
    const recipientId = await createRecipient(stack, caller);
    const { verification_id: verificationId } = await openVerification(stack.api, caller, recipientId);
    const id = await settle(recipientId);
    await untilStatus(stack, caller, id, 'compliance_hold');
    expect(
      (await complete(stack.api, caller, verificationId, { status: 'verified', verified_name: 'Marcia Brown' }))
        .statusCode,
    ).toBe(200);
    const settled = await untilStatus(stack, caller, id, 'settled');
    expect(statusesOf(settled)).toEqual([
      'accepted',
      'compliance_hold',
      'awaiting_funds',
      'funded',
      'paying_out',
      'settled',
    ]);
  });

  test("settles when the simulated provider's signed event says GREEN, and is rejected when it says RED", async () => {
    const [green, red] = [
      await createRecipient(stack, caller, { name: 'KYC APPROVE Brown' }),
      await createRecipient(stack, caller, { name: 'KYC REJECT Brown' }),
    ];
    const [approved, refused] = [await settle(green), await settle(red)];
    for (const id of [approved, refused]) await untilStatus(stack, caller, id, 'compliance_hold');
    await Promise.all([applicant(green), applicant(red)]);
    await untilStatus(stack, caller, approved, 'settled');
    const rejected = await untilStatus(stack, caller, refused, 'rejected');
    expect(rejected.failure).toMatchObject({ code: 'verification_rejected' });
  });

  test('decided while no worker runs: it is found when one does', async () => {
    const recipientId = await createRecipient(stack, caller);
    const { verification_id: verificationId } = await openVerification(stack.api, caller, recipientId);
    const id = await settle(recipientId);
    await untilStatus(stack, caller, id, 'compliance_hold');
    await stack.stopWorker();
    await complete(stack.api, caller, verificationId, { status: 'verified' });
    await stack.startWorker();
    await untilStatus(stack, caller, id, 'settled');
  });
});

describe('what operators see', () => {
  test('of an open verification: what it is, what it waits for; once decided, nothing is waited for', async () => {
    const recipientId = await createRecipient(stack, caller);
    const { verification_id: verificationId } = await openVerification(stack.api, caller, recipientId);
    const handle = stack.temporal.workflow.getHandle(verificationWorkflowId(verificationId));
    const waitingFor = async () => (await handle.describe()).typedSearchAttributes.get(SEARCH_ATTRIBUTES.WaitingFor);
    await expect.poll(waitingFor, WAIT).toBe('verification decision');
    const described = await handle.describe();
    expect(described.typedSearchAttributes.get(SEARCH_ATTRIBUTES.OrgId)).toBe(caller.orgId);
    expect(await described.staticSummary()).toBe('kyc verification by manual_mock');
    await complete(stack.api, caller, verificationId, { status: 'rejected', rejection_reason: 'blurred' });
    expect(await handle.result()).toEqual({ status: 'rejected' });
    expect(await waitingFor()).toBeUndefined();
  });
});

test('histories have no name, no contact and no token', async () => {
  const secrets = { name: 'KYC APPROVE Uniquename', email: 'unique.mail@acme.example', phone: '+18765550188' };
  const recipientId = await createRecipient(stack, caller, secrets);
  const made = await applicant(recipientId);
  await untilDecided(recipientId, 'verified');
  const manual = await createRecipient(stack, caller, { name: 'Second Uniquename' });
  const { verification_id: byHand } = await openVerification(stack.api, caller, manual);
  const held = await settle(manual);
  await untilStatus(stack, caller, held, 'compliance_hold');
  await complete(stack.api, caller, byHand, { status: 'verified', verified_name: 'Third Uniquename' });
  await untilStatus(stack, caller, held, 'settled');
  const workflowIds = [
    verificationWorkflowId(made.verification_id),
    sandboxVerificationWorkflowId(made.verification_id),
    verificationWorkflowId(byHand),
    settlementWorkflowId(held),
  ];
  for (const workflowId of workflowIds) {
    const handle = stack.temporal.workflow.getHandle(workflowId);
    await handle.result();
    const text = historyText(await handle.fetchHistory());
    expect(text).toContain(caller.orgId);
    for (const secret of ['Uniquename', secrets.email, secrets.phone, made.sdk_access_token])
      expect(text).not.toContain(secret);
  }
});
