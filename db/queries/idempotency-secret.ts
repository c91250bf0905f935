/** Answers that showed a secret, sealed, for as long as they are repeated (contract §1). */
import { and, eq, gt, sql } from 'drizzle-orm';
import type { Queryable, Tx } from '../client.ts';
import { idempotencySecrets } from '../schema/idempotency-key.ts';
import type { Sealer } from '../seal.ts';
import type { KeyedRequest } from './idempotency-key.ts';
import { deleteExpiredRows } from './retention.ts';

export const SECRET_ANSWER_HOURS = 24;
const KEPT_MS = SECRET_ANSWER_HOURS * 60 * 60 * 1000;

type Key = Pick<KeyedRequest, 'orgId' | 'idempotencyKey'>;

/** What a sealed answer is bound to. It opens for no other key. */
export const secretAnswerBinding = (orgId: string, idempotencyKey: string): string =>
  `idempotency_secrets.body:${orgId}:${idempotencyKey}`;

/** The answer's body; undefined once it is no longer kept. */
export async function findSecretAnswer(
  tx: Tx,
  sealer: Sealer,
  { orgId, idempotencyKey: key }: Key,
  at: Date,
): Promise<Buffer | undefined> {
  const [row] = await tx
    .select({ sealed: idempotencySecrets.bodySealed })
    .from(idempotencySecrets)
    .where(
      and(eq(idempotencySecrets.orgId, orgId), eq(idempotencySecrets.key, key), gt(idempotencySecrets.expiresAt, at)),
    )
    .limit(1);
  return row && sealer.open(row.sealed, secretAnswerBinding(orgId, key));
}

/** Stores the answer of a key that was just bound. */
export async function insertSecretAnswer(
  tx: Tx,
  sealer: Sealer,
  { orgId, idempotencyKey: key }: Key,
  { body, at }: { readonly body: Buffer; readonly at: Date },
): Promise<void> {
  await tx.insert(idempotencySecrets).values({
    orgId,
    key,
    bodySealed: sealer.seal(body, secretAnswerBinding(orgId, key)),
    expiresAt: new Date(at.getTime() + KEPT_MS),
  });
}

/** Deletes answers that are no longer kept, a bounded number of them. @returns how many */
export const deleteExpiredSecretAnswers = (db: Queryable): Promise<number> =>
  deleteExpiredRows(db, idempotencySecrets, sql`${idempotencySecrets.expiresAt} <= now()`);
