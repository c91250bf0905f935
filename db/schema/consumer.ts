import { index, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { EnvironmentName } from '../../domain/runtime.ts';
import { bytes, moment } from './column.ts';
import { organizations } from './organization.ts';

/** Consumers, by the contact that they proved. A contact belongs to one consumer (contract §12). */
export const consumers = pgTable(
  'consumers',
  {
    consumerId: text('consumer_id')
      .primaryKey()
      .references(() => organizations.orgId),
    email: text('email'),
    phone: text('phone'),
    environment: text('environment').$type<EnvironmentName>().notNull(),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [
    uniqueIndex('consumers_email').on(table.environment, table.email),
    uniqueIndex('consumers_phone').on(table.environment, table.phone),
  ],
);

/** Sessions. Only a peppered HMAC of the token is stored. */
export const consumerSessions = pgTable(
  'consumer_sessions',
  {
    sessionId: text('session_id').primaryKey(),
    consumerId: text('consumer_id')
      .notNull()
      .references(() => consumers.consumerId),
    tokenHash: bytes('token_hash').notNull(),
    createdAt: moment('created_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    endedAt: moment('ended_at'),
  },
  (table) => [
    uniqueIndex('consumer_sessions_token_hash').on(table.tokenHash),
    index('consumer_sessions_consumer').on(table.consumerId),
  ],
);
