/** Stored events as the bytes that subscribers are sent (contract §11). */
import { and, eq, gte, inArray } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { EventType } from '../../domain/event.ts';
import type { Page, Paged } from '../../domain/page.ts';
import type { Database, Queryable } from '../client.ts';
import { events } from '../schema/event.ts';
import { type List, pageOf, readPage } from './page.ts';

type EventRow = Pick<typeof events.$inferSelect, 'eventId' | 'createdAt' | 'body'>;

/** Which events are wanted; every filter that is given must match. */
export type EventSelection = {
  readonly types?: readonly EventType[] | undefined;
  readonly objectId?: string | undefined;
  readonly createdFrom?: Date | undefined;
  /** Exclusive. */
  readonly createdTo?: Date | undefined;
};

/** @throws DomainError `not_found`, for another organization's event as well */
export async function getEventBody(db: Queryable, orgId: string, eventId: string): Promise<Buffer> {
  const [row] = await db
    .select({ body: events.body })
    .from(events)
    .where(and(eq(events.orgId, orgId), eq(events.eventId, eventId)))
    .limit(1);
  if (!row) throw new DomainError('not_found');
  return row.body;
}

/** A page of the organization's events, newest first. */
export async function listEventBodies(
  db: Database,
  orgId: string,
  { selection, page }: { readonly selection: EventSelection; readonly page: Page },
): Promise<Paged<Buffer>> {
  const list: List<EventRow> = {
    table: events,
    ...selectedBy(orgId, selection),
    createdAt: events.createdAt,
    id: events.eventId,
    cursorOf: ({ createdAt: at, eventId: id }) => ({ at, id }),
  };
  const { eventId, createdAt, body } = events;
  const paged = await readPage(db, list, page, pageOf(db.select({ eventId, createdAt, body }).from(events).$dynamic()));
  return { ...paged, items: paged.items.map((event) => event.body) };
}

/** The indexes are (organization, [type,] creation), and one by object: an object has few events. */
function selectedBy(orgId: string, { types, objectId, createdFrom, createdTo }: EventSelection) {
  const ofOrganization = eq(events.orgId, orgId);
  const created = { within: createdFrom && gte(events.createdAt, createdFrom), createdTo };
  if (objectId !== undefined)
    return {
      where: and(ofOrganization, eq(events.objectId, objectId), types && inArray(events.type, [...types])),
      ...created,
    };
  return {
    where: ofOrganization,
    ...created,
    ...(types ? { ranges: [{ column: events.type, values: types }] } : {}),
  };
}
