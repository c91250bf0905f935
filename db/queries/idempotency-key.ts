/**
 * Idempotency (contract §6): one key, one request, one answer. The first use of a key binds it permanently, and its
 * answer is kept as bytes and repeated without a time limit. A refusal binds nothing. `INSERT … ON CONFLICT DO NOTHING`
 * under READ COMMITTED is the whole lock: a concurrent duplicate waits until the first one commits, inserts nothing,
 * and reads the first one.
 */
import { createHash } from 'node:crypto';
import { and, desc, eq, isNotNull, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Queryable, Tx } from '../client.ts';
import { type KeyOwner, openDataKey, type ReadDeps } from '../data-key.ts';
import { idempotencyKeys } from '../schema/idempotency-key.ts';
import { recipients } from '../schema/recipient.ts';
import type { Sealer } from '../seal.ts';

/** A key with the request that it is bound to, and the answer to it, as stored. */
export type BoundKey = typeof idempotencyKeys.$inferSelect;

/** A bound key, and the data key that opens what is sealed of it: null where nothing is, and once it is erased. */
export type FoundKey = BoundKey & Pick<KeyOwner, 'dataKeySealed'>;

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
  const given = Object.entries(request.fields).filter(([, value]) => value !== undefined && value !== null);
  const fieldDigests = Object.fromEntries(
    given.map(([name, value]) => [
      name,
      createHash('sha256')
        .update(`${name}\0${JSON.stringify(value, inOrder)}`)
        .digest('base64url')
        .slice(0, 22),
    ]),
  );
  return { requestHash, fieldDigests };
}

/** For `JSON.stringify`: the order of an object's entries makes no difference. */
const inOrder = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
    : value;

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
  { db, sealer }: ReadDeps,
  { orgId, idempotencyKey, fingerprint }: KeyedRequest,
): Promise<Answer | undefined> {
  const [found] = await db
    .select({ bound: idempotencyKeys, dataKeySealed: recipients.dataKeySealed })
    .from(idempotencyKeys)
    .leftJoin(recipients, eq(recipients.recipientId, idempotencyKeys.recipientId))
    .where(and(eq(idempotencyKeys.orgId, orgId), eq(idempotencyKeys.key, idempotencyKey)))
    .limit(1);
  return found && replay(sealer, { ...found.bound, dataKeySealed: found.dataKeySealed }, fingerprint);
}

/**
 * Locks a key, bound or not, until the transaction ends. For a creation whose answer is known only after it: a second
 * request waits here instead of creating something.
 */
export async function lockKey(tx: Tx, { orgId, idempotencyKey }: KeyedRequest): Promise<void> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`${orgId}:${idempotencyKey}`}, 0))`);
}

/** Whose personal data a request or its answer has. */
export type AnswerAbout = Pick<KeyOwner, 'recipientId'> & { readonly dataKey: Sealer };

/** What the sealed part of a bound key is. */
type Exchange = { readonly hash: string; readonly fields: Record<string, string>; readonly body: string };

const exchangeBinding = ({ orgId, key }: Pick<BoundKey, 'orgId' | 'key'>): string =>
  `idempotency_keys.exchange:${orgId}:${key}`;

/** What is stored for a key once it is bound. @param about undefined where there is no personal data */
export function boundKeyOf(
  { orgId, idempotencyKey: key, fingerprint }: KeyedRequest,
  { resourceId, status, body }: Omit<Answer, 'replayed'>,
  createdAt: Date,
  about?: AnswerAbout,
): BoundKey {
  const stored = { orgId, key, resourceId, responseStatus: status, createdAt };
  if (!about) return { ...stored, ...fingerprint, responseBody: body, recipientId: null, exchangeSealed: null };
  const exchange: Exchange = {
    hash: fingerprint.requestHash.toString('base64url'),
    fields: fingerprint.fieldDigests,
    body: body.toString(),
  };
  return {
    ...stored,
    requestHash: null,
    fieldDigests: null,
    responseBody: null,
    recipientId: about.recipientId,
    exchangeSealed: about.dataKey.seal(JSON.stringify(exchange), exchangeBinding(stored)),
  };
}

/** An answer as it was given, to be shown to the person it is about; the body is empty if it showed a secret. */
export type AnswerCopy = Pick<BoundKey, 'createdAt' | 'responseStatus'> & { readonly body: string };

/** The stored answers about a recipient, the newest first. */
export async function listAnswersAbout(
  db: Queryable,
  { orgId, recipientId }: { readonly orgId: string; readonly recipientId: string },
  dataKey: Sealer,
  limit: number,
): Promise<AnswerCopy[]> {
  const { orgId: owner, recipientId: about, exchangeSealed, createdAt, key } = idempotencyKeys;
  const rows = await db
    .select()
    .from(idempotencyKeys)
    .where(and(eq(owner, orgId), eq(about, recipientId), isNotNull(exchangeSealed)))
    .orderBy(desc(createdAt), desc(key))
    .limit(limit);
  return rows.flatMap((row) => {
    const exchange = exchangeOf(dataKey, row);
    return exchange ? [{ createdAt: row.createdAt, responseStatus: row.responseStatus, body: exchange.body }] : [];
  });
}

const exchangeOf = (dataKey: Sealer, row: Pick<BoundKey, 'orgId' | 'key' | 'exchangeSealed'>): Exchange | undefined =>
  row.exchangeSealed === null
    ? undefined
    : (JSON.parse(dataKey.open(row.exchangeSealed, exchangeBinding(row)).toString()) as Exchange);

/**
 * What the request was compared by, and the body of its answer.
 *
 * @returns undefined once the recipient is erased
 */
function openExchange(
  sealer: Sealer,
  found: FoundKey,
): { readonly fingerprint: RequestFingerprint; readonly body: Buffer } | undefined {
  const { requestHash, fieldDigests, responseBody, recipientId, dataKeySealed } = found;
  if (requestHash && fieldDigests && responseBody)
    return { fingerprint: { requestHash, fieldDigests }, body: responseBody };
  const dataKey = recipientId === null ? undefined : openDataKey(sealer, { recipientId, dataKeySealed });
  const exchange = dataKey && exchangeOf(dataKey, found);
  if (!exchange) return undefined;
  return {
    fingerprint: { requestHash: Buffer.from(exchange.hash, 'base64url'), fieldDigests: exchange.fields },
    body: Buffer.from(exchange.body),
  };
}

/**
 * Binds the key to this answer, in the transaction that makes the answer true. When another request with the key has
 * committed since, returns that request's answer as a replay; the caller must then write nothing.
 *
 * @throws DomainError `idempotency_key_reused`
 */
export async function bindAnswer(
  { db, sealer }: ReadDeps<Tx>,
  request: KeyedRequest,
  answer: Omit<Answer, 'replayed'>,
  { at, about }: { readonly at: Date; readonly about?: AnswerAbout | undefined },
): Promise<Answer> {
  const bound = await db
    .insert(idempotencyKeys)
    .values(boundKeyOf(request, answer, at, about))
    .onConflictDoNothing()
    .returning({ key: idempotencyKeys.key });
  if (bound.length === 1) return { ...answer, replayed: false };
  return await getAnswer({ db, sealer }, request);
}

/** As `findAnswer`, for a key that was just found bound. */
export async function getAnswer(deps: ReadDeps, request: KeyedRequest): Promise<Answer> {
  const first = await findAnswer(deps, request);
  if (!first) throw new Error(`an idempotency key of organization ${request.orgId} was neither bound nor found`);
  return first;
}

/**
 * The stored answer, for the request that the key is bound to.
 *
 * @throws DomainError `idempotency_key_reused` for another one, and once the recipient that it is about is erased
 */
export function replay(sealer: Sealer, found: FoundKey, fingerprint: RequestFingerprint): Answer {
  const exchange = openExchange(sealer, found);
  if (!exchange)
    throw new DomainError(
      'idempotency_key_reused',
      { mismatch: [] },
      'The answer to this key had personal data of a recipient that was erased since. The object exists.',
    );
  if (!exchange.fingerprint.requestHash.equals(fingerprint.requestHash))
    throw new DomainError('idempotency_key_reused', { mismatch: mismatchOf(exchange.fingerprint, fingerprint) });
  return { resourceId: found.resourceId, status: found.responseStatus, body: exchange.body, replayed: true };
}
