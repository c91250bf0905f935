/**
 * Idempotency (contract §6): one key, one request, one answer. The first use of a key binds it permanently, and its
 * answer is kept as bytes and repeated without a time limit. A refusal binds nothing. `INSERT … ON CONFLICT DO NOTHING`
 * under READ COMMITTED is the whole lock: a concurrent duplicate waits until the first one commits, inserts nothing,
 * and reads the first one.
 */
import { createHash } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Queryable, Tx } from '../client.ts';
import { idempotencyKeys } from '../schema/idempotency-key.ts';

/** A key with the request that it is bound to, and the answer to it. */
export type BoundKey = typeof idempotencyKeys.$inferSelect;

/**
 * What two requests are compared by: the digest of the exact bytes, and of each top-level field, to name differences.
 */
export type RequestFingerprint = { readonly requestHash: Buffer; readonly fieldDigests: Record<string, string> };

/** A request with an idempotency key. */
export type KeyedRequest = {
  readonly orgId: string;
  readonly idempotencyKey: string;
  readonly fingerprint: RequestFingerprint;
};

/** What a key's first use was answered with; `replayed` for every later use. */
export type Answer = {
  readonly resourceId: string;
  readonly status: number;
  readonly body: Buffer;
  readonly replayed: boolean;
};

/** @param request `route` is the route's template, so that one key never serves two operations */
export function fingerprintOf(request: {
  readonly method: string;
  readonly route: string;
  readonly bytes: Buffer;
  readonly fields: Readonly<Record<string, unknown>>;
}): RequestFingerprint {
  const requestHash = createHash('sha256')
    .update(`${request.method}\0${request.route}\0`)
    .update(request.bytes)
    .digest();
  const fieldDigests = Object.fromEntries(
    Object.entries(request.fields).map(([name, value]) => [
      name,
      createHash('sha256')
        .update(`${name}\0${JSON.stringify(value)}`)
        .digest('base64url')
        .slice(0, 22),
    ]),
  );
  return { requestHash, fieldDigests };
}

/** The names of the top-level fields in which two requests differ; empty when only the bytes differ. */
function mismatchOf(bound: RequestFingerprint, given: RequestFingerprint): string[] {
  const names = new Set([...Object.keys(bound.fieldDigests), ...Object.keys(given.fieldDigests)]);
  return [...names]
    .filter((name) => bound.fieldDigests[name] !== given.fieldDigests[name])
    .sort((one, other) => (one < other ? -1 : 1));
}

/**
 * How the key's first use was answered; undefined while the key is free.
 *
 * @throws DomainError `idempotency_key_reused` when the key is bound to another request
 */
export async function findAnswer(
  db: Queryable,
  { orgId, idempotencyKey, fingerprint }: KeyedRequest,
): Promise<Answer | undefined> {
  const [bound] = await db
    .select()
    .from(idempotencyKeys)
    .where(and(eq(idempotencyKeys.orgId, orgId), eq(idempotencyKeys.key, idempotencyKey)))
    .limit(1);
  return bound && replay(bound, fingerprint);
}

/**
 * Locks a key, bound or not, until the transaction ends. For a creation whose answer is known only after it: a second
 * request waits here instead of creating something.
 */
export async function lockKey(tx: Tx, { orgId, idempotencyKey }: KeyedRequest): Promise<void> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`${orgId}:${idempotencyKey}`}, 0))`);
}

/** What is stored for a key once it is bound. */
export const boundKeyOf = (
  { orgId, idempotencyKey, fingerprint }: KeyedRequest,
  { resourceId, status, body }: Omit<Answer, 'replayed'>,
  createdAt: Date,
): BoundKey => ({
  orgId,
  key: idempotencyKey,
  ...fingerprint,
  resourceId,
  responseStatus: status,
  responseBody: body,
  createdAt,
});

/**
 * Binds the key to this answer, in the transaction that makes the answer true. When another request with the key has
 * committed since, returns that request's answer as a replay; the caller must then write nothing.
 *
 * @throws DomainError `idempotency_key_reused`
 */
export async function bindAnswer(
  tx: Tx,
  request: KeyedRequest,
  answer: Omit<Answer, 'replayed'>,
  createdAt: Date,
): Promise<Answer> {
  const bound = await tx
    .insert(idempotencyKeys)
    .values(boundKeyOf(request, answer, createdAt))
    .onConflictDoNothing()
    .returning({ key: idempotencyKeys.key });
  if (bound.length === 1) return { ...answer, replayed: false };
  return await getAnswer(tx, request);
}

/** As `findAnswer`, for a key that was just found bound. */
export async function getAnswer(db: Queryable, request: KeyedRequest): Promise<Answer> {
  const first = await findAnswer(db, request);
  if (!first) throw new Error(`an idempotency key of organization ${request.orgId} was neither bound nor found`);
  return first;
}

/**
 * The stored answer, for the request that the key is bound to.
 *
 * @throws DomainError `idempotency_key_reused` for another one
 */
export function replay(bound: BoundKey, fingerprint: RequestFingerprint): Answer {
  if (!bound.requestHash.equals(fingerprint.requestHash))
    throw new DomainError('idempotency_key_reused', { mismatch: mismatchOf(bound, fingerprint) });
  return { resourceId: bound.resourceId, status: bound.responseStatus, body: bound.responseBody, replayed: true };
}
