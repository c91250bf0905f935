/**
 * Verifications: what the database refuses even if the code is wrong, and that a decision and a settlement's hold at
 * the same moment never miss each other.
 */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { decideLocked } from '../../db/commands/verification.ts';
import { newId } from '../../db/id.ts';
import { lockRecipient } from '../../db/queries/recipient.ts';
import { insertVerification, lockVerification } from '../../db/queries/verification.ts';
import { outbox, verifications } from '../../db/schema/index.ts';
import {
  VERIFICATION_STATUSES,
  VERIFICATION_TRANSITIONS,
  type Verification,
  type VerificationDecision,
  type VerificationStatus,
  type VerificationType,
} from '../../domain/verification.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { untilBlocked, whileWritesFail } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf, settle } from '../support/partner.ts';
import type { Steps } from '../support/settlement.ts';

const CHECK_VIOLATION = '23514';
const UNIQUE_VIOLATION = '23505';

const VERIFIED = { to: 'verified', verifiedName: null, rejectionReason: null } as const;
const REJECTED = { to: 'rejected', verifiedName: null, rejectionReason: 'test' } as const;
const DECISIONS = { verified: VERIFIED, rejected: REJECTED } as const;

type VerificationRow = typeof verifications.$inferSelect;

/** `kyc`: verifications of the partner's recipients, and settlements that must wait for them. */
const test = withApi().extend('kyc', FILE, ({ api, partner, steps }) => createKyc(api, partner, steps));

function createKyc(api: TestApi, partner: Caller, { activities, step }: Steps) {
  const { db } = api.connection;
  const { orgId } = partner;
  const newRecipient = () => createRecipient(api, partner);
  const open = (recipientId: string, verificationType: VerificationType = 'kyc'): Promise<Verification> =>
    db.transaction(async (tx) =>
      insertVerification(tx, await lockRecipient(tx, api.deps.sealer, orgId, recipientId), {
        verificationId: newId(),
        verificationType,
        documentType: null,
        documentCountry: null,
        provider: 'manual_mock',
        levelName: null,
        givenContact: null,
        requestId: 'test',
        createdAt: new Date(),
      }),
    );
  return {
    newRecipient,
    open,
    /** An open verification of a new recipient. */
    newVerification: async (): Promise<Verification> => open(await newRecipient()),
    /** As stored. */
    newRow: async (): Promise<VerificationRow> => {
      const { verificationId } = await open(await newRecipient());
      const [row] = await db.select().from(verifications).where(eq(verifications.verificationId, verificationId));
      return row ?? expect.fail();
    },
    decide: (verificationId: string, decision: VerificationDecision, at = new Date()) =>
      db.transaction(async (tx) =>
        decideLocked(tx, await lockVerification(tx, api.deps.sealer, orgId, verificationId), decision, {
          at,
          requestId: 'test',
        }),
      ),
    /** Writes columns without the code of the service; returns the SQLSTATE of the refusal, undefined for none. */
    update: (verificationId: string, values: Partial<VerificationRow>) =>
      sqlstateOf(
        db.update(verifications).set(values).where(eq(verifications.verificationId, verificationId)).execute(),
      ),
    insert: (row: VerificationRow) => sqlstateOf(db.insert(verifications).values(row).execute()),
    /** A settlement that needs a verified recipient. */
    accept: (recipientId: string) => settle(api, partner, { recipient_id: recipientId, amount: '1000.00' }),
    admit: (settlementId: string) => activities.admitSettlement(step(settlementId)),
    review: (settlementId: string) => activities.reviewSettlement(step(settlementId)),
    /** The objects whose workflows a decision signals. */
    signalled: async (): Promise<string[]> => {
      const rows = await db
        .select({ objectId: outbox.objectId })
        .from(outbox)
        .where(eq(outbox.signal, 'verificationDecided'));
      return rows.map(({ objectId }) => objectId);
    },
  };
}

const sqlstateOf = async (statement: Promise<unknown>): Promise<unknown> =>
  statement.then(
    () => undefined,
    (error: unknown) =>
      error instanceof Error && error.cause instanceof Error && 'code' in error.cause ? error.cause.code : error,
  );

/** The columns of a valid row in this state: only the move to it may be wrong. */
const columnsOf = (status: VerificationStatus) => ({
  status,
  decidedAt: status === 'verified' || status === 'rejected' ? new Date() : null,
});

describe('the database', () => {
  test('moves a verification by its table, which has the same transitions as the code', async ({ api, kyc }) => {
    const { rows: rules } = await api.connection.pool.query<{ rule: string }>(
      `SELECT from_status || ' → ' || to_status AS rule FROM verification_transition_rules`,
    );
    const inCode = VERIFICATION_TRANSITIONS.filter(({ from }) => from !== null).map(
      ({ from, to }) => `${from} → ${to}`,
    );
    expect(rules.map(({ rule }) => rule).toSorted()).toEqual(inCode.toSorted());
    const { verificationId } = await kyc.newVerification();
    expect(await kyc.update(verificationId, columnsOf('verified'))).toBeUndefined();
    for (const status of ['pending', 'in_review', 'rejected'] as const)
      expect(await kyc.update(verificationId, columnsOf(status))).toBe(CHECK_VIOLATION);
  });

  test('refuses a verification that begins in another state than pending', async ({ kyc }) => {
    const row = await kyc.newRow();
    for (const status of VERIFICATION_STATUSES.filter((each) => each !== 'pending'))
      expect(await kyc.insert({ ...row, ...columnsOf(status), verificationId: newId() })).toBe(CHECK_VIOLATION);
  });

  test('refuses a second open one of the same type, pending or in review, and allows one of the other type', async ({
    kyc,
  }) => {
    const row = await kyc.newRow();
    const again = (overrides: Partial<VerificationRow> = {}) =>
      kyc.insert({ ...row, ...overrides, verificationId: newId() });
    expect(await again()).toBe(UNIQUE_VIOLATION);
    await kyc.update(row.verificationId, { status: 'in_review' });
    expect(await again()).toBe(UNIQUE_VIOLATION);
    expect(await again({ verificationType: 'kyb' })).toBeUndefined();
    await kyc.decide(row.verificationId, REJECTED);
    expect(await again()).toBeUndefined();
  });
});

describe('a move of a verification', () => {
  test.for(['events', 'outbox'])(
    'leaves nothing when writing to %s fails, and succeeds when it is repeated',
    async (table, { api, partner, kyc }) => {
      const { verificationId, recipientId } = await kyc.newVerification();
      const { db } = api.connection;
      const read = async () => {
        const rows = await db.select().from(verifications).where(eq(verifications.verificationId, verificationId));
        const recipient = jsonOf(await api.call(partner, 'GET', `/v1/recipients/${recipientId}`));
        return { verification: rows.map(({ status }) => status), recipient: recipient.verification_status };
      };
      await whileWritesFail(api.owner.pool, table, () =>
        expect(kyc.decide(verificationId, VERIFIED)).rejects.toThrow(),
      );
      expect(await read()).toEqual({ verification: ['pending'], recipient: 'pending' });
      expect(await kyc.decide(verificationId, VERIFIED)).toMatchObject({ result: 'decided' });
      expect(await read()).toEqual({ verification: ['verified'], recipient: 'verified' });
    },
  );
});

describe('a decision while a settlement is admitted', () => {
  test('decision first: the settlement waits for its commit, reads it and is not held', async ({
    api,
    partner,
    kyc,
  }) => {
    const recipientId = await kyc.newRecipient();
    const settlementId = await kyc.accept(recipientId);
    const { verificationId } = await kyc.open(recipientId);
    let admission: ReturnType<typeof kyc.admit> | undefined;
    await api.connection.db.transaction(async (tx) => {
      const locked = await lockVerification(tx, api.deps.sealer, partner.orgId, verificationId);
      await decideLocked(tx, locked, VERIFIED, { at: new Date(), requestId: 'test' });
      admission = kyc.admit(settlementId);
      await untilBlocked(api.connection.pool, 1);
    });
    expect((await admission)?.status).toBe('awaiting_funds');
    expect(await kyc.signalled()).not.toContain(settlementId);
  });

  test.for(['verified', 'rejected'] as const)(
    'hold first: the decision (%s) waits for its commit, reads it and signals the settlement',
    async (to, { api, kyc }) => {
      const recipientId = await kyc.newRecipient();
      const settlementId = await kyc.accept(recipientId);
      const { verificationId } = await kyc.open(recipientId);
      const { pool } = api.connection;
      const holder = await api.owner.pool.connect();
      await holder.query('BEGIN; LOCK TABLE settlement_transitions IN SHARE MODE');
      // The admission has read the recipient, and stops before its commit.
      const admission = kyc.admit(settlementId);
      await untilBlocked(pool, 1);
      const decision = kyc.decide(verificationId, DECISIONS[to]);
      await untilBlocked(pool, 2);
      await holder.query('COMMIT');
      holder.release();
      expect((await admission).status).toBe('compliance_hold');
      expect((await decision).result).toBe('decided');
      expect((await kyc.signalled()).filter((objectId) => objectId === settlementId)).toHaveLength(1);
    },
  );
});

test('a decision signals every settlement that is held for the recipient, and no other', async ({ kyc }) => {
  const [recipientId, other] = [await kyc.newRecipient(), await kyc.newRecipient()];
  const [held, alsoHeld] = [await kyc.accept(recipientId), await kyc.accept(recipientId)];
  const elsewhere = await kyc.accept(other);
  for (const settlementId of [held, alsoHeld, elsewhere]) await kyc.admit(settlementId);
  const { verificationId } = await kyc.open(recipientId);
  await kyc.decide(verificationId, VERIFIED);
  const signalled = await kyc.signalled();
  expect(signalled).toEqual(expect.arrayContaining([held, alsoHeld, verificationId]));
  expect(signalled).not.toContain(elsewhere);
});

test('a new name signals every settlement that is held for the recipient, whose hold it may end', async ({
  api,
  partner,
  kyc,
}) => {
  const recipientId = await kyc.newRecipient();
  const path = `/v1/recipients/${recipientId}`;
  const { name } = jsonOf(await api.call(partner, 'GET', path));
  const change = async (body: object) => expect((await api.call(partner, 'PUT', path, body)).statusCode).toBe(200);
  const { verificationId } = await kyc.open(recipientId);
  await kyc.decide(verificationId, VERIFIED);
  // Its own name again, but unverified: a verification is waited for.
  await change({ name: 'Another Name' });
  await change({ name });
  const held = await kyc.accept(recipientId);
  expect((await kyc.admit(held)).status).toBe('compliance_hold');
  await change({ name, email: 'new@person.example' });
  expect(await kyc.signalled()).not.toContain(held);
  // The verification about the frozen name counts from now on.
  await change({ name: 'Another Name' });
  expect((await kyc.signalled()).filter((objectId) => objectId === held)).toHaveLength(1);
  expect((await kyc.review(held)).status).toBe('awaiting_funds');
});

test.for(['open', 'expired'] as const)(
  'a rejection before a new verification of the payee, which is %s, ends no hold once the recipient has a new name',
  async (state, { api, partner, kyc }) => {
    const recipientId = await kyc.newRecipient();
    await kyc.decide((await kyc.open(recipientId)).verificationId, REJECTED);
    const { verificationId, expiresAt } = await kyc.open(recipientId);
    const held = await kyc.accept(recipientId);
    expect((await kyc.admit(held)).status).toBe('compliance_hold');
    if (state === 'expired') await kyc.decide(verificationId, VERIFIED, expiresAt);
    await api.call(partner, 'PUT', `/v1/recipients/${recipientId}`, { name: 'Another Name' });
    expect((await kyc.review(held)).status).toBe('compliance_hold');
    if (state === 'expired') return;
    await kyc.decide(verificationId, VERIFIED);
    expect((await kyc.review(held)).status).toBe('awaiting_funds');
  },
);

test('a rejection by a clock that is ahead ends no hold after a new verification of the payee is opened', async ({
  api,
  partner,
  kyc,
}) => {
  const recipientId = await kyc.newRecipient();
  const { verificationId: first } = await kyc.open(recipientId, 'kyc');
  const { verificationId: second } = await kyc.open(recipientId, 'kyb');
  await kyc.decide(first, REJECTED);
  await kyc.decide(second, REJECTED, new Date(Date.now() + 2_000));
  await kyc.open(recipientId);
  const held = await kyc.accept(recipientId);
  expect((await kyc.admit(held)).status).toBe('compliance_hold');
  await api.call(partner, 'PUT', `/v1/recipients/${recipientId}`, { name: 'Another Name' });
  expect((await kyc.review(held)).status).toBe('compliance_hold');
});

describe('of two decisions about a name, the later one counts', () => {
  test.for([
    ['both in one millisecond', 0, false],
    ['the first by a clock that is ahead', 2_000, false],
    ['both in one millisecond, of a recipient that has another name now', 0, true],
    ['the first by a clock that is ahead, of a recipient that has another name now', 2_000, true],
  ] as const)('%s', async ([_case, aheadMs, isRenamed], { api, partner, kyc }) => {
    const recipientId = await kyc.newRecipient();
    const { verificationId: later } = await kyc.open(recipientId, 'kyb');
    const { verificationId: first } = await kyc.open(recipientId, 'kyc');
    const held = await kyc.accept(recipientId);
    expect((await kyc.admit(held)).status).toBe('compliance_hold');
    if (isRenamed) await api.call(partner, 'PUT', `/v1/recipients/${recipientId}`, { name: 'Another Name' });
    const at = new Date();
    await kyc.decide(first, VERIFIED, new Date(at.getTime() + aheadMs));
    await kyc.decide(later, REJECTED, at);
    expect((await kyc.review(held)).status).toBe('rejected');
  });
});
