/** The activities of a verification: its expiry, and the events of the simulated provider. */
import { eq } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import { verifications } from '../../db/schema/index.ts';
import { activityDeps } from '../support/activity.ts';
import { whileWritesFail } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { complete, eventTypesOf, openVerification, statusOf } from '../support/verification.ts';

const test = withApi()
  .extend('activities', FILE, ({ api, port }) => createActivities(activityDeps(api, `http://127.0.0.1:${port}`)))
  /** Opens a verification of a new recipient with this name. */
  .extend('open', FILE, ({ api, partner }) => async (name?: string) => {
    const recipientId = await createRecipient(api, partner, name === undefined ? {} : { name });
    const verification = await openVerification(api, partner, recipientId);
    return {
      recipientId,
      input: { verificationId: verification.verification_id, orgId: partner.orgId },
      expiresAtMs: Date.parse(verification.expires_at),
    };
  });

describe('the applicant of a verification', () => {
  test('is awaited while a worker has no provider: the failure is repeated', async ({ api, open }) => {
    const { input } = await open();
    const { createApplicant } = createActivities({ ...activityDeps(api), idverify: undefined });
    await expect(createApplicant(input)).rejects.toMatchObject({ nonRetryable: false });
  });

  test('is asked for sixteen times at once by a worker, so that a provider that hangs leaves slots to other work', async ({
    api,
    open,
  }) => {
    const { input } = await open();
    let answer: (applicantId: string) => void = () => undefined;
    const answered = new Promise<string>((resolve) => {
      answer = resolve;
    });
    const hanging = vi.fn(() => answered);
    const activityEnded = vi.fn();
    const { createApplicant } = createActivities({
      ...activityDeps(api),
      idverify: { simulation: true, createApplicant: hanging, issueToken: vi.fn() },
      observer: { activityEnded, payoutCallFailed: () => undefined, deliveryTaken: () => undefined },
    });
    const asked = Array.from({ length: 16 }, () => createApplicant(input));
    await vi.waitUntil(() => hanging.mock.calls.length === 16, WAIT);
    await expect(createApplicant(input)).rejects.toMatchObject({ type: 'worker_busy', nonRetryable: false });
    expect(activityEnded).not.toHaveBeenCalled();
    answer('app-1');
    await Promise.all(asked);
    expect(hanging).toHaveBeenCalledTimes(16);
    await createApplicant(input);
  });

  test('is not asked for once the verification has ended, so that the provider is not called permanently', async ({
    api,
    activities,
    open,
  }) => {
    const { input, expiresAtMs } = await open();
    await activities.reviewVerification({ ...input, nowMs: expiresAtMs });
    await expectUnchanged(api.connection.pool, async () => {
      await expect(activities.createApplicant(input)).rejects.toMatchObject({
        type: 'state_conflict',
        nonRetryable: true,
      });
    });
  });

  test('is not asked for once the recipient was deactivated: its contact is not given away any more', async ({
    api,
    partner,
    open,
  }) => {
    const { input, recipientId } = await open();
    await api.call(partner, 'DELETE', `/v1/recipients/${recipientId}`);
    const ask = vi.fn(async () => 'app-1');
    const { createApplicant } = createActivities({
      ...activityDeps(api),
      idverify: { simulation: false, createApplicant: ask, issueToken: vi.fn() },
    });
    await expectUnchanged(api.connection.pool, async () => {
      await expect(createApplicant(input)).rejects.toMatchObject({ type: 'state_conflict', nonRetryable: true });
    });
    expect(ask).not.toHaveBeenCalled();
  });
});

describe('a review of a verification', () => {
  test('fails without a retry for the verification of another organization: not_found', async ({
    open,
    activities,
  }) => {
    const { input } = await open();
    await expect(activities.reviewVerification({ ...input, orgId: 'other', nowMs: 0 })).rejects.toMatchObject({
      type: 'not_found',
      nonRetryable: true,
    });
  });

  test('changes nothing before the expiry and returns the remaining wait', async ({ open, activities, api }) => {
    const { input, expiresAtMs } = await open();
    await expectUnchanged(api.connection.pool, async () => {
      expect(await activities.reviewVerification({ ...input, nowMs: expiresAtMs - 1 })).toEqual({
        status: 'pending',
        waitMs: 1,
        until: new Date(expiresAtMs).toISOString(),
        isManual: true,
      });
    });
  });

  test('expires the verification once at the expiry, even when six run at once', async ({
    open,
    activities,
    api,
    partner,
  }) => {
    const { input, expiresAtMs, recipientId } = await open();
    const review = () => activities.reviewVerification({ ...input, nowMs: expiresAtMs });
    const states = await Promise.all(Array.from({ length: 6 }, review));
    const until = new Date(expiresAtMs).toISOString();
    expect(states).toEqual(states.map(() => ({ status: 'expired', waitMs: null, until, isManual: true })));
    expect(await eventTypesOf(api, input.verificationId)).toEqual(['verification.pending', 'verification.expired']);
    const status = await statusOf(api, partner, recipientId);
    expect([status.verification_status, status.latest.decided_at]).toEqual(['expired', null]);
  });

  test('expires its recipient too, whatever was decided before, and whoever else has an open verification', async ({
    open,
    activities,
    api,
    partner,
  }) => {
    const [{ recipientId, input }, other] = [await open(), await open()];
    await complete(api, partner, input.verificationId, { status: 'rejected', rejection_reason: 'forgery' });
    const { verification_id: verificationId, expires_at: until } = await openVerification(api, partner, recipientId);
    await activities.reviewVerification({ verificationId, orgId: partner.orgId, nowMs: Date.parse(until) });
    const statuses = [recipientId, other.recipientId].map((id) => statusOf(api, partner, id));
    expect((await Promise.all(statuses)).map(({ verification_status: status }) => status)).toEqual([
      'expired',
      'pending',
    ]);
  });

  test.for(['events', 'verifications', 'recipients'])(
    'changes nothing if it fails while it writes %s, and its retry completes it',
    async (table, { open, activities, api }) => {
      const { input, expiresAtMs } = await open();
      const review = () => activities.reviewVerification({ ...input, nowMs: expiresAtMs });
      await expectUnchanged(api.connection.pool, async () => {
        await whileWritesFail(api.owner.pool, table, () =>
          expect(review()).rejects.toMatchObject({ type: 'dependency:23514', nonRetryable: false }),
        );
      });
      expect((await review()).status).toBe('expired');
    },
  );
});

describe('the simulated provider', () => {
  test('plans nothing for a recipient with an ordinary name', async ({ open, activities }) => {
    expect(await activities.planVerification((await open()).input)).toEqual([]);
  });

  test('posts the signed events that the name stands for; a second post changes nothing', async ({
    open,
    activities,
    api,
    partner,
  }) => {
    const { input, recipientId } = await open('KYC REJECT Brown');
    const plan = await activities.planVerification(input);
    expect(plan).toEqual([
      { step: 0, event: 'applicantPending' },
      { step: 1, event: 'applicantReviewed' },
    ]);
    await activities.postVerificationEvent({ ...input, step: 0 });
    expect((await statusOf(api, partner, recipientId)).latest.status).toBe('in_review');
    await activities.postVerificationEvent({ ...input, step: 1 });
    const decided = await statusOf(api, partner, recipientId);
    expect(decided.latest).toMatchObject({ status: 'rejected', rejection_reason: 'DOCUMENT_TEMPLATE' });
    await expectUnchanged(api.connection.pool, async () => {
      for (const step of [0, 1]) await activities.postVerificationEvent({ ...input, step });
    });
  });

  test('decides by the name that the verification was opened with, also after a new one', async ({
    open,
    activities,
    api,
    partner,
  }) => {
    const { input, recipientId } = await open('KYC REJECT Brown');
    const answer = await api.call(partner, 'PUT', `/v1/recipients/${recipientId}`, { name: 'KYC APPROVE Green' });
    expect(answer.statusCode).toBe(200);
    for (const step of [0, 1]) await activities.postVerificationEvent({ ...input, step });
    expect((await statusOf(api, partner, recipientId)).latest.status).toBe('rejected');
  });

  test('is started once for an applicant, however often the token is requested', async ({ api, partner }) => {
    const recipientId = await createRecipient(api, partner, { name: 'KYC APPROVE Brown' });
    const requestToken = async () =>
      jsonOf(
        await api.call(partner, 'POST', '/v1/kyc/idverify/applicant', {
          recipient_id: recipientId,
          org_id: partner.orgId,
        }),
      );
    const [one, two] = [await requestToken(), await requestToken()];
    expect(one).toMatchObject({
      simulation: true,
      provider: 'idverify',
      verification_id: two.verification_id,
      applicant_id: two.applicant_id,
    });
    const { rows } = await api.connection.pool.query(
      `SELECT kind FROM outbox WHERE object_id = $1 ORDER BY outbox_id`,
      [one.verification_id],
    );
    expect(rows.map(({ kind }) => kind)).toEqual(['verification', 'sandbox_verification']);
    const [stored] = await api.connection.db
      .select()
      .from(verifications)
      .where(eq(verifications.verificationId, one.verification_id));
    expect(stored?.applicantId).toBe(one.applicant_id);
  });

  test('refuses to run outside the local sandbox', async ({ open, api }) => {
    const { input } = await open('KYC REJECT Brown');
    const remote = createActivities({ ...activityDeps(api), runtime: 'remote-sandbox' });
    const refused = { type: 'local_sandbox_only', nonRetryable: true };
    await expect(remote.planVerification(input)).rejects.toMatchObject(refused);
    await expect(remote.postVerificationEvent({ ...input, step: 0 })).rejects.toMatchObject(refused);
  });
});
