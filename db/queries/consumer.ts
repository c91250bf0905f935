/**
 * Consumers and their sessions. A session is looked up by its token's hash at every request, so that an ended session
 * is over at once.
 */
import { and, count, desc, eq, gt, inArray, isNull, ne, notExists, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { Consumer, ConsumerSession, ContactHash } from '../../domain/consumer.ts';
import type { Counted } from '../../domain/rate-limit.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Queryable, Tx } from '../client.ts';
import { columnsOf, jsonColumns } from '../column-list.ts';
import { consumerSessions, consumers } from '../schema/consumer.ts';
import { statement } from '../statement.ts';
import { type Count, countingSql, resetSecondsSql } from './rate-limit.ts';
import { deleteExpiredRows } from './retention.ts';

/**
 * The consumer of this environment with this contact. There may be another one under an older pepper, from before that
 * was missing for a while: the one under the active pepper counts.
 *
 * @param hashes of the contact, one for each pepper, the active one first. A hash under an older one is replaced.
 */
export async function findConsumer(
  tx: Tx,
  hashes: readonly [ContactHash, ...ContactHash[]],
  environment: EnvironmentName,
): Promise<Consumer | undefined> {
  const [row] = await tx
    .select()
    .from(consumers)
    .where(
      and(
        eq(consumers.environment, environment),
        inArray(
          consumers.contactHash,
          hashes.map(({ hash }) => hash),
        ),
      ),
    )
    .orderBy(desc(eq(consumers.pepperId, hashes[0].pepperId)))
    .limit(1);
  if (!row) return undefined;
  const { contactHash: _hash, pepperId, ...consumer } = row;
  if (pepperId !== hashes[0].pepperId) await setContactHash(tx, consumer.consumerId, hashes[0]);
  return consumer;
}

/** @returns false when another consumer of the environment has this hash */
export async function setContactHash(
  db: Queryable,
  consumerId: string,
  { hash: contactHash, pepperId }: ContactHash,
): Promise<boolean> {
  const other = alias(consumers, 'other');
  const taken = db
    .select({ consumerId: other.consumerId })
    .from(other)
    .where(and(eq(other.environment, consumers.environment), eq(other.contactHash, contactHash)));
  const { rowCount } = await db
    .update(consumers)
    .set({ contactHash, pepperId })
    .where(and(eq(consumers.consumerId, consumerId), notExists(taken)));
  return rowCount === 1;
}

/** Consumers whose contact is hashed under another pepper, in the order of their ids. */
export async function listConsumersToRehash(
  db: Queryable,
  activePepperId: string,
  after: string,
  limit: number,
): Promise<Pick<Consumer, 'consumerId' | 'channel' | 'contactSealed'>[]> {
  const { consumerId, channel, contactSealed, pepperId } = consumers;
  return await db
    .select({ consumerId, channel, contactSealed })
    .from(consumers)
    .where(and(ne(pepperId, activePepperId), gt(consumerId, after)))
    .orderBy(consumerId)
    .limit(limit);
}

export async function countConsumersByPepper(
  db: Queryable,
): Promise<{ readonly pepperId: string; readonly count: number }[]> {
  const { pepperId } = consumers;
  return await db.select({ pepperId, count: count() }).from(consumers).groupBy(pepperId);
}

export async function insertConsumer(
  tx: Tx,
  consumer: Consumer,
  { hash: contactHash, pepperId }: ContactHash,
): Promise<void> {
  await tx.insert(consumers).values({ ...consumer, contactHash, pepperId });
}

export async function insertSession(tx: Tx, session: ConsumerSession, tokenHash: Buffer): Promise<void> {
  await tx.insert(consumerSessions).values({ ...session, tokenHash });
}

/** A valid session with its consumer, and its request counted. */
export type SessionCaller = {
  readonly consumer: Consumer;
  readonly session: ConsumerSession;
  /** An operator has suspended the consumer. */
  readonly isSuspended: boolean;
  readonly counted: Counted;
};

const CONSUMER = jsonColumns<Consumer>(
  columnsOf(consumers, ['consumerId', 'channel', 'contactSealed', 'environment', 'createdAt']),
  'c',
);
const SESSION = jsonColumns<ConsumerSession>(
  columnsOf(consumerSessions, ['sessionId', 'consumerId', 'createdAt', 'expiresAt']),
  's',
);

type SessionCallerRow = {
  readonly consumer: readonly unknown[];
  readonly session: readonly unknown[];
  readonly is_suspended: boolean;
  readonly used: number;
  readonly reset_seconds: number;
};

const callerStatement = statement<[Buffer[], EnvironmentName, string, number, number], SessionCallerRow>(
  'consumer_session.caller',
  `WITH session AS (
     SELECT c.consumer_id, ${CONSUMER.text} AS consumer, ${SESSION.text} AS session,
            (SELECT suspended_at IS NOT NULL FROM organizations WHERE org_id = c.consumer_id) AS is_suspended
       -- By its hash alone: otherwise PostgreSQL 15 and 16 read all sessions of a small table, by their expiry.
       FROM (SELECT * FROM consumer_sessions WHERE token_hash = ANY ($1::bytea[]) LIMIT 1) s
         JOIN consumers c USING (consumer_id)
      WHERE ended_at IS NULL AND expires_at > $3::timestamptz AND environment = $2
   ),
   counted AS (${countingSql(`SELECT 'org:' || consumer_id, $4::int, $5::int FROM session`)})
   SELECT consumer, session, is_suspended, counted.used, ${resetSecondsSql('counted.begun', '$4::int')} AS reset_seconds
     FROM session, counted`,
);

/**
 * Finds the session with one of these hashes of its token (one for each pepper) that is valid at `at`, and counts the
 * request for its consumer, in one round trip.
 */
export async function authenticateConsumer(
  db: Queryable,
  tokenHashes: readonly Buffer[],
  { environment, at }: { environment: EnvironmentName; at: Date },
  { windowSeconds, cost }: Pick<Count, 'windowSeconds' | 'cost'>,
): Promise<SessionCaller | undefined> {
  const [row] = await callerStatement(db, [...tokenHashes], environment, at.toISOString(), windowSeconds, cost);
  if (!row) return undefined;
  return {
    consumer: CONSUMER.rowOf(row.consumer),
    session: SESSION.rowOf(row.session),
    isSuspended: row.is_suspended,
    counted: { used: row.used, resetSeconds: row.reset_seconds },
  };
}

/** Ends a session; one that has ended stays as it is. */
export async function endSession(db: Queryable, consumerId: string, sessionId: string, at: Date): Promise<void> {
  await db
    .update(consumerSessions)
    .set({ endedAt: at })
    .where(
      and(
        eq(consumerSessions.consumerId, consumerId),
        eq(consumerSessions.sessionId, sessionId),
        isNull(consumerSessions.endedAt),
      ),
    );
}

/** Deletes sessions that have expired, a bounded number of them. @returns how many */
export const deleteExpiredSessions = (db: Queryable): Promise<number> =>
  deleteExpiredRows(db, consumerSessions, sql`${consumerSessions.expiresAt} <= now()`);
