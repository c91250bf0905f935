/** Verifications. For an operator, as object.ts says. */
import { asc, eq } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { verifications } from '../../schema/verification.ts';
import { ROWS_MAX } from './object.ts';

export async function findVerificationObject(db: Queryable, verificationId: string) {
  const [row] = await db.select().from(verifications).where(eq(verifications.verificationId, verificationId));
  return row;
}

export const listVerificationsOf = (db: Queryable, recipientId: string) =>
  db
    .select({
      verificationId: verifications.verificationId,
      verificationType: verifications.verificationType,
      provider: verifications.provider,
      status: verifications.status,
      createdAt: verifications.createdAt,
      decidedAt: verifications.decidedAt,
      expiresAt: verifications.expiresAt,
    })
    .from(verifications)
    .where(eq(verifications.recipientId, recipientId))
    .orderBy(asc(verifications.createdAt), asc(verifications.verificationId))
    .limit(ROWS_MAX);
