import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import { events, verifications } from '../../db/schema/index.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { createRecipient, jsonOf } from '../support/partner.ts';
import { openVerification, statusOf } from '../support/verification.ts';

let api: TestApi;
let caller: Caller;
let baseUrl: string;

beforeAll(async () => {
  api = await createTestApi();
  caller = await api.createCaller();
  baseUrl = await api.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => api.close());

const activities = () => createActivities(activityDeps(api, baseUrl, { nudge: () => undefined }));

const opened = async (name?: string) => {
  const recipientId = await createRecipient({ api }, caller, name === undefined ? {} : { name });
  const verification = await openVerification(api, caller, recipientId);
  return {
    recipientId,
    input: { verificationId: verification.verification_id, orgId: caller.orgId },
    expiresAtMs: Date.parse(verification.expires_at),
  };
};

describe('reviewing', () => {
  test("another organization's verification is not found, for good", async () => {
    const { input } = await opened();
    await expect(activities().reviewVerification({ ...input, orgId: 'other', nowMs: 0 })).rejects.toMatchObject({
      type: 'not_found',
      nonRetryable: true,
    });
  });

  test('before its end changes nothing and tells how long it waits', async () => {
    const { input, expiresAtMs } = await opened();
    const before = await digestTables(api.connection.pool);
    expect(await activities().reviewVerification({ ...input, nowMs: expiresAtMs - 1 })).toEqual({
      status: 'pending',
      waitMs: 1,
    });
    expect(await digestTables(api.connection.pool)).toEqual(before);
  });

  test('at its end expires it, once, however often and however many at once', async () => {
    const { input, expiresAtMs, recipientId } = await opened();
    const review = () => activities().reviewVerification({ ...input, nowMs: expiresAtMs });
    const states = await Promise.all(Array.from({ length: 6 }, review));
    expect(states).toEqual(states.map(() => ({ status: 'expired', waitMs: null })));
    const told = await api.connection.db
      .select({ type: events.type })
      .from(events)
      .where(eq(events.objectId, input.verificationId));
    expect(told.map(({ type }) => type)).toEqual(['verification.pending', 'verification.expired']);
    const status = await statusOf(api, caller, recipientId);
    expect([status.verification_status, status.latest.decided_at]).toEqual(['expired', null]);
  });

  test.each(['events', 'verifications', 'recipients'])(
    'failing while it writes %s, it leaves nothing behind, and the repetition completes it',
    async (table) => {
      const { input, expiresAtMs } = await opened();
      const review = () => activities().reviewVerification({ ...input, nowMs: expiresAtMs });
      const before = await digestTables(api.connection.pool);
      await api.connection.pool.query(`ALTER TABLE ${table} ADD CONSTRAINT fails CHECK (false) NOT VALID`);
      await expect(review()).rejects.toMatchObject({ type: 'dependency:unknown', nonRetryable: false });
      await api.connection.pool.query(`ALTER TABLE ${table} DROP CONSTRAINT fails`);
      expect(await digestTables(api.connection.pool)).toEqual(before);
      expect((await review()).status).toBe('expired');
    },
  );
});

describe('the simulated provider', () => {
  test('does nothing about a recipient whose name says nothing', async () => {
    expect(await activities().planVerification((await opened()).input)).toEqual([]);
  });

  test('posts what the name stands for, signed; twice is once', async () => {
    const { input, recipientId } = await opened('KYC REJECT Brown');
    const plan = await activities().planVerification(input);
    expect(plan).toEqual([
      { step: 0, event: 'applicantPending' },
      { step: 1, event: 'applicantReviewed' },
    ]);
    await activities().postVerificationEvent({ ...input, step: 0 });
    expect((await statusOf(api, caller, recipientId)).latest.status).toBe('in_review');
    await activities().postVerificationEvent({ ...input, step: 1 });
    const decided = await statusOf(api, caller, recipientId);
    expect(decided.latest).toMatchObject({ status: 'rejected', rejection_reason: 'DOCUMENT_TEMPLATE' });
    const before = await digestTables(api.connection.pool);
    for (const step of [0, 1]) await activities().postVerificationEvent({ ...input, step });
    expect(await digestTables(api.connection.pool)).toEqual(before);
  });

  test('an applicant in the sandbox asks for it once, however often the token is asked for', async () => {
    const recipientId = await createRecipient({ api }, caller, { name: 'KYC APPROVE Brown' });
    const ask = async () =>
      jsonOf(
        await api.call(caller, 'POST', '/v1/kyc/idverify/applicant', {
          recipient_id: recipientId,
          org_id: caller.orgId,
        }),
      );
    const [one, two] = [await ask(), await ask()];
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

  test('is closed outside the local sandbox', async () => {
    const { input } = await opened('KYC REJECT Brown');
    const remote = createActivities({
      ...activityDeps(api, baseUrl, { nudge: () => undefined }),
      runtime: 'remote-sandbox',
    });
    await expect(remote.planVerification(input)).rejects.toMatchObject({
      type: 'local_sandbox_only',
      nonRetryable: true,
    });
    await expect(remote.postVerificationEvent({ ...input, step: 0 })).rejects.toMatchObject({
      type: 'local_sandbox_only',
      nonRetryable: true,
    });
  });
});
