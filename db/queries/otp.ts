/** One-time codes. Parallel tries of one code wait for each other, so each of them is counted. */
import { and, count, eq, getTableColumns, gt, inArray, isNull, lt, min, sql } from 'drizzle-orm';
import { OTP_LIMITS, type OtpChallenge } from '../../domain/otp.ts';
import type { Queryable, Tx } from '../client.ts';
import { otpChallenges } from '../schema/otp.ts';
import { deleteExpiredRows } from './retention.ts';

/**
 * Locks a contact until the transaction ends.
 *
 * @param contactHashes one for each pepper; they are locked in one order, which prevents deadlocks
 */
export async function lockContact(tx: Tx, contactHashes: readonly Buffer[]): Promise<void> {
  for (const contactHash of contactHashes.toSorted(Buffer.compare))
    await tx.execute(sql`SELECT pg_advisory_xact_lock(${contactHash.readBigInt64BE()}::bigint)`);
}

/** How many codes a locked contact was sent since then, and when the first of them. */
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

/**
 * Deletes challenges that neither prove nor limit anything, so that contacts are not kept, a bounded number of them.
 * @returns how many
 */
export const deleteOldChallenges = (db: Queryable): Promise<number> =>
  deleteExpiredRows(
    db,
    otpChallenges,
    sql`${otpChallenges.createdAt} <= now() - ${OTP_LIMITS.requestWindowMs} * interval '1 millisecond'`,
  );

/** The challenge with this id, also when it was used or has expired. It expires by the database's clock. */
export async function findChallenge(
  db: Queryable,
  challengeId: string,
): Promise<(OtpChallenge & { readonly isExpired: boolean }) | undefined> {
  const isExpired = sql<boolean>`${otpChallenges.expiresAt} <= now()`;
  const [row] = await db
    .select({ ...getTableColumns(otpChallenges), isExpired })
    .from(otpChallenges)
    .where(eq(otpChallenges.challengeId, challengeId))
    .limit(1);
  return row;
}

/**
 * Counts a try, and locks the challenge until the transaction ends. No answer may tell whether the code was right
 * before the transaction has committed.
 *
 * @returns the challenge; undefined when no try is left: it is unknown, used, expired, or was tried too often
 */
export async function countTry(tx: Tx, challengeId: string, at: Date): Promise<OtpChallenge | undefined> {
  const [row] = await tx
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

/** Uses up a challenge that `countTry` has locked. */
export async function consumeChallenge(tx: Tx, challengeId: string, at: Date): Promise<void> {
  await tx
    .update(otpChallenges)
    .set({ consumedAt: at, codeSealed: null })
    .where(eq(otpChallenges.challengeId, challengeId));
}

/** Erases the sealed code once it was sent, or never will be. Its hash still checks it. */
export async function eraseCode(db: Queryable, challengeId: string): Promise<void> {
  await db.update(otpChallenges).set({ codeSealed: null }).where(eq(otpChallenges.challengeId, challengeId));
}
