/** Verifications. For an operator, as object.ts says. */
import { and, desc, eq } from 'drizzle-orm';
import type { Verification } from '../../../domain/verification.ts';
import type { Queryable } from '../../client.ts';
import type { DataKey, ReadDeps } from '../../data-key.ts';
import { verifications } from '../../schema/verification.ts';
import { findOpened, openVerification } from '../verification.ts';
import { lastOf } from './object.ts';

export const findVerificationObject = (deps: ReadDeps, verificationId: string): Promise<Verification | undefined> =>
  findOpened(deps, eq(verifications.verificationId, verificationId));

/** The latest verifications of a recipient, in their order. */
export const listVerificationsOf = (db: Queryable, recipientId: string) =>
  lastOf(
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
      .orderBy(desc(verifications.createdAt), desc(verifications.verificationId)),
  );

/**
 * The verifications of a recipient with their personal data, the newest first.
 *
 * @param dataKey the recipient's; undefined once it is erased
 */
export async function listWholeVerificationsOf(
  db: Queryable,
  { orgId, recipientId }: Pick<Verification, 'orgId' | 'recipientId'>,
  dataKey: DataKey | undefined,
  limit: number,
): Promise<Verification[]> {
  const rows = await db
    .select()
    .from(verifications)
    .where(and(eq(verifications.orgId, orgId), eq(verifications.recipientId, recipientId)))
    .orderBy(desc(verifications.createdAt), desc(verifications.verificationId))
    .limit(limit);
  return rows.map((row) => openVerification(dataKey, row));
}
