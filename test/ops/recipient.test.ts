/**
 * `erase recipient`: two operators make the personal data of a recipient unreadable, permanently. `export recipient`:
 * one operator prints all that is held about it.
 */
import { randomBytes } from 'node:crypto';
import { describe, expect } from 'vitest';
import { openDataKey } from '../../db/data-key.ts';
import { newId, verificationIdOf } from '../../db/id.ts';
import { providerEventBinding } from '../../db/queries/evidence.ts';
import { createSealer } from '../../db/seal.ts';
import { type Caller, TEST_KEYS, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { createConsumerRecipient, signIn } from '../support/consumer.ts';
import { withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import {
  changeEnvironment,
  createRecipient,
  type Json,
  jsonOf,
  recipientBody,
  settleBody,
} from '../support/partner.ts';
import { expectRefused, expectUnchanged } from '../support/refusal.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';
import { complete, idverifyBody, openVerification, sendIdverify, verifyBody } from '../support/verification.ts';

const NAME = 'Zenobia Quillfeather';
const RESTRICT_VIOLATION = '23001';
const DAY_MS = 86_400_000;

const NOTE = ['--note', 'the person asked'];

const test = withApi()
  .extend('ops', ({ api, clock }) => createOps(api.connection.db, { now: clock.now }))
  .extend(
    'erase',
    ({ ops }) =>
      (recipientId: string, operator: string, ...rest: string[]) =>
        ops('erase', 'recipient', recipientId, '--operator', operator, ...NOTE, '--yes', ...rest),
  )
  .extend(
    'exported',
    ({ ops }) =>
      (recipientId: string, ...rest: string[]) =>
        ops('export', 'recipient', recipientId, '--operator', 'ana', ...NOTE, ...rest),
  );

const deactivate = (api: TestApi, partner: Caller, id: string) => api.call(partner, 'DELETE', `/v1/recipients/${id}`);

test('a second operator erases: reads show no personal data, and what was paid stays readable', async ({
  api,
  partner,
  steps,
  erase,
}) => {
  const key = { 'idempotency-key': newId() };
  const draft = recipientBody({ name: NAME, metadata: { staff: '4711' } });
  const { recipient_id: id } = jsonOf(await api.call(partner, 'POST', '/v1/recipients', draft, key));
  const accepted = await api.call(partner, 'POST', '/v2/settle', settleBody(id), { 'idempotency-key': newId() });
  const { settlement_id: settlementId } = jsonOf(accepted);
  const before = await steps.read(settlementId);
  await api.call(partner, 'POST', `/v2/settle/${settlementId}/cancel`);
  await deactivate(api, partner, id);

  const requested = JSON.parse((await erase(id, 'ana', '--json')).printed.join(''));
  expect(requested).toEqual({ recipient: id, is_erased: false, confirm_before: expect.stringMatching(/^\d{4}-/) });
  expect((await erase(id, 'bo')).printed[0]).toContain('is erased');
  const shown = jsonOf(await api.call(partner, 'GET', `/v1/recipients/${id}`));
  const nothing = { name: null, email: null, phone: null, bank_details: null, mobile_details: null, metadata: {} };
  expect(shown).toMatchObject({ ...nothing, is_active: false, country: 'JM', erased_at: expect.any(String) });
  // It was deactivated before, which is no second time.
  const events = jsonOf(await api.call(partner, 'GET', `/v1/events?object_id=${id}`));
  expect(events.map(({ type }: Json) => type)).toEqual(['recipient.deactivated']);
  const after = await steps.read(settlementId);
  expect(after.payee).toEqual({ ...before.payee, name: null, account_last4: null });
  expect(after.amount).toBe(before.amount);
  expect(jsonOf(await api.call(partner, 'GET', '/v1/recipients'))[0].name).toBeNull();
  const replayed = await api.call(partner, 'POST', '/v1/recipients', draft, key);
  expect(jsonOf(replayed)).toMatchObject({ code: 'idempotency_key_reused', mismatch: [] });
  expect((await api.call(partner, 'PUT', `/v1/recipients/${id}`, { name: NAME })).statusCode).toBe(409);
  const settle = () => api.call(partner, 'POST', '/v2/settle', settleBody(id), { 'idempotency-key': newId() });
  await expectRefused(api, settle, 409, { code: 'state_conflict', current_state: 'inactive' });
  expect((await api.call(partner, 'GET', `/v1/kyc/status/${id}`)).statusCode).toBe(200);
  const { rows } = await api.connection.pool.query(
    `SELECT data_key_sealed, requested_by, confirmed_by FROM recipients JOIN recipient_erasures USING (recipient_id)
     WHERE recipient_id = $1`,
    [id],
  );
  expect(rows).toEqual([{ data_key_sealed: null, requested_by: 'ana', confirmed_by: 'bo' }]);
  expect(await listAudit(api.connection.db, id)).toMatchObject([
    { action: 'recipient_erase_request', operator: 'ana', orgId: partner.orgId },
    { action: 'recipient_erase', operator: 'bo', orgId: partner.orgId },
  ]);
  await expect(
    api.owner.pool.query('UPDATE recipients SET erased_at = NULL WHERE recipient_id = $1', [id]),
  ).rejects.toMatchObject({ code: RESTRICT_VIOLATION });
});

test('a printed certificate shows no payee after the erasure, also to a client that has kept it', async ({
  api,
  partner,
  erase,
}) => {
  const { settlement, certId } = await insertCertifiedSettlement(api.connection.db, partner.orgId, {
    recipient: { name: NAME },
  });
  const download = (accept: string, etag?: unknown) =>
    api.call(partner, 'GET', `/v1/caribbean/certificate/${certId}`, undefined, {
      accept,
      ...(etag === undefined ? {} : { 'if-none-match': String(etag) }),
    });
  const forms = ['text/html', 'application/pdf', 'application/json', 'application/jose+json'];
  const before = await Promise.all(forms.map(async (form) => (await download(form)).headers.etag));
  await deactivate(api, partner, settlement.recipientId);
  for (const operator of ['ana', 'bo']) expect((await erase(settlement.recipientId, operator)).exitCode).toBe(0);
  const again = await Promise.all(forms.map((form, place) => download(form, before[place])));
  expect(again.map(({ statusCode }) => statusCode)).toEqual([200, 200, 304, 304]);
  expect(again[0]?.body).not.toContain(NAME);
  const repeated = await Promise.all(again.map(({ headers }, place) => download(forms[place] ?? '', headers.etag)));
  expect(repeated.map(({ statusCode }) => statusCode)).toEqual([304, 304, 304, 304]);
});

test('a decision that named the person is answered alike when it is repeated after the erasure', async ({
  api,
  partner,
  erase,
}) => {
  const recipientId = await createRecipient(api, partner, { name: NAME });
  const decision = { status: 'verified', verified_name: NAME, rejection_reason: 'The document was seen.' };
  const { verification_id: before } = await openVerification(api, partner, recipientId);
  await complete(api, partner, before, decision);
  const { verification_id: afterwards } = await openVerification(api, partner, recipientId);
  await deactivate(api, partner, recipientId);
  for (const operator of ['ana', 'bo']) expect((await erase(recipientId, operator)).exitCode).toBe(0);
  await complete(api, partner, afterwards, decision);
  for (const id of [before, afterwards]) {
    await expectRefused(api, () => complete(api, partner, id, decision), 200, { ...decision, verified_name: null });
    for (const other of [{ status: 'rejected' }, { rejection_reason: 'Another one.' }])
      await expectRefused(api, () => complete(api, partner, id, { ...decision, ...other }), 409, {
        code: 'state_conflict',
        current_state: 'verified',
      });
  }
});

test('what the identity provider wrote about a person is readable until the erasure, and never afterwards', async ({
  api,
  partner,
  erase,
}) => {
  const recipientId = await createRecipient(api, partner);
  const { verification_id: id } = await openVerification(api, partner, recipientId);
  const sealer = createSealer([TEST_SECRETS.encryption]);
  const bodyOf = async (eventId: string): Promise<string> => {
    const { rows } = await api.connection.pool.query(
      'SELECT body_sealed, data_key_sealed FROM provider_events, recipients WHERE event_id = $1 AND recipient_id = $2',
      [eventId, recipientId],
    );
    const binding = providerEventBinding('idverify', eventId);
    const kept = sealer.open(rows[0].body_sealed, binding).toString();
    const dataKey = openDataKey(sealer, { recipientId, dataKeySealed: rows[0].data_key_sealed });
    return dataKey?.open(kept, binding).toString() ?? kept;
  };
  const pending = idverifyBody(id, { type: 'applicantPending', moderationComment: NAME });
  await sendIdverify(api, pending);
  expect(JSON.parse(await bodyOf(pending.correlationId))).toEqual(pending);
  await deactivate(api, partner, recipientId);
  for (const operator of ['ana', 'bo']) expect((await erase(recipientId, operator)).exitCode).toBe(0);
  const reviewed = idverifyBody(id, { moderationComment: NAME });
  expect(jsonOf(await sendIdverify(api, reviewed))).toMatchObject({ duplicate: false, matched: true });
  expect(jsonOf(await sendIdverify(api, reviewed))).toMatchObject({ duplicate: true, matched: true });
  for (const { correlationId } of [pending, reviewed]) expect(await bodyOf(correlationId)).not.toContain(NAME);
});

test('what the provider wrote before a verification, or about another applicant, has no name after the erasure', async ({
  api,
  partner,
  erase,
}) => {
  const key = { 'idempotency-key': newId() };
  const id = verificationIdOf(partner.orgId, key['idempotency-key']);
  const early = idverifyBody(id, { type: 'applicantPending', moderationComment: NAME });
  expect(jsonOf(await sendIdverify(api, early))).toMatchObject({ duplicate: false, matched: false });
  const recipientId = await createRecipient(api, partner);
  await api.call(partner, 'POST', '/v1/kyc/verify', verifyBody(partner, recipientId), key);
  expect(jsonOf(await sendIdverify(api, early))).toMatchObject({ duplicate: true, matched: true });
  await api.connection.pool.query(`UPDATE verifications SET applicant_id = 'app-2' WHERE verification_id = $1`, [id]);
  const other = idverifyBody(id, { applicantId: 'app-3', moderationComment: NAME });
  expect(jsonOf(await sendIdverify(api, other))).toMatchObject({ duplicate: false, matched: false });
  await deactivate(api, partner, recipientId);
  for (const operator of ['ana', 'bo']) expect((await erase(recipientId, operator)).exitCode).toBe(0);
  const sealer = createSealer([TEST_SECRETS.encryption]);
  for (const { correlationId } of [early, other]) {
    const { rows } = await api.connection.pool.query('SELECT body_sealed FROM provider_events WHERE event_id = $1', [
      correlationId,
    ]);
    const kept = sealer.open(rows[0].body_sealed, providerEventBinding('idverify', correlationId)).toString();
    expect(kept).not.toContain(NAME);
  }
});

test("a consumer's active recipient is deactivated by its erasure, with the event, and not before", async ({
  api,
  erase,
}) => {
  const id = await createConsumerRecipient(api, await signIn(api));
  const stored = async () => {
    const columns = 'is_active, erased_at, data_key_sealed, event_sequence::int';
    return (await api.connection.pool.query(`SELECT ${columns} FROM recipients WHERE recipient_id = $1`, [id])).rows[0];
  };
  expect((await erase(id, 'ana')).exitCode).toBe(0);
  expect(await stored()).toMatchObject({ is_active: true, erased_at: null });
  expect((await erase(id, 'bo')).exitCode).toBe(0);
  const erased = await stored();
  expect(erased).toEqual({
    is_active: false,
    erased_at: expect.any(Date),
    data_key_sealed: null,
    event_sequence: 1,
  });
  const { rows } = await api.connection.pool.query('SELECT body FROM events WHERE object_id = $1', [id]);
  expect(rows.map(({ body }) => JSON.parse(body.toString()))).toMatchObject([
    {
      type: 'recipient.deactivated',
      sequence: 1,
      data: { recipient_id: id, is_active: false, erased_at: erased.erased_at.toISOString() },
    },
  ]);
});

test('a recipient that nobody can read is deactivated by DELETE, although it cannot be shown, and can be erased', async ({
  api,
  partner,
  erase,
}) => {
  const [id, other] = [await createRecipient(api, partner), await createRecipient(api, partner)];
  await api.owner.pool.query(
    `UPDATE recipients SET data_key_sealed = (SELECT data_key_sealed FROM recipients WHERE recipient_id = $2)
     WHERE recipient_id = $1`,
    [id, other],
  );
  expect((await deactivate(api, partner, id)).statusCode).toBe(500);
  const { rows } = await api.connection.pool.query('SELECT body FROM events WHERE object_id = $1', [id]);
  expect(rows.map(({ body }) => JSON.parse(body.toString()))).toMatchObject([
    { type: 'recipient.deactivated', data: { recipient_id: id, is_active: false } },
  ]);
  for (const operator of ['ana', 'bo']) expect((await erase(id, operator)).exitCode).toBe(0);
  expect(jsonOf(await deactivate(api, partner, id))).toMatchObject({ recipient_id: id, is_active: false, name: null });
});

test('a request counts for its own recipient alone, for a day: otherwise the next operator only requests', async ({
  api,
  partner,
  erase,
  clock,
}) => {
  const [id, other] = [await createRecipient(api, partner), await createRecipient(api, partner)];
  for (const each of [id, other]) await deactivate(api, partner, each);
  await erase(id, 'ana');
  expect((await erase(other, 'bo')).printed[0]).toMatch(/^Requested\./);
  clock.advance(DAY_MS);
  expect((await erase(id, 'bo')).printed[0]).toMatch(/^Requested\./);
});

test('an erasure is not dated before the deactivation, when the clock of the operator is behind', async ({
  api,
  partner,
  clock,
  erase,
}) => {
  const id = await createRecipient(api, partner);
  await deactivate(api, partner, id);
  clock.advance(-DAY_MS);
  for (const operator of ['ana', 'bo']) await erase(id, operator);
  const { erased_at, updated_at } = jsonOf(await api.call(partner, 'GET', `/v1/recipients/${id}`));
  expect(erased_at).toBe(updated_at);
});

test('a decision about an earlier name does not make an erased recipient verified', async ({ api, partner, erase }) => {
  const id = await createRecipient(api, partner);
  const { verification_id: verificationId } = await openVerification(api, partner, id);
  await api.call(partner, 'PUT', `/v1/recipients/${id}`, { name: NAME });
  await deactivate(api, partner, id);
  for (const operator of ['ana', 'bo']) await erase(id, operator);
  expect(jsonOf(await complete(api, partner, verificationId, { status: 'verified' })).status).toBe('verified');
  const shown = jsonOf(await api.call(partner, 'GET', `/v1/recipients/${id}`));
  expect(shown).toMatchObject({ name: null, verification_status: 'unverified' });
});

describe('is refused, and nothing is written,', () => {
  test("for a partner's active recipient, one with an open settlement, an erased and an unknown one", async ({
    api,
    partner,
    erase,
  }) => {
    const [active, paid, erased] = [
      await createRecipient(api, partner),
      await createRecipient(api, partner),
      await createRecipient(api, partner),
    ];
    await api.call(partner, 'POST', '/v2/settle', settleBody(paid), { 'idempotency-key': newId() });
    for (const id of [paid, erased]) await deactivate(api, partner, id);
    for (const operator of ['bo', 'cy']) await erase(erased, operator);
    await expectUnchanged(api.connection.pool, async () => {
      for (const id of [active, paid, erased, newId()])
        expect(await erase(id, 'ana')).toMatchObject({ exitCode: 1, printed: [] });
    });
  });

  test('for a recipient of another environment, as is its export', async ({ api, erase, exported }) => {
    const owner = await api.createCaller();
    const id = await createRecipient(api, owner);
    await deactivate(api, owner, id);
    await changeEnvironment(api, owner);
    await expectUnchanged(api.connection.pool, async () => {
      for (const answer of [await erase(id, 'ana'), await erase(id, 'bo'), await exported(id, '--yes')])
        expect(answer).toMatchObject({ exitCode: 1, printed: [] });
    });
  });

  test('for one operator alone, however the name is spelled', async ({ api, partner, erase }) => {
    const id = await createRecipient(api, partner);
    await deactivate(api, partner, id);
    await erase(id, 'ana');
    await expectUnchanged(api.connection.pool, async () => {
      expect(await erase(id, ' ANA ')).toMatchObject({ exitCode: 1, printed: [] });
    });
  });
});

test('a command without the key that sealed what it reads exits with 78, names the variable, and writes nothing', async ({
  api,
  partner,
}) => {
  const id = await createRecipient(api, partner);
  const { verification_id: verificationId } = await openVerification(api, partner, id);
  const encryptionKeys = [{ id: 'other', key: randomBytes(32) }] as const;
  const ops = createOps(api.connection.db, { keys: { ...TEST_KEYS, encryptionKeys } });
  await expectUnchanged(api.connection.pool, async () => {
    for (const args of [
      ['show', id],
      ['show', verificationId],
      ['export', 'recipient', id, '--operator', 'ana', ...NOTE, '--yes'],
    ])
      expect(await ops(...args)).toEqual({
        exitCode: 78,
        printed: [],
        warned: [expect.stringMatching(/cannot be opened by a configured encryption key: set ENCRYPTION_KEYS/)],
      });
  });
});

describe('export recipient', () => {
  const bank_details = { bank_name: 'NCB', account_number: 'FULL90817263', currency: 'JMD' };
  const contact = { email: 'zenobia@person.example', phone: '+18765559173' };
  const mobile_details = { provider: 'Lynk', phone_number: '+18765559174' };
  const details = { bank_details, mobile_details };
  const draft = recipientBody({ name: NAME, ...contact, ...details, metadata: { staff: '4711' } });

  const given = { email: 'given@person.example' };

  /** A recipient that was verified, paid and renamed. */
  async function createKnown(api: TestApi, partner: Caller) {
    const keyed = () => ({ 'idempotency-key': newId() });
    const { recipient_id: id } = jsonOf(await api.call(partner, 'POST', '/v1/recipients', draft, keyed()));
    const { verification_id: verificationId } = jsonOf(
      await api.call(partner, 'POST', '/v1/kyc/idverify/applicant', { recipient_id: id, ...given }),
    );
    const decision = { status: 'verified', verified_name: `${NAME} III` };
    await api.call(partner, 'POST', `/v1/kyc/${verificationId}/complete`, decision);
    const order = settleBody(id, { reference: 'rent', card_token: 'tok_planted' });
    const { settlement_id: settlementId } = jsonOf(await api.call(partner, 'POST', '/v2/settle', order, keyed()));
    await api.call(partner, 'PUT', `/v1/recipients/${id}`, { name: 'Isolde Marrowbane' });
    return { id, verificationId, settlementId };
  }

  test('prints all that is held, in full and without secrets, and who had it is in the audit', async ({
    api,
    partner,
    exported,
  }) => {
    const { id, verificationId, settlementId } = await createKnown(api, partner);
    const { exitCode, printed, warned } = await exported(id, '--yes', '--json');
    expect([exitCode, warned]).toEqual([0, []]);
    const data = JSON.parse(printed.join(''));
    const metadata = { staff: '4711' };
    expect(data.recipient).toMatchObject({ name: 'Isolde Marrowbane', ...contact, ...details, metadata });
    expect(data.verifications).toMatchObject([
      {
        verification_id: verificationId,
        subject_name: NAME,
        verified_name: `${NAME} III`,
        given_contact: { ...given, phone: null, country: null },
      },
    ]);
    expect(data.settlements).toMatchObject([
      { settlement_id: settlementId, amount: '250.00', reference: 'rent', payee: { name: NAME, bank_details } },
    ]);
    expect(data.earlier_answers).toMatchObject([{ status: 201, body: { recipient_id: id, name: NAME } }]);
    expect(printed.join('')).not.toMatch(/sealed|tok_planted|sha256/i);
    expect(await listAudit(api.connection.db, id)).toEqual([
      { action: 'recipient_export', operator: 'ana', note: 'the person asked', orgId: partner.orgId },
    ]);
    const lines = (await exported(id, '--yes')).printed.join('\n');
    expect(JSON.parse(lines)).toMatchObject({ ...data, exported_at: expect.any(String) });
  });

  test('prints an answer that showed a secret without its body', async ({ api, partner, exported }) => {
    const id = await createRecipient(api, partner);
    const key = { 'idempotency-key': newId() };
    const asked = await api.call(partner, 'POST', '/v1/kyc/idverify/applicant', { recipient_id: id }, key);
    const { exitCode, printed } = await exported(id, '--yes', '--json');
    expect([asked.statusCode, exitCode]).toEqual([201, 0]);
    expect(JSON.parse(printed.join('')).earlier_answers).toEqual([{ at: expect.any(String), status: 201, body: null }]);
    expect(printed.join('')).not.toContain(jsonOf(asked).sdk_access_token);
  });

  test('shows no personal data in a preview, and writes nothing', async ({ api, partner, exported }) => {
    const { id } = await createKnown(api, partner);
    await expectUnchanged(api.connection.pool, async () => {
      const { exitCode, printed } = await exported(id);
      expect([exitCode, printed.length]).toEqual([3, 1]);
      expect(printed[0]).toMatch(/^Preview: .*verifications/);
      expect(printed[0]).not.toMatch(/Zenobia|Isolde|FULL90817263/);
      expect(await exported(newId(), '--yes')).toMatchObject({ exitCode: 1, printed: [] });
    });
  });

  test('says that a recipient was erased, and has no name of it', async ({ api, partner, erase, exported }) => {
    const { id, settlementId } = await createKnown(api, partner);
    await api.call(partner, 'POST', `/v2/settle/${settlementId}/cancel`);
    await deactivate(api, partner, id);
    await erase(id, 'ana');
    await erase(id, 'bo');
    const { exitCode, printed, warned } = await exported(id, '--yes', '--json');
    expect([exitCode, warned]).toEqual([0, [expect.stringContaining(`${id} was erased at `)]]);
    expect(printed.join('')).not.toMatch(/Zenobia|Isolde|FULL90817263|4711|zenobia/);
    expect(JSON.parse(printed.join(''))).toMatchObject({
      recipient: { name: null, bank_details: null, erased_at: expect.any(String) },
      verifications: [{ subject_name: null, verified_name: null, given_contact: null }],
      settlements: [{ settlement_id: settlementId, amount: '250.00', payee: { name: null } }],
      earlier_answers: [],
    });
  });
});
