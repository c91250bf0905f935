/**
 * One-time codes. A try is counted by a statement of its own, committed before anything is compared, so that parallel
 * guesses, a crash or a rollback never make one more than there may be.
 */
import { and, count, eq, gt, inArray, isNull, lt, lte, min, sql } from 'drizzle-orm';
import { OTP_LIMITS, type OtpChallenge } from '../../domain/otp.ts';
import type { Queryable, Tx } from '../client.ts';
import { otpChallenges } from '../schema/otp.ts';

/** How many old rows one request takes away at most; more than it adds. */
const FORGET_MAX = 20;

/**
 * Makes what concerns one contact wait for each other until the transaction ends.
 *
 * @param contactHashes one for each pepper; locked in one order by everybody
 */
export async function lockContact(tx: Tx, contactHashes: readonly Buffer[]): Promise<void> {
  for (const contactHash of contactHashes.toSorted(Buffer.compare))
    await tx.execute(sql`SELECT pg_advisory_xact_lock(${contactHash.readBigInt64BE()}::bigint)`);
}

/** How often a contact, which the caller has locked, was sent a code since; and when first. */
export async function countChallenges(
  tx: Tx,
  contactHashes: readonly Buffer[],
  since: Date,
): Promise<{ readonly requests: number; readonly firstAt: Date | null }> {
  const [row] = await tx
    .select({ requests: count(), firstAt: min(otpChallenges.createdAt) })
    .from(otpChallenges)
    .where(and(inArray(otpChallenges.contactHash, [...contactHashes]), gt(otpChallenges.createdAt, since)));
  return { requests: row?.requests ?? 0, firstAt: row?.firstAt ?? null };
}

export async function insertChallenge(tx: Tx, challenge: OtpChallenge): Promise<void> {
  await tx.insert(otpChallenges).values(challenge);
}

/** Deletes some of what was asked for before: contacts are not kept once they neither prove nor limit anything. */
export async function forgetChallenges(tx: Tx, before: Date): Promise<void> {
  const old = tx
    .select({ challengeId: otpChallenges.challengeId })
    .from(otpChallenges)
    .where(lte(otpChallenges.createdAt, before))
    .orderBy(otpChallenges.createdAt)
    .limit(FORGET_MAX)
    .for('update', { skipLocked: true });
  await tx.delete(otpChallenges).where(inArray(otpChallenges.challengeId, old));
}

export async function findChallenge(db: Queryable, challengeId: string): Promise<OtpChallenge | undefined> {
  const [row] = await db.select().from(otpChallenges).where(eq(otpChallenges.challengeId, challengeId)).limit(1);
  return row;
}

/** Counts a try; not for use in a transaction. Undefined where none is left: unknown, used, expired, or tried too often. */
export async function countTry(db: Queryable, challengeId: string, at: Date): Promise<OtpChallenge | undefined> {
  const [row] = await db
    .update(otpChallenges)
    .set({ attempts: sql`${otpChallenges.attempts} + 1` })
    .where(
      and(
        eq(otpChallenges.challengeId, challengeId),
        lt(otpChallenges.attempts, OTP_LIMITS.triesMax),
        isNull(otpChallenges.consumedAt),
        gt(otpChallenges.expiresAt, at),
      ),
    )
    .returning();
  return row;
}

/** Uses a code up; false when it was used before. */
export async function consumeChallenge(tx: Tx, challengeId: string, at: Date): Promise<boolean> {
  const consumed = await tx
    .update(otpChallenges)
    .set({ consumedAt: at, codeSealed: null })
    .where(and(eq(otpChallenges.challengeId, challengeId), isNull(otpChallenges.consumedAt)))
    .returning({ challengeId: otpChallenges.challengeId });
  return consumed.length === 1;
}

/** Forgets the code itself: it was sent, or never will be. Its hash still checks it. */
export async function eraseCode(db: Queryable, challengeId: string): Promise<void> {
  await db.update(otpChallenges).set({ codeSealed: null }).where(eq(otpChallenges.challengeId, challengeId));
}
