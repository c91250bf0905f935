/**
 * Consumers and their sessions. A session is looked up by its token's hash at every request, so that an ended session
 * is over at once.
 */
import { and, eq, gt, inArray, isNull } from 'drizzle-orm';
import type { Consumer, ConsumerSession } from '../../domain/consumer.ts';
import type { Contact } from '../../domain/otp.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Queryable, Tx } from '../client.ts';
import { consumerSessions, consumers } from '../schema/consumer.ts';

/** The consumer of this environment with this contact. */
export async function findConsumer(
  db: Queryable,
  contact: Contact,
  environment: EnvironmentName,
): Promise<Consumer | undefined> {
  const column = contact.channel === 'email' ? consumers.email : consumers.phone;
  const [row] = await db
    .select()
    .from(consumers)
    .where(and(eq(consumers.environment, environment), eq(column, contact.address)));
  return row;
}

export async function insertConsumer(tx: Tx, consumer: Consumer): Promise<void> {
  await tx.insert(consumers).values(consumer);
}

export async function insertSession(tx: Tx, session: ConsumerSession, tokenHash: Buffer): Promise<void> {
  await tx.insert(consumerSessions).values({ ...session, tokenHash });
}

/** The session with one of these hashes of its token (one for each pepper) that is valid at `at`, and its consumer. */
export async function findSession(
  db: Queryable,
  tokenHashes: readonly Buffer[],
  environment: EnvironmentName,
  at: Date,
): Promise<{ readonly consumer: Consumer; readonly session: ConsumerSession } | undefined> {
  const [row] = await db
    .select({ consumer: consumers, session: consumerSessions })
    .from(consumerSessions)
    .innerJoin(consumers, eq(consumers.consumerId, consumerSessions.consumerId))
    .where(
      and(
        inArray(consumerSessions.tokenHash, [...tokenHashes]),
        isNull(consumerSessions.endedAt),
        gt(consumerSessions.expiresAt, at),
        eq(consumers.environment, environment),
      ),
    )
    .limit(1);
  return row;
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
