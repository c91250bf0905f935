/**
 * One-time codes. A try is counted by a statement of its own, which commits before anything is compared. So parallel
 * guesses, a crash or a rollback give no additional tries.
 */
import { and, count, eq, gt, inArray, isNull, lt, lte, max, min, sql } from 'drizzle-orm';
import { OTP_LIMITS, type OtpChallenge } from '../../domain/otp.ts';
import type { Queryable, Tx } from '../client.ts';
import { otpChallenges } from '../schema/otp.ts';
import { countRequests, LONG_COUNT_PREFIX } from './rate-limit.ts';

/** How many old rows one request deletes at most. It adds one, so the table does not grow. */
const DELETE_MAX = 20;

/**
 * Locks a contact until the transaction ends.
 *
 * @param contactHashes one for each pepper; they are locked in one order, which prevents deadlocks
 */
export async function lockContact(tx: Tx, contactHashes: readonly Buffer[]): Promise<void> {
  for (const contactHash of contactHashes.toSorted(Buffer.compare))
    await tx.execute(sql`SELECT pg_advisory_xact_lock(${contactHash.readBigInt64BE()}::bigint)`);
}

/** How many codes a locked contact was sent since then, and when the first and the last of them. */
export async function countChallenges(
  tx: Tx,
  contactHashes: readonly Buffer[],
  since: Date,
): Promise<{ readonly requests: number; readonly firstAt: Date | null; readonly lastAt: Date | null }> {
  const [row] = await tx
    .select({ requests: count(), firstAt: min(otpChallenges.createdAt), lastAt: max(otpChallenges.createdAt) })
    .from(otpChallenges)
    .where(and(inArray(otpChallenges.contactHash, [...contactHashes]), gt(otpChallenges.createdAt, since)));
  return { requests: row?.requests ?? 0, firstAt: row?.firstAt ?? null, lastAt: row?.lastAt ?? null };
}

export async function insertChallenge(tx: Tx, challenge: OtpChallenge): Promise<void> {
  await tx.insert(otpChallenges).values(challenge);
}

/** Deletes some challenges from before this time: they neither prove nor limit anything, so contacts are not kept. */
export async function deleteOldChallenges(tx: Tx, before: Date): Promise<void> {
  const old = tx
    .select({ challengeId: otpChallenges.challengeId })
    .from(otpChallenges)
    .where(lte(otpChallenges.createdAt, before))
    .orderBy(otpChallenges.createdAt)
    .limit(DELETE_MAX)
    .for('update', { skipLocked: true });
  await tx.delete(otpChallenges).where(inArray(otpChallenges.challengeId, old));
}

/** Wrong codes are counted twice: for all contacts together, and for the contact with this hash. */
const OVERALL = `${LONG_COUNT_PREFIX}wrong`;
const ofContact = (contactHash: Buffer): string => `${LONG_COUNT_PREFIX}wrong:${contactHash.toString('hex')}`;

/**
 * Counts a try as wrong, before its code is compared. `releaseWrong` takes the count of a right code back.
 *
 * @param overallSeconds the window of the count of all contacts
 */
export async function countWrong(db: Queryable, contactHash: Buffer, overallSeconds: number): Promise<void> {
  await countRequests(db, [
    { caller: OVERALL, windowSeconds: overallSeconds, cost: 1 },
    { caller: ofContact(contactHash), windowSeconds: OTP_LIMITS.wrongWindowSeconds, cost: 1 },
  ]);
}

export async function releaseWrong(db: Queryable, contactHash: Buffer): Promise<void> {
  await db.execute(sql`
    UPDATE rate_limits SET used = greatest(0, used - 1) WHERE caller IN (${OVERALL}, ${ofContact(contactHash)})`);
}

/** The wrong codes of a contact, under all its hashes, and of all contacts together. */
export async function readWrong(
  db: Queryable,
  contactHashes: readonly Buffer[],
  overallSeconds: number,
): Promise<{ readonly ofContact: number; readonly overall: number }> {
  const windowSeconds = OTP_LIMITS.wrongWindowSeconds;
  const [overall, ...own] = await countRequests(db, [
    { caller: OVERALL, windowSeconds: overallSeconds, cost: 0 },
    ...contactHashes.map((contactHash) => ({ caller: ofContact(contactHash), windowSeconds, cost: 0 })),
  ]);
  return { ofContact: own.reduce((sum, { used }) => sum + used, 0), overall: overall?.used ?? 0 };
}

/** The challenge with this id, also when it was used or has expired. */
export async function findChallenge(db: Queryable, challengeId: string): Promise<OtpChallenge | undefined> {
  const [row] = await db.select().from(otpChallenges).where(eq(otpChallenges.challengeId, challengeId)).limit(1);
  return row;
}

/**
 * Counts a try. It must not run in a transaction.
 *
 * @returns the challenge; undefined when no try is left: it is unknown, used, expired, or was tried too often
 */
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

/** Uses up a challenge; false when it was used before. */
export async function consumeChallenge(tx: Tx, challengeId: string, at: Date): Promise<boolean> {
  const consumed = await tx
    .update(otpChallenges)
    .set({ consumedAt: at, codeSealed: null })
    .where(and(eq(otpChallenges.challengeId, challengeId), isNull(otpChallenges.consumedAt)))
    .returning({ challengeId: otpChallenges.challengeId });
  return consumed.length === 1;
}

/** Erases the sealed code once it was sent, or never will be. Its hash still checks it. */
export async function eraseCode(db: Queryable, challengeId: string): Promise<void> {
  await db.update(otpChallenges).set({ codeSealed: null }).where(eq(otpChallenges.challengeId, challengeId));
}
