import { eq } from 'drizzle-orm';
import { pino } from 'pino';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { buildApp } from '../../api/app.ts';
import type { ApiDeps } from '../../api/deps.ts';
import { verificationIdOf } from '../../db/id.ts';
import { findVerification } from '../../db/queries/verification.ts';
import { outbox, verifications } from '../../db/schema/index.ts';
import { DomainError } from '../../domain/error.ts';
import type { IdentityProvider } from '../../domain/idverify.ts';
import { raceBehind } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { expectInvalid, expectRefused } from '../support/refusal.ts';
import {
  complete,
  eventTypesOf,
  holdingRecipient,
  openVerification,
  statusOf,
  verifyBody,
} from '../support/verification.ts';

const DAY_MS = 24 * 60 * 60_000;

const NOW = new Date('2026-11-21T08:00:00.000Z');

const createApplicant = vi.fn<IdentityProvider['createApplicant']>(
  async ({ verificationId }) => `app-of-${verificationId}`,
);
const issueToken = vi.fn<IdentityProvider['issueToken']>(async () => ({
  token: `token-${crypto.randomUUID()}`,
  expiresAt: NOW,
}));

/** `kyc`: what the partner does about its recipients' verifications. */
const test = withApi({ deps: { idverify: { simulation: false, createApplicant, issueToken } } }).extend(
  'kyc',
  FILE,
  ({ api, partner }) => {
    const bodyOf = (recipientId: string, overrides: Record<string, unknown> = {}) =>
      verifyBody(partner, recipientId, overrides);
    const post =
      (path: string) =>
      (body: unknown, headers: Record<string, string> = {}) =>
        api.call(partner, 'POST', path, body, headers);
    const ask = post('/v1/kyc/idverify/applicant');
    return {
      bodyOf,
      ask,
      newRecipient: (overrides: Record<string, unknown> = {}) => createRecipient(api, partner, overrides),
      deactivate: (recipientId: string) => api.call(partner, 'DELETE', `/v1/recipients/${recipientId}`),
      verify: post('/v1/kyc/verify'),
      applicant: (recipientId: string, overrides: Record<string, unknown> = {}) => ask(bodyOf(recipientId, overrides)),
      open: (recipientId: string, overrides: Record<string, unknown> = {}) =>
        openVerification(api, partner, recipientId, overrides),
      complete: (id: string, body: Record<string, unknown>) => complete(api, partner, id, body),
      statusOf: (recipientId: string) => statusOf(api, partner, recipientId),
      eventTypesOf: (id: string) => eventTypesOf(api, id),
      find: (id: string) => findVerification(api.deps, partner.orgId, id),
      refused: (run: Parameters<typeof expectRefused>[1], status: number, problem: object) =>
        expectRefused(api, run, status, problem),
    };
  },
);
test.beforeEach(({ clock }) => clock.stop(NOW));

describe('POST /v1/kyc/verify', () => {
  test('409 for an inactive recipient', async ({ kyc }) => {
    const recipientId = await kyc.newRecipient();
    await kyc.deactivate(recipientId);
    await kyc.refused(() => kyc.verify(kyc.bodyOf(recipientId)), 409, {
      code: 'state_conflict',
      current_state: 'inactive',
    });
  });

  test('409 while one of the same type is open; 201 for the other type and after the decision', async ({ kyc }) => {
    const recipientId = await kyc.newRecipient();
    const first = await kyc.open(recipientId);
    const keyed = { 'idempotency-key': crypto.randomUUID() };
    await kyc.refused(() => kyc.verify(kyc.bodyOf(recipientId), keyed), 409, {
      code: 'state_conflict',
      current_state: 'pending',
      verification_id: first.verification_id,
    });
    expect((await kyc.verify(kyc.bodyOf(recipientId, { verification_type: 'kyb' }))).statusCode).toBe(201);
    await kyc.complete(first.verification_id, { status: 'rejected', rejection_reason: 'blurred' });
    // A refused request does not bind its key.
    expect((await kyc.verify(kyc.bodyOf(recipientId), keyed)).statusCode).toBe(201);
  });

  test('201 with event and outbox row, and the recipient becomes pending', async ({ api, partner, kyc }) => {
    const recipientId = await kyc.newRecipient({ entity_type: 'business' });
    const answer = await kyc.verify(
      kyc.bodyOf(recipientId, { document_type: 'certificate_of_incorporation', document_country: 'JM' }),
    );
    expect(answer.statusCode).toBe(201);
    const opened = jsonOf(answer);
    expect(opened).toEqual({
      verification_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      recipient_id: recipientId,
      org_id: partner.orgId,
      verification_type: 'kyb',
      document_type: 'certificate_of_incorporation',
      document_country: 'JM',
      status: 'pending',
      provider: 'manual_mock',
      applicant_id: null,
      verified_name: null,
      rejection_reason: null,
      created_at: NOW.toISOString(),
      decided_at: null,
      expires_at: new Date(NOW.getTime() + 30 * DAY_MS).toISOString(),
      workflow_id: `verification:${opened.verification_id}`,
    });
    expect((await kyc.statusOf(recipientId)).verification_status).toBe('pending');
    expect(await kyc.eventTypesOf(opened.verification_id)).toEqual(['verification.pending']);
    const rows = await api.connection.db
      .select({ kind: outbox.kind, signal: outbox.signal })
      .from(outbox)
      .where(eq(outbox.objectId, opened.verification_id));
    expect(rows).toEqual([{ kind: 'verification', signal: null }]);
  });

  test('201 without org_id, with null for it, and with that of the key; 403 for another', async ({ api, kyc }) => {
    const { orgId: other } = await api.createCaller();
    for (const org_id of [{}, { org_id: null }])
      expect((await kyc.verify({ recipient_id: await kyc.newRecipient(), ...org_id })).statusCode).toBe(201);
    const recipientId = await kyc.newRecipient();
    await kyc.refused(() => kyc.verify({ recipient_id: recipientId, org_id: other }), 403, {
      code: 'organization_mismatch',
    });
  });

  test('201 and 409 for two at once', async ({ api, kyc }) => {
    const recipientId = await kyc.newRecipient();
    const open = () => kyc.verify(kyc.bodyOf(recipientId));
    const answers = await raceBehind(api.connection.pool, holdingRecipient(recipientId), [open, open]);
    expect(answers.map(({ statusCode }) => statusCode).sort((a, b) => a - b)).toEqual([201, 409]);
    expect((await kyc.statusOf(recipientId)).verifications).toHaveLength(1);
  });
});

describe('an Idempotency-Key of a verification', () => {
  test('201 with the same bytes for a replay, also after the decision and for an inactive recipient', async ({
    kyc,
  }) => {
    const recipientId = await kyc.newRecipient();
    const keyed = { 'idempotency-key': crypto.randomUUID() };
    const body = JSON.stringify(kyc.bodyOf(recipientId));
    const first = await kyc.verify(body, keyed);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    await kyc.complete(jsonOf(first).verification_id, { status: 'verified' });
    await kyc.deactivate(recipientId);
    const again = await kyc.verify(body, keyed);
    expect([again.statusCode, again.headers['idempotency-replayed'], again.body]).toEqual([201, 'true', first.body]);
  });

  test('names one verification: its id is a UUIDv8 of organization and key, and so its workflow too', async ({
    api,
    partner,
    kyc,
  }) => {
    const key = `verify-${crypto.randomUUID()}`;
    const opened = jsonOf(await kyc.verify(kyc.bodyOf(await kyc.newRecipient()), { 'idempotency-key': key }));
    const id = verificationIdOf(partner.orgId, key);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(opened).toMatchObject({ verification_id: id, workflow_id: `verification:${id}` });
    const { orgId: other } = await api.createCaller();
    expect(verificationIdOf(other, key)).not.toBe(id);
  });

  test('409 for another recipient, where the provider failed and the key is not bound', async ({ partner, kyc }) => {
    const [first, second] = [await kyc.newRecipient(), await kyc.newRecipient()];
    const keyed = { 'idempotency-key': crypto.randomUUID() };
    const ask = (recipientId: string) => kyc.ask(kyc.bodyOf(recipientId), keyed);
    issueToken.mockRejectedValueOnce(new DomainError('temporarily_unavailable'));
    expect((await ask(first)).statusCode).toBe(503);
    for (const use of [() => ask(second), () => kyc.verify(kyc.bodyOf(second), keyed)])
      await kyc.refused(use, 409, { code: 'idempotency_key_reused', mismatch: ['recipient_id'] });
    const { verification_id: id } = jsonOf(await ask(first));
    expect(id).toBe(verificationIdOf(partner.orgId, keyed['idempotency-key']));
  });

  test('409 with the verification that it began, once that has ended, where the provider failed', async ({
    partner,
    kyc,
  }) => {
    const body = kyc.bodyOf(await kyc.newRecipient());
    const keyed = { 'idempotency-key': crypto.randomUUID() };
    const ask = () => kyc.ask(body, keyed);
    issueToken.mockRejectedValueOnce(new DomainError('temporarily_unavailable'));
    expect((await ask()).statusCode).toBe(503);
    const id = verificationIdOf(partner.orgId, keyed['idempotency-key']);
    await kyc.complete(id, { status: 'rejected' });
    const ended = { code: 'state_conflict', current_state: 'rejected', verification_id: id };
    await kyc.refused(ask, 409, ended);
  });
});

describe('POST /v1/kyc/{verification_id}/complete', () => {
  const rejected = { status: 'rejected', rejection_reason: 'The document is blurred.' };

  test('200 with a name and a reason, or without, with either decision; none is needed to repeat it', async ({
    kyc,
  }) => {
    for (const status of ['verified', 'rejected']) {
      const bare = (await kyc.open(await kyc.newRecipient())).verification_id;
      expect(jsonOf(await kyc.complete(bare, { status }))).toMatchObject({
        status,
        verified_name: null,
        rejection_reason: null,
      });
      const full = (await kyc.open(await kyc.newRecipient())).verification_id;
      const given = { verified_name: 'Marcia Brown', rejection_reason: 'The document was seen.' };
      const decided = await kyc.complete(full, { status, ...given });
      expect([decided.statusCode, jsonOf(decided)]).toEqual([200, expect.objectContaining({ status, ...given })]);
      await kyc.refused(() => kyc.complete(full, { status }), 200, given);
    }
  });

  test('200 verified; again 200 with the same answer; another decision 409', async ({ partner, kyc }) => {
    const recipientId = await kyc.newRecipient();
    const { verification_id: id } = await kyc.open(recipientId);
    const decision = { status: 'verified', verified_name: 'Marcia Brown', org_id: partner.orgId };
    const answer = await kyc.complete(id, decision);
    expect(answer.statusCode).toBe(200);
    expect(jsonOf(answer)).toMatchObject({
      status: 'verified',
      verified_name: 'Marcia Brown',
      rejection_reason: null,
      decided_at: NOW.toISOString(),
    });
    expect((await kyc.statusOf(recipientId)).verification_status).toBe('verified');
    await kyc.refused(() => kyc.complete(id, decision), 200, jsonOf(answer));
    await kyc.refused(() => kyc.complete(id, rejected), 409, {
      code: 'state_conflict',
      current_state: 'verified',
    });
    expect(await kyc.eventTypesOf(id)).toEqual(['verification.pending', 'verification.verified']);
  });

  test('200 and 409 with the decided state for two different decisions at once', async ({ api, kyc }) => {
    const recipientId = await kyc.newRecipient();
    const { verification_id: id } = await kyc.open(recipientId);
    const answers = await raceBehind(api.connection.pool, holdingRecipient(recipientId), [
      () => kyc.complete(id, { status: 'verified' }),
      () => kyc.complete(id, rejected),
    ]);
    const [won, lost] = [
      answers.find(({ statusCode }) => statusCode === 200),
      answers.find(({ statusCode }) => statusCode === 409),
    ];
    const { status } = jsonOf(won ?? expect.fail('no decision won'));
    expect(jsonOf(lost ?? expect.fail('no decision lost')).current_state).toBe(status);
    expect((await kyc.statusOf(recipientId)).verification_status).toBe(status);
    expect(await kyc.eventTypesOf(id)).toEqual(['verification.pending', `verification.${status}`]);
  });

  test('200 until the last millisecond of thirty days, then 409 expired, before any timer has fired, and 201 for a new one', async ({
    clock,
    kyc,
  }) => {
    const [recipientId, inTime] = [await kyc.newRecipient(), await kyc.newRecipient()];
    const { verification_id: id } = await kyc.open(recipientId);
    const { verification_id: other } = await kyc.open(recipientId, { verification_type: 'kyb' });
    const { verification_id: lastId } = await kyc.open(inTime);
    clock.advance(30 * DAY_MS - 1);
    expect((await kyc.complete(lastId, { status: 'verified' })).statusCode).toBe(200);
    clock.advance(1);
    const late = await kyc.complete(id, { status: 'verified' });
    expect([late.statusCode, jsonOf(late).current_state]).toEqual([409, 'expired']);
    expect((await kyc.statusOf(recipientId)).verification_status).toBe('pending');
    expect((await kyc.verify(kyc.bodyOf(recipientId, { verification_type: 'kyb' }))).statusCode).toBe(201);
    clock.stop(NOW);
    const status = await kyc.statusOf(recipientId);
    expect(status.verification_status).toBe('pending');
    expect(status.verifications.map((each: { status: string }) => each.status).sort()).toEqual([
      'expired',
      'expired',
      'pending',
    ]);
    expect(await kyc.eventTypesOf(other)).toEqual(['verification.pending', 'verification.expired']);
  });
});

test('a decision about an earlier name leaves a recipient pending while the verification of the new name is open', async ({
  api,
  partner,
  kyc,
}) => {
  const recipientId = await kyc.newRecipient();
  const { verification_id: earlier } = await kyc.open(recipientId);
  await api.call(partner, 'PUT', `/v1/recipients/${recipientId}`, { name: 'Another Name' });
  const { verification_id: later } = await kyc.open(recipientId, { verification_type: 'kyb' });
  await kyc.complete(earlier, { status: 'verified' });
  expect((await kyc.statusOf(recipientId)).verification_status).toBe('pending');
  await kyc.complete(later, { status: 'verified' });
  expect((await kyc.statusOf(recipientId)).verification_status).toBe('verified');
});

describe('GET /v1/kyc/status/{recipient_id}', () => {
  test('200 without verifications for an unverified recipient', async ({ kyc }) => {
    const recipientId = await kyc.newRecipient();
    expect(await kyc.statusOf(recipientId)).toEqual({
      recipient_id: recipientId,
      verification_status: 'unverified',
      latest: null,
      verifications: [],
    });
  });

  test('200 newest first, for a key of scope read', async ({ api, partner, kyc }) => {
    const recipientId = await kyc.newRecipient();
    const first = await kyc.open(recipientId);
    await kyc.complete(first.verification_id, { status: 'rejected', rejection_reason: 'x' });
    const second = await kyc.open(recipientId);
    const reader = await api.createKey(partner.orgId, 'read');
    const status = await statusOf(api, reader, recipientId);
    expect(status.latest).toEqual(second);
    expect(status.verifications.map((each: { verification_id: string }) => each.verification_id)).toEqual([
      second.verification_id,
      first.verification_id,
    ]);
  });
});

/** The provider hangs for the next two orders. @returns what answers each, in the order in which they come */
function hangTwice(): ((applicantId: string) => void)[] {
  const answers: ((applicantId: string) => void)[] = [];
  const hang = () => new Promise<string>((resolve) => answers.push(resolve));
  createApplicant.mockImplementationOnce(hang).mockImplementationOnce(hang);
  return answers;
}

describe('POST /v1/kyc/idverify/applicant', () => {
  test('422 for an unknown level and 409 as for every opening, and the provider is not called', async ({ kyc }) => {
    const before = createApplicant.mock.calls.length;
    const recipientId = await kyc.newRecipient();
    const gone = await kyc.newRecipient();
    await kyc.deactivate(gone);
    const manual = await kyc.newRecipient();
    await kyc.open(manual);
    // The operator chooses the sets of checks, so that nobody is checked less than it wants.
    for (const level_name of ['basic', 'Enhanced', 'enhanced ', ''])
      await kyc.refused(() => kyc.applicant(recipientId, { level_name }), 422, {
        detail: [expect.objectContaining({ loc: ['body', 'level_name'] })],
      });
    await kyc.refused(() => kyc.applicant(gone), 409, { current_state: 'inactive' });
    await kyc.refused(() => kyc.applicant(manual), 409, { current_state: 'pending' });
    expect(createApplicant).toHaveBeenCalledTimes(before);
  });

  test('422 lists an unknown level with the faults of the form', async ({ api, kyc }) => {
    const recipientId = await kyc.newRecipient();
    await expectInvalid(api, () => kyc.applicant(recipientId, { level_name: 'basic', email: 'x'.repeat(255) }), [
      ['body.level_name', 'value_error'],
      ['body.email', 'string_too_long'],
    ]);
  });

  test("201, and the provider gets the recipient's profile, not the caller's fields", async ({ kyc }) => {
    const recipientId = await kyc.newRecipient({ email: 'profile@acme.example', phone: '+18765550100' });
    const answer = await kyc.applicant(recipientId, {
      level_name: 'enhanced',
      email: 'any text',
      phone: '0',
      country: '',
    });
    expect(answer.statusCode, answer.body).toBe(201);
    const { verification_id: id } = jsonOf(answer);
    expect(jsonOf(answer)).toEqual({
      verification_id: id,
      applicant_id: `app-of-${id}`,
      sdk_access_token: expect.stringMatching(/^token-/),
      sdk_access_token_expires_at: '2026-11-21T08:00:00.000Z',
      provider: 'idverify',
      simulation: false,
    });
    expect(createApplicant.mock.lastCall?.[0]).toEqual({
      verificationId: id,
      verificationType: 'kyc',
      levelName: 'enhanced',
      email: 'profile@acme.example',
      phone: '+18765550100',
    });
    const stored = await kyc.find(id);
    expect(stored).toMatchObject({
      provider: 'idverify',
      applicantId: `app-of-${id}`,
      givenContact: { email: 'any text', phone: '0', country: '' },
    });
    expect((await kyc.statusOf(recipientId)).latest).toMatchObject({
      verification_id: id,
      provider: 'idverify',
      applicant_id: `app-of-${id}`,
    });
  });

  test('503 if the provider fails; a retry continues with the same verification', async ({ api, kyc }) => {
    const recipientId = await kyc.newRecipient();
    const seen: string[] = [];
    issueToken.mockImplementationOnce(async ({ verificationId }) => {
      const [row] = await api.connection.db
        .select()
        .from(verifications)
        .where(eq(verifications.verificationId, verificationId));
      seen.push(row?.status ?? 'nothing');
      throw new DomainError('temporarily_unavailable');
    });
    const failed = await kyc.applicant(recipientId);
    expect([failed.statusCode, failed.headers['retry-after'], jsonOf(failed).code]).toEqual([
      503,
      '2',
      'temporarily_unavailable',
    ]);
    expect(seen).toEqual(['pending']);
    const { latest } = await kyc.statusOf(recipientId);
    expect(latest).toMatchObject({ status: 'pending', applicant_id: `app-of-${latest.verification_id}` });
    const repeated = await kyc.applicant(recipientId);
    expect(jsonOf(repeated)).toMatchObject({
      verification_id: latest.verification_id,
      applicant_id: `app-of-${latest.verification_id}`,
    });
  });

  test('201 with another level while the provider refuses the first one, on the same verification', async ({ kyc }) => {
    const recipientId = await kyc.newRecipient();
    createApplicant.mockRejectedValueOnce(new DomainError('temporarily_unavailable'));
    expect((await kyc.applicant(recipientId, { level_name: 'enhanced' })).statusCode).toBe(500);
    const { latest } = await kyc.statusOf(recipientId);
    expect(latest.applicant_id).toBeNull();
    const answer = await kyc.applicant(recipientId, { level_name: 'another' });
    expect(answer.statusCode, answer.body).toBe(201);
    expect(jsonOf(answer).verification_id).toBe(latest.verification_id);
    expect(createApplicant.mock.lastCall?.[0]).toMatchObject({ levelName: 'another' });
    expect(issueToken.mock.lastCall?.[0]).toMatchObject({ levelName: 'another' });
    const again = await kyc.applicant(recipientId, {});
    expect([again.statusCode, jsonOf(again).verification_id]).toEqual([201, latest.verification_id]);
    await kyc.refused(() => kyc.applicant(recipientId, { level_name: 'enhanced' }), 409, {
      current_state: 'pending',
    });
  });

  test('another level, while the provider is asked for the first one, holds for the applicant and for every token', async ({
    kyc,
  }) => {
    const recipientId = await kyc.newRecipient();
    const answers = hangTwice();
    const [calls, tokens] = [createApplicant.mock.calls.length, issueToken.mock.calls.length];
    const first = kyc.applicant(recipientId);
    await vi.waitUntil(() => answers.length === 1, WAIT);
    const second = kyc.applicant(recipientId, { level_name: 'another' });
    await vi.waitUntil(() => answers.length === 2, WAIT);
    answers[0]?.('app-basic');
    const shown = [jsonOf(await first)];
    answers[1]?.('app-late');
    shown.push(jsonOf(await second));
    const id = shown[0]?.verification_id;
    for (const each of shown) expect(each).toMatchObject({ verification_id: id, applicant_id: `app-of-${id}` });
    expect(await kyc.find(id)).toMatchObject({
      levelName: 'another',
      applicantId: `app-of-${id}`,
    });
    const levelsOf = (orders: [{ readonly levelName: string }][]) => orders.map(([{ levelName }]) => levelName);
    expect(levelsOf(createApplicant.mock.calls.slice(calls))).toEqual(['basic-kyc-level', 'another', 'another']);
    expect(levelsOf(issueToken.mock.calls.slice(tokens))).toEqual(['another', 'another']);
  });

  test('409 for a level, if the applicant was created for another one meanwhile', async ({ kyc }) => {
    const recipientId = await kyc.newRecipient();
    const answers = hangTwice();
    const first = kyc.applicant(recipientId, { level_name: 'enhanced' });
    await vi.waitUntil(() => answers.length === 1, WAIT);
    const second = kyc.applicant(recipientId, { level_name: 'another' });
    await vi.waitUntil(() => answers.length === 2, WAIT);
    answers[1]?.('app-another');
    expect((await second).statusCode).toBe(201);
    answers[0]?.('app-late');
    expect([(await first).statusCode, jsonOf(await first)]).toEqual([
      409,
      expect.objectContaining({ code: 'state_conflict', current_state: 'pending' }),
    ]);
  });

  test('201 again with the same applicant and a new token; two at once are one verification', async ({ api, kyc }) => {
    const recipientId = await kyc.newRecipient();
    const open = () => kyc.applicant(recipientId);
    const [one, two] = (await raceBehind(api.connection.pool, holdingRecipient(recipientId), [open, open])).map(jsonOf);
    expect(two.verification_id).toBe(one.verification_id);
    expect(two.sdk_access_token).not.toBe(one.sdk_access_token);
    await kyc.refused(() => kyc.applicant(recipientId, { level_name: 'another' }), 409, {
      current_state: 'pending',
    });
  });

  test('201 for a repeated request, which changes nothing of the contact that the first one gave', async ({ kyc }) => {
    const recipientId = await kyc.newRecipient();
    const given = { email: 'first', phone: '1', country: 'one' };
    const { verification_id: id } = jsonOf(await kyc.applicant(recipientId, given));
    expect((await kyc.applicant(recipientId, { email: 'second', phone: '2', country: 'two' })).statusCode).toBe(201);
    expect(await kyc.find(id)).toMatchObject({ givenContact: given });
  });

  test('201 with the first answer for its key after the level, or the provider, was taken out of the configuration', async ({
    api,
    partner,
    kyc,
  }) => {
    const recipientId = await kyc.newRecipient();
    const headers = { 'x-api-key': partner.apiKey, 'idempotency-key': crypto.randomUUID() };
    const payload = kyc.bodyOf(recipientId, { level_name: 'enhanced' });
    const post = async (changes: Partial<ApiDeps>, key = headers['idempotency-key']) => {
      const app = await buildApp({ ...api.deps, ...changes }, pino({ level: 'silent' }));
      const call = { method: 'POST', url: '/v1/kyc/idverify/applicant', payload } as const;
      onTestFinished(() => app.close());
      return await app.inject({ ...call, headers: { ...headers, 'idempotency-key': key } });
    };
    const withoutLevel = { config: { ...api.deps.config, idverifyLevelNames: [] } };
    const first = await post({});
    expect(first.statusCode, first.body).toBe(201);
    for (const changes of [withoutLevel, { idverify: undefined }, { ...withoutLevel, idverify: undefined }]) {
      const again = await post(changes);
      expect([again.statusCode, again.body]).toEqual([201, first.body]);
    }
    const other = crypto.randomUUID();
    expect((await post({ ...withoutLevel, idverify: undefined }, other)).statusCode).toBe(422);
    expect(jsonOf(await post({ idverify: undefined }, other)).code).toBe('provider_not_configured');
  });
});
