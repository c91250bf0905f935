import { index, integer, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { EventType, ObjectType } from '../../domain/event.ts';
import { bytes, moment } from './column.ts';
import { organizations } from './organization.ts';

/** Outbound events, as the exact bytes that subscribers are sent (contract §11). */
export const events = pgTable(
  'events',
  {
    eventId: text('event_id').primaryKey(),
    orgId: text('org_id')
      .notNull()
      .references(() => organizations.orgId),
    type: text('type').$type<EventType>().notNull(),
    objectType: text('object_type').$type<ObjectType>().notNull(),
    objectId: text('object_id').notNull(),
    sequence: integer('sequence').notNull(),
    body: bytes('body').notNull(),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [
    uniqueIndex('events_object_sequence').on(table.objectId, table.sequence),
    index('events_created').on(table.createdAt),
    index('events_org_created').on(table.orgId, table.createdAt, table.eventId),
    index('events_org_type').on(table.orgId, table.type, table.createdAt, table.eventId),
  ],
);
