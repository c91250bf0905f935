import { index, integer, pgTable, text } from 'drizzle-orm/pg-core';
import type { EventType, ObjectType } from '../../domain/event.ts';
import { bytes, moment } from './column.ts';

/**
 * Outbound events, as the exact bytes that subscribers are sent (contract §11). They lie in months, by the time in
 * their ids. Each month also has a unique index of (object, sequence), which finds the events of an object.
 */
export const events = pgTable(
  'events',
  {
    eventId: text('event_id').primaryKey(),
    orgId: text('org_id').notNull(),
    type: text('type').$type<EventType>().notNull(),
    objectType: text('object_type').$type<ObjectType>().notNull(),
    objectId: text('object_id').notNull(),
    sequence: integer('sequence').notNull(),
    body: bytes('body').notNull(),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [
    index('events_org_created').on(table.orgId, table.createdAt, table.eventId),
    index('events_org_type').on(table.orgId, table.type, table.createdAt, table.eventId),
  ],
);
