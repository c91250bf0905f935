/** Verifications and the settlements that wait for them, over the whole service. */
import { ApplicationFailure } from '@temporalio/common';
import { describe, expect } from 'vitest';
import { simulatedApplicantId } from '../../db/id.ts';
import { DomainError } from '../../domain/error.ts';
import type { IdentityProvider } from '../../domain/idverify.ts';
import { verificationWorkflowId } from '../../domain/workflow-id.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import type { TestStack } from '../support/stack.ts';
import { complete, openVerification, statusOf } from '../support/verification.ts';

/** The e-mail addresses of recipients for whom the provider fails, twice each. */
const failing = new Map<string | null, number>();
/** What happens at the first try for these, before the provider answers. */
const losing = new Map<string | null, (verificationId: string) => Promise<unknown>>();
const idverify: IdentityProvider = {
  simulation: true,
  createApplicant: async ({ verificationId, email }) => {
    const lose = losing.get(email);
    losing.delete(email);
    await lose?.(verificationId);
    const left = failing.get(email) ?? 0;
    failing.set(email, left - 1);
    if (left > 0) throw new DomainError('temporarily_unavailable');
    return simulatedApplicantId(verificationId);
  },
  issueToken: async () => expect.fail('a worker issues no token'),
};

const test = withStack({ activities: { idverify } }).extend('world', FILE, ({ api, partner, stack }) => ({
  createRecipient: (overrides: Record<string, unknown> = {}) => createRecipient(stack.api, partner, overrides),
  openVerification: (recipientId: string): Promise<Json> => openVerification(api, partner, recipientId),
  complete: (verificationId: string, body: Record<string, unknown>) => complete(api, partner, verificationId, body),
  settle: (recipientId: string) => settle(api, partner, { recipient_id: recipientId, amount: '1000.00' }),
  applicant: async (recipientId: string): Promise<Json> => {
    const answer = await api.call(partner, 'POST', '/v1/kyc/idverify/applicant', {
      recipient_id: recipientId,
      org_id: partner.orgId,
    });
    expect(answer.statusCode, answer.body).toBe(201);
    return jsonOf(answer);
  },
  untilStatus: (settlementId: string, status: string) => untilStatus(stack.api, partner, settlementId, status),
}));

describe('a settlement that is held for verification', () => {
  test('settles when the simulated provider answers GREEN, and is rejected on RED', async ({ world }) => {
    const [green, red] = [
      await world.createRecipient({ name: 'KYC APPROVE Brown' }),
      await world.createRecipient({ name: 'KYC REJECT Brown' }),
    ];
    const [approved, refused] = [await world.settle(green), await world.settle(red)];
    for (const id of [approved, refused]) await world.untilStatus(id, 'compliance_hold');
    await Promise.all([world.applicant(green), world.applicant(red)]);
    await world.untilStatus(approved, 'settled');
    const rejected = await world.untilStatus(refused, 'rejected');
    expect(rejected.failure).toMatchObject({ code: 'verification_rejected' });
  });
});

describe('an applicant', () => {
  const eventsOf = async (stack: TestStack, verificationId: string) =>
    (await stack.temporal.workflow.getHandle(verificationWorkflowId(verificationId)).fetchHistory()).events ?? [];

  test('is created by an activity, which the workflow repeats until the provider answers', async ({ world, stack }) => {
    const email = 'flaky@acme.example';
    failing.set(email, 2);
    const made = await world.applicant(await world.createRecipient({ email }));
    expect(made.applicant_id).toBe(simulatedApplicantId(made.verification_id));
    const started = (await eventsOf(stack, made.verification_id)).flatMap(
      ({ activityTaskStartedEventAttributes: attributes }) => (attributes ? [attributes.attempt] : []),
    );
    expect(started).toEqual([3]);
  });

  test('is created although an earlier try has failed for good, and requests at once share each try', async ({
    world,
    stack,
  }) => {
    const email = 'lost@acme.example';
    losing.set(email, async () => {
      throw ApplicationFailure.nonRetryable('There is no such verification.', 'not_found');
    });
    const recipientId = await world.createRecipient({ email });
    const [one, two] = await Promise.all([world.applicant(recipientId), world.applicant(recipientId)]);
    expect(two).toMatchObject({ applicant_id: one.applicant_id });
    const scheduled = (await eventsOf(stack, one.verification_id)).filter(
      ({ activityTaskScheduledEventAttributes: attributes }) => attributes,
    );
    expect(scheduled).toHaveLength(2);
  });

  test('is created once the database has its verification back, although a request came while that was lost', async ({
    api,
    partner,
    world,
  }) => {
    const email = 'gone@acme.example';
    const rename = (from: string, to: string) =>
      api.owner.pool.query('UPDATE verifications SET verification_id = $2 WHERE verification_id = $1', [from, to]);
    let verificationId = '';
    losing.set(email, async (id) => {
      verificationId = id;
      await rename(id, 'lost');
    });
    const recipientId = await world.createRecipient({ email });
    const refused = await api.call(partner, 'POST', '/v1/kyc/idverify/applicant', { recipient_id: recipientId });
    expect([refused.statusCode, jsonOf(refused).code]).toEqual([503, 'temporarily_unavailable']);
    await rename('lost', verificationId);
    expect((await world.applicant(recipientId)).verification_id).toBe(verificationId);
  });

  test('is created again if the database has lost it, although the run has created it before', async ({
    api,
    world,
  }) => {
    const recipientId = await world.createRecipient();
    const made = await world.applicant(recipientId);
    await api.owner.pool.query('UPDATE verifications SET applicant_id = NULL WHERE verification_id = $1', [
      made.verification_id,
    ]);
    expect(await world.applicant(recipientId)).toMatchObject({ applicant_id: made.applicant_id });
  });

  test('503 while no worker runs; repeating continues the same verification', async ({
    api,
    partner,
    world,
    stack,
  }) => {
    const recipientId = await world.createRecipient();
    await stack.stopWorker();
    const body = { recipient_id: recipientId };
    const refused = await api.call(partner, 'POST', '/v1/kyc/idverify/applicant', body);
    expect([refused.statusCode, jsonOf(refused).code]).toEqual([503, 'temporarily_unavailable']);
    const { latest } = await statusOf(api, partner, recipientId);
    expect(latest).toMatchObject({ status: 'pending', applicant_id: null });
    await stack.startWorker();
    expect((await world.applicant(recipientId)).verification_id).toBe(latest.verification_id);
  });
});

describe('what operators see', () => {
  test('an open verification, its kind and what it waits for; a decided one waits for nothing', async ({
    world,
    stack,
    partner,
  }) => {
    const recipientId = await world.createRecipient();
    const { verification_id: verificationId } = await world.openVerification(recipientId);
    const handle = stack.temporal.workflow.getHandle(verificationWorkflowId(verificationId));
    const waitingFor = async () => (await handle.describe()).typedSearchAttributes.get(SEARCH_ATTRIBUTES.WaitingFor);
    await expect.poll(waitingFor, WAIT).toBe('verification decision');
    const described = await handle.describe();
    expect(described.typedSearchAttributes.get(SEARCH_ATTRIBUTES.OrgId)).toBe(partner.orgId);
    expect(await described.staticSummary()).toBe('kyc verification by manual_mock');
    await world.complete(verificationId, { status: 'rejected', rejection_reason: 'blurred' });
    expect(await handle.result()).toEqual({ status: 'rejected' });
    expect(await waitingFor()).toBeUndefined();
  });
});
