/** What the database holds about verifications, whatever the code does; and that a decision and a hold cannot miss each other. */
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settlementActivities } from '../../activities/settlement.ts';
import { decideLocked } from '../../db/commands/verification.ts';
import { newId } from '../../db/id.ts';
import { lockRecipient } from '../../db/queries/recipient.ts';
import { insertVerification, lockVerification, moveVerification } from '../../db/queries/verification.ts';
import { events, outbox, verifications } from '../../db/schema/index.ts';
import {
  canMoveVerification,
  VERIFICATION_STATUSES,
  type Verification,
  type VerificationDecision,
  type VerificationStatus,
} from '../../domain/verification.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { untilBlocked } from '../support/database.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';

const CHECK_VIOLATION = '23514';
const UNIQUE_VIOLATION = '23505';

let api: TestApi;
let caller: Caller;

beforeAll(async () => {
  api = await createTestApi();
  caller = await api.createCaller();
});
afterAll(() => api.close());

const open = async (recipientId: string): Promise<Verification> =>
  api.connection.db.transaction(async (tx) =>
    insertVerification(tx, await lockRecipient(tx, caller.orgId, recipientId), {
      verificationId: newId(),
      verificationType: 'kyc',
      documentType: null,
      documentCountry: null,
      provider: 'manual_mock',
      levelName: null,
      givenContact: null,
      requestId: 'test',
      createdAt: new Date(),
    }),
  );

const newVerification = async (): Promise<Verification> => open(await createRecipient({ api }, caller));

const decide = (verificationId: string, decision: VerificationDecision, at = new Date()) =>
  api.connection.db.transaction(async (tx) =>
    decideLocked(tx, await lockVerification(tx, caller.orgId, verificationId), decision, {
      at,
      requestId: 'test',
    }),
  );

/** A state that is right in itself, so that only the move to it may be wrong. */
const stateOf = (status: VerificationStatus) => ({
  status,
  decidedAt: status === 'verified' || status === 'rejected' ? new Date() : null,
  rejectionReason: status === 'rejected' ? 'test' : null,
});

const codeOf = async (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => undefined,
    (error: unknown) =>
      error instanceof Error && error.cause instanceof Error && 'code' in error.cause ? error.cause.code : error,
  );

describe('the guard of the table', () => {
  const moves = VERIFICATION_STATUSES.flatMap((from) =>
    VERIFICATION_STATUSES.filter((to) => to !== from).map((to) => [from, to] as const),
  );

  test.each(moves)('%s to %s is allowed exactly where the domain says so', async (from, to) => {
    const { verificationId } = await newVerification();
    const set = (status: VerificationStatus) =>
      codeOf(
        api.connection.db
          .update(verifications)
          .set(stateOf(status))
          .where(eq(verifications.verificationId, verificationId))
          .execute(),
      );
    if (from !== 'pending') expect(await set(from)).toBeUndefined();
    expect(await set(to)).toBe(canMoveVerification(from, to) ? undefined : CHECK_VIOLATION);
  });

  test('none begins anywhere but pending', async () => {
    const recipientId = await createRecipient({ api }, caller);
    const { verificationId: _first, ...row } = await open(recipientId);
    for (const status of VERIFICATION_STATUSES.filter((each) => each !== 'pending')) {
      expect(
        await codeOf(
          api.connection.db
            .insert(verifications)
            .values({ ...row, ...stateOf(status), verificationId: newId() })
            .execute(),
        ),
      ).toBe(CHECK_VIOLATION);
    }
  });

  test('no second open one of a type, whatever its state; one of the other type is free', async () => {
    const { verificationId, ...row } = await newVerification();
    const again = (overrides: Partial<typeof row> = {}) =>
      codeOf(
        api.connection.db
          .insert(verifications)
          .values({ ...row, ...overrides, verificationId: newId() })
          .execute(),
      );
    expect(await again()).toBe(UNIQUE_VIOLATION);
    await api.connection.db
      .update(verifications)
      .set({ status: 'in_review' })
      .where(eq(verifications.verificationId, verificationId));
    expect(await again()).toBe(UNIQUE_VIOLATION);
    expect(await again({ verificationType: 'kyb' })).toBeUndefined();
    await decide(verificationId, { to: 'rejected', rejectionReason: 'test' });
    expect(await again()).toBeUndefined();
  });

  test('no reason without a rejection, no name without a verification, no decision without its moment', async () => {
    const { verificationId } = await newVerification();
    const set = (values: Partial<Verification>) =>
      codeOf(
        api.connection.db
          .update(verifications)
          .set(values)
          .where(eq(verifications.verificationId, verificationId))
          .execute(),
      );
    expect(await set({ rejectionReason: 'test' })).toBe(CHECK_VIOLATION);
    expect(await set({ verifiedName: 'Somebody' })).toBe(CHECK_VIOLATION);
    expect(await set({ status: 'verified' })).toBe(CHECK_VIOLATION);
    expect(await set({ status: 'rejected', decidedAt: new Date() })).toBe(CHECK_VIOLATION);
  });
});

describe('a move', () => {
  test('that the table does not have writes nothing', async () => {
    const { verificationId } = await newVerification();
    await decide(verificationId, { to: 'verified', verifiedName: null });
    const move = api.connection.db.transaction(async (tx) => {
      const locked = await lockVerification(tx, caller.orgId, verificationId);
      return moveVerification(tx, locked, { to: 'in_review', at: new Date(), requestId: 'test' });
    });
    await expect(move).rejects.toMatchObject({ code: 'state_conflict', extras: { current_state: 'verified' } });
  });

  test.each(['events', 'outbox'])(
    'leaves nothing when writing to %s fails, and is made when it is tried again',
    async (table) => {
      const { verificationId, recipientId } = await newVerification();
      const read = async () => ({
        verification: (
          await api.connection.db.select().from(verifications).where(eq(verifications.verificationId, verificationId))
        )[0]?.status,
        recipient: jsonOf(await api.call(caller, 'GET', `/v1/recipients/${recipientId}`)).verification_status,
      });
      await api.connection.pool.query(`ALTER TABLE ${table} ADD CONSTRAINT fails CHECK (false) NOT VALID`);
      await expect(decide(verificationId, { to: 'verified', verifiedName: null })).rejects.toThrow();
      await api.connection.pool.query(`ALTER TABLE ${table} DROP CONSTRAINT fails`);
      expect(await read()).toEqual({ verification: 'pending', recipient: 'pending' });
      expect(await decide(verificationId, { to: 'verified', verifiedName: null })).toMatchObject({ result: 'decided' });
      expect(await read()).toEqual({ verification: 'verified', recipient: 'verified' });
    },
  );

  test('at the last millisecond is a decision; at the end of the thirty days it is too late', async () => {
    const [inTime, late] = [await newVerification(), await newVerification()];
    const decision = { to: 'verified', verifiedName: null } as const;
    expect(await decide(inTime.verificationId, decision, new Date(inTime.expiresAt.getTime() - 1))).toMatchObject({
      result: 'decided',
    });
    expect(await decide(late.verificationId, decision, late.expiresAt)).toMatchObject({
      result: 'refused',
      verification: { status: 'expired' },
    });
    const told = await api.connection.db
      .select({ type: events.type })
      .from(events)
      .where(eq(events.objectId, late.verificationId))
      .orderBy(events.sequence);
    expect(told.map(({ type }) => type)).toEqual(['verification.pending', 'verification.expired']);
  });
});

describe('a decision at the moment when a settlement is admitted', () => {
  const accepted = async (): Promise<{ settlementId: string; recipientId: string }> => {
    const recipientId = await createRecipient({ api }, caller);
    const answer = await api.call(caller, 'POST', '/v2/settle', settleBody(recipientId, { amount: '1000.00' }), {
      'idempotency-key': crypto.randomUUID(),
    });
    return { settlementId: jsonOf(answer).settlement_id, recipientId };
  };
  const admit = (settlementId: string) =>
    settlementActivities(activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined })).admitSettlement({
      settlementId,
      orgId: caller.orgId,
      nowMs: Date.now(),
    });
  const bellsOf = async (objectId: string) =>
    (
      await api.connection.db.select({ signal: outbox.signal }).from(outbox).where(eq(outbox.objectId, objectId))
    ).filter(({ signal }) => signal === 'verificationDecided').length;

  test('the decision first: the settlement waits for its commit, sees it and is not held', async () => {
    const { settlementId, recipientId } = await accepted();
    const { verificationId } = await open(recipientId);
    let admission: ReturnType<typeof admit> | undefined;
    await api.connection.db.transaction(async (tx) => {
      const locked = await lockVerification(tx, caller.orgId, verificationId);
      await decideLocked(tx, locked, { to: 'verified', verifiedName: null }, { at: new Date(), requestId: 'test' });
      admission = admit(settlementId);
      await untilBlocked(api.connection.pool, 1);
    });
    expect((await admission)?.status).toBe('awaiting_funds');
    expect(await bellsOf(settlementId)).toBe(0);
  });

  test.each(['verified', 'rejected'] as const)(
    'the hold first: the decision (%s) waits for its commit, sees it and rings it',
    async (to) => {
      const { settlementId, recipientId } = await accepted();
      const { verificationId } = await open(recipientId);
      const holder = await api.connection.pool.connect();
      await holder.query('BEGIN; LOCK TABLE settlement_transitions IN SHARE MODE');
      // Stops between its reading of the recipient and its commit.
      const admission = admit(settlementId);
      await untilBlocked(api.connection.pool, 1);
      const decision = decide(
        verificationId,
        to === 'verified' ? { to, verifiedName: null } : { to, rejectionReason: 'test' },
      );
      await untilBlocked(api.connection.pool, 2);
      await holder.query('COMMIT');
      holder.release();
      expect((await admission).status).toBe('compliance_hold');
      expect((await decision).result).toBe('decided');
      expect(await bellsOf(settlementId)).toBe(1);
    },
  );
});

test('every settlement in hold for the recipient is rung, and no other', async () => {
  const recipientId = await createRecipient({ api }, caller);
  const other = await createRecipient({ api }, caller);
  const accept = async (to: string) =>
    jsonOf(
      await api.call(caller, 'POST', '/v2/settle', settleBody(to, { amount: '1000.00' }), {
        'idempotency-key': crypto.randomUUID(),
      }),
    ).settlement_id;
  const [held, alsoHeld, elsewhere] = [await accept(recipientId), await accept(recipientId), await accept(other)];
  const activities = settlementActivities(activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }));
  for (const settlementId of [held, alsoHeld, elsewhere])
    await activities.admitSettlement({ settlementId, orgId: caller.orgId, nowMs: Date.now() });
  const { verificationId } = await open(recipientId);
  await decide(verificationId, { to: 'verified', verifiedName: null });
  const rung = await api.connection.db
    .select({ objectId: outbox.objectId })
    .from(outbox)
    .where(eq(outbox.signal, 'verificationDecided'));
  const ids = rung.map(({ objectId }) => objectId);
  expect(ids).toEqual(expect.arrayContaining([held, alsoHeld, verificationId]));
  expect(ids).not.toContain(elsewhere);
});
