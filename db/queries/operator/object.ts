/**
 * What is stored about one object, for an operator, who knows its id and no organization: here what every object has,
 * in the other files of this folder what each kind has. Of what is sealed only personal
 * data is read, which is shown masked; the bodies of events are never read. Lists are bounded.
 */
import { asc, desc, eq, getTableColumns, inArray, or, sql } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { auditEntries } from '../../schema/audit.ts';
import { events } from '../../schema/event.ts';
import { outbox } from '../../schema/outbox.ts';

/** Of each list about an object. */
export const ROWS_MAX = 50;

/**
 * The last rows of a list that may be longer, in its order: what has just happened is what an operator asks about.
 *
 * @param newestFirst the list in the opposite order
 */
export const lastOf = async <Row>(newestFirst: { limit(count: number): PromiseLike<Row[]> }): Promise<Row[]> =>
  (await newestFirst.limit(ROWS_MAX)).toReversed();

/** Outbox rows of the object, or of a simulation for it. */
export const listOutboxRows = (db: Queryable, objectId: string) =>
  db
    .select({
      ...getTableColumns(outbox),
      /** On the database's clock. */
      ageMs: sql<number>`(extract(epoch FROM now() - ${outbox.createdAt}) * 1000)::float8`,
    })
    .from(outbox)
    .where(or(eq(outbox.objectId, objectId), sql`${outbox.context}->>'settlementId' = ${objectId}`))
    .orderBy(asc(outbox.outboxId))
    .limit(ROWS_MAX);

/** The object's latest events, in their order. */
export const listEvents = (db: Queryable, objectId: string) =>
  lastOf(
    db
      .select({ eventId: events.eventId, type: events.type, sequence: events.sequence, createdAt: events.createdAt })
      .from(events)
      .where(eq(events.objectId, objectId))
      .orderBy(desc(events.sequence)),
  );

/** The latest, in their order. @param objectIds of the object, and of what belongs to it */
export const listAuditEntries = (db: Queryable, ...objectIds: string[]) =>
  lastOf(
    db
      .select()
      .from(auditEntries)
      .where(inArray(auditEntries.objectId, objectIds))
      .orderBy(desc(auditEntries.at), desc(auditEntries.auditId)),
  );
