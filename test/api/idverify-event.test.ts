import { createHmac } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { verificationIdOf } from '../../db/id.ts';
import { outbox, providerEvents, verifications } from '../../db/schema/index.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { raceBehind } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { changeEnvironment, createRecipient, jsonOf } from '../support/partner.ts';
import { expectRefused } from '../support/refusal.ts';
import {
  complete,
  eventTypesOf,
  holdingRecipient,
  idverifyBody,
  openVerification,
  RED,
  sendIdverify,
  statusOf,
  verifyBody,
} from '../support/verification.ts';

const test = withApi().extend('opened', FILE, ({ api, partner }) => async () => {
  const recipientId = await createRecipient(api, partner);
  const { verification_id: id } = await openVerification(api, partner, recipientId);
  return { id, recipientId, read: async () => (await statusOf(api, partner, recipientId)).latest };
});

describe("the signature of an identity provider's event", () => {
  const digestOf = (bytes: Buffer, secret: string = TEST_SECRETS.idverify, algorithm = 'sha256') =>
    createHmac(algorithm, secret).update(bytes).digest('hex');

  test('401 for every invalid one, before anything is parsed or written', async ({ api, opened }) => {
    const { id } = await opened();
    const bytes = Buffer.from(JSON.stringify(idverifyBody(id)));
    const right = digestOf(bytes);
    const wrong: Record<string, string>[] = [
      { 'x-payload-digest': '' },
      { 'x-payload-digest': digestOf(bytes, TEST_SECRETS.cardproc) },
      { 'x-payload-digest': digestOf(Buffer.from(`${bytes} `)) },
      { 'x-payload-digest': digestOf(bytes, TEST_SECRETS.idverify, 'sha1') },
      { 'x-payload-digest': right.slice(0, -1) },
      { 'x-payload-digest': `${right},${right}` },
      { 'x-payload-digest-alg': 'HMAC_SHA1_HEX' },
      { 'x-payload-digest-alg': 'HMAC_SHA512_HEX' },
      { 'x-payload-digest-alg': 'hmac_sha256_hex' },
      { 'x-payload-digest-alg': '' },
    ];
    for (const headers of wrong) await expectRefused(api, () => sendIdverify(api, bytes, headers), 401);
    for (const half of [{ 'x-payload-digest': right }, { 'x-payload-digest-alg': 'HMAC_SHA256_HEX' }])
      await expectRefused(api, () => api.call(null, 'POST', '/v2/webhooks/idverify', bytes, { ...half }), 401);
    await expectRefused(api, () => sendIdverify(api, Buffer.from('no json'), { 'x-payload-digest': right }), 401);
  });

  test('422 for a review without a known answer, and nothing is stored', async ({ api, opened }) => {
    const { id } = await opened();
    for (const reviewResult of [undefined, { reviewAnswer: 'YELLOW' }])
      await expectRefused(api, () => sendIdverify(api, idverifyBody(id, { reviewResult })), 422);
  });
});

describe("an identity provider's event", () => {
  test('is stored and decides nothing if it names another applicant', async ({ api, opened }) => {
    const { id, read } = await opened();
    await api.connection.db
      .update(verifications)
      .set({ provider: 'idverify', applicantId: 'applicant-1' })
      .where(eq(verifications.verificationId, id));
    const forged = idverifyBody(id, { applicantId: 'applicant-2' });
    expect(jsonOf(await sendIdverify(api, forged))).toMatchObject({ received: true, matched: false });
    expect((await read()).status).toBe('pending');
    expect(jsonOf(await sendIdverify(api, idverifyBody(id, { applicantId: 'applicant-1' })))).toMatchObject({
      matched: true,
    });
    expect((await read()).status).toBe('verified');
  });

  test('200, stored and unmatched for the verification of another environment in the same database', async ({
    api,
  }) => {
    const owner = await api.createCaller();
    const recipientId = await createRecipient(api, owner);
    const { verification_id: id } = await openVerification(api, owner, recipientId);
    await changeEnvironment(api, owner);
    expect(jsonOf(await sendIdverify(api, idverifyBody(id)))).toMatchObject({ duplicate: false, matched: false });
    expect((await statusOf(api, owner, recipientId)).latest.status).toBe('pending');
  });

  test('is not final if it is RED and asks for a retry: a later GREEN verifies', async ({ api, opened }) => {
    const { id, read } = await opened();
    const retry = { reviewResult: { ...RED.reviewResult, reviewRejectType: 'RETRY' } };
    expect(jsonOf(await sendIdverify(api, idverifyBody(id, retry)))).toMatchObject({ matched: true });
    expect((await read()).status).toBe('in_review');
    await sendIdverify(api, idverifyBody(id));
    expect((await read()).status).toBe('verified');
  });

  test('200, stored and unmatched: other types and unknown verifications', async ({ api, opened }) => {
    const { id, read } = await opened();
    for (const event of [
      idverifyBody(id, { type: 'applicantOnHold' }),
      idverifyBody(id, { externalUserId: undefined }),
      idverifyBody(id, { externalUserId: 'unknown' }),
      idverifyBody(id, { externalUserId: null }),
      idverifyBody(id, { externalUserId: '\u0000' }),
      idverifyBody(id, { type: 'applicantCreated', applicantId: null, reviewResult: null, sandboxMode: null }),
      idverifyBody(id, { type: 'videoIdentStatusChanged', externalUserId: 7, reviewResult: [], sandboxMode: 'yes' }),
    ]) {
      const answer = await sendIdverify(api, event);
      expect([answer.statusCode, jsonOf(answer)]).toEqual([
        200,
        { received: true, event_id: event.correlationId, duplicate: false, matched: false },
      ]);
      expect(
        await api.connection.db.select().from(providerEvents).where(eq(providerEvents.eventId, event.correlationId)),
      ).toHaveLength(1);
    }
    expect((await read()).status).toBe('pending');
  });

  test('pending moves to in_review and GREEN to verified, each with its event', async ({ api, partner, opened }) => {
    const { id, recipientId, read } = await opened();
    const absent = { applicantId: null, reviewResult: null, sandboxMode: null };
    const pending = idverifyBody(id, { type: 'applicantPending', ...absent });
    expect(jsonOf(await sendIdverify(api, pending))).toEqual({
      received: true,
      event_id: pending.correlationId,
      duplicate: false,
      matched: true,
    });
    expect(await read()).toMatchObject({ status: 'in_review', decided_at: null });
    await sendIdverify(api, idverifyBody(id));
    expect(await read()).toMatchObject({ status: 'verified', verified_name: null, decided_at: expect.any(String) });
    expect((await statusOf(api, partner, recipientId)).verification_status).toBe('verified');
    expect(await eventTypesOf(api, id)).toEqual(['verification.pending', 'verification.verified']);
    const dispatched = await api.connection.db
      .select({ signal: outbox.signal })
      .from(outbox)
      .where(eq(outbox.objectId, id));
    expect(dispatched.map(({ signal }) => signal)).toEqual([null, 'verificationDecided']);
  });

  test.for([
    [['FORGERY', 'Mr. Brown <b>', 7], 'FORGERY'],
    ['FORGERY', 'REJECTED_BY_PROVIDER'],
  ] as const)('RED with the labels %j moves to rejected: %s', async ([rejectLabels, reason], { api, opened }) => {
    const { id, read } = await opened();
    const reviewResult = { reviewAnswer: 'RED', rejectLabels, moderationComment: 'private' };
    await sendIdverify(api, idverifyBody(id, { reviewResult }));
    expect(await read()).toMatchObject({ status: 'rejected', rejection_reason: reason });
  });

  test('pending after the decision changes nothing', async ({ api, opened }) => {
    const { id, read } = await opened();
    await sendIdverify(api, idverifyBody(id));
    const late = await sendIdverify(api, idverifyBody(id, { type: 'applicantPending', reviewResult: undefined }));
    expect(jsonOf(late)).toMatchObject({ duplicate: false, matched: true });
    expect((await read()).status).toBe('verified');
  });

  test('a second decision is stored and changes nothing, also after a manual decision', async ({
    api,
    partner,
    opened,
  }) => {
    const { id, read } = await opened();
    await complete(api, partner, id, { status: 'verified', verified_name: 'Marcia Brown' });
    const before = await read();
    expect((await sendIdverify(api, idverifyBody(id, RED))).statusCode).toBe(200);
    expect(await read()).toEqual(before);
  });

  test('200 as a duplicate with the same bytes, 409 with other bytes', async ({ api, opened }) => {
    const { id } = await opened();
    const event = idverifyBody(id);
    await sendIdverify(api, event);
    const duplicate = { received: true, event_id: event.correlationId, duplicate: true, matched: true };
    await expectRefused(api, () => sendIdverify(api, event), 200, duplicate);
    await expectRefused(api, () => sendIdverify(api, { ...event, ...RED }), 409, { code: 'provider_event_conflict' });
  });

  test('is applied once if its verification exists only when it is sent again', async ({ api, partner }) => {
    const key = crypto.randomUUID();
    const id = verificationIdOf(partner.orgId, key);
    const pending = idverifyBody(id, { type: 'applicantPending', reviewResult: undefined });
    const green = idverifyBody(id);
    for (const event of [pending, green])
      expect(jsonOf(await sendIdverify(api, event))).toMatchObject({ duplicate: false, matched: false });
    const recipientId = await createRecipient(api, partner);
    await api.call(partner, 'POST', '/v1/kyc/verify', verifyBody(partner, recipientId), { 'idempotency-key': key });
    const status = async () => (await statusOf(api, partner, recipientId)).latest.status;
    const seen: string[] = [];
    for (const event of [pending, pending, green]) {
      expect(jsonOf(await sendIdverify(api, event))).toMatchObject({ duplicate: true, matched: true });
      seen.push(await status());
    }
    expect(seen).toEqual(['in_review', 'in_review', 'verified']);
    for (const event of [green, pending])
      await expectRefused(api, () => sendIdverify(api, event), 200, { duplicate: true, matched: true });
  });

  test('GREEN and RED at the same moment: one decides, both are stored', async ({ api, opened }) => {
    const { id, recipientId, read } = await opened();
    const both = [idverifyBody(id), idverifyBody(id, RED)];
    const tasks = both.map((event) => () => sendIdverify(api, event));
    const answers = await raceBehind(api.connection.pool, holdingRecipient(recipientId), tasks);
    expect(answers.map((answer) => [answer.statusCode, jsonOf(answer).matched])).toEqual([
      [200, true],
      [200, true],
    ]);
    const { status } = await read();
    expect(await eventTypesOf(api, id)).toEqual(['verification.pending', `verification.${status}`]);
  });
});

describe('events in production', () => {
  test("200 and unmatched for a decision of the provider's sandbox; a live decision is applied", async ({ newApi }) => {
    const live = await newApi({
      runtime: 'production',
      deps: {
        idverify: {
          simulation: false,
          createApplicant: async () => 'app-1',
          issueToken: async () => ({ token: 'token', expiresAt: new Date() }),
        },
      },
    });
    const as = await live.createCaller();
    const recipientId = await createRecipient(live, as);
    const made = await live.call(as, 'POST', '/v1/kyc/idverify/applicant', {
      recipient_id: recipientId,
      org_id: as.orgId,
    });
    const { verification_id: id } = jsonOf(made);
    expect(jsonOf(await sendIdverify(live, idverifyBody(id, { sandboxMode: true })))).toMatchObject({
      duplicate: false,
      matched: false,
    });
    expect((await statusOf(live, as, recipientId)).verification_status).toBe('pending');
    expect(jsonOf(await sendIdverify(live, idverifyBody(id, { sandboxMode: false })))).toMatchObject({ matched: true });
    expect((await statusOf(live, as, recipientId)).verification_status).toBe('verified');
    expect(await live.connection.db.select({ kind: outbox.kind }).from(outbox)).not.toContainEqual({
      kind: 'sandbox_verification',
    });
  });
});
