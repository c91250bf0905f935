/** Consumers and their sessions. A session is looked up by its token's hash at every request: one that was ended is over at once. */
import { and, eq, gt, inArray, isNull } from 'drizzle-orm';
import { type Consumer, type ConsumerSession, consumerOrganization, newConsumer } from '../../domain/consumer.ts';
import type { Contact } from '../../domain/otp.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Queryable, Tx } from '../client.ts';
import { newId } from '../id.ts';
import { consumerSessions, consumers } from '../schema/consumer.ts';
import { insertOrganization } from './organization.ts';

/** Who proved this contact, made with a tenant of its own the first time. The caller has locked the contact. */
export async function findOrInsertConsumer(
  tx: Tx,
  contact: Contact,
  environment: EnvironmentName,
  at: Date,
): Promise<Consumer> {
  const column = contact.channel === 'email' ? consumers.email : consumers.phone;
  const [known] = await tx
    .select()
    .from(consumers)
    .where(and(eq(consumers.environment, environment), eq(column, contact.address)));
  if (known) return known;
  const consumer = newConsumer(newId(), contact, environment, at);
  await insertOrganization(tx, consumerOrganization(consumer));
  await tx.insert(consumers).values(consumer);
  return consumer;
}

export async function insertSession(tx: Tx, session: ConsumerSession, tokenHash: Buffer): Promise<void> {
  await tx.insert(consumerSessions).values({ ...session, tokenHash });
}

/** The session with one of these hashes of a token, one for each pepper, that is not over at `at`, and whose it is. */
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
