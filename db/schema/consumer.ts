import { index, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { Channel } from '../../domain/otp.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import { bytes, moment, reference } from './column.ts';
import { organizations } from './organization.ts';

/**
 * Consumers, by the contact that they proved. A contact belongs to one consumer (contract §12). It is sealed, and found
 * by its peppered hash.
 */
export const consumers = pgTable(
  'consumers',
  {
    consumerId: text('consumer_id')
      .primaryKey()
      .references(() => organizations.orgId),
    channel: text('channel').$type<Channel>().notNull(),
    contactHash: bytes('contact_hash').notNull(),
    pepperId: text('pepper_id').notNull(),
    contactSealed: text('contact_sealed').notNull(),
    environment: text('environment').$type<EnvironmentName>().notNull(),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [uniqueIndex('consumers_contact').on(table.environment, table.contactHash)],
);

/** Sessions. Only a peppered HMAC of the token is stored. */
export const consumerSessions = pgTable(
  'consumer_sessions',
  {
    sessionId: text('session_id').primaryKey(),
    consumerId: reference('consumer_id', () => consumers.consumerId),
    tokenHash: bytes('token_hash').notNull(),
    createdAt: moment('created_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    endedAt: moment('ended_at'),
  },
  (table) => [
    uniqueIndex('consumer_sessions_token_hash').on(table.tokenHash),
    index('consumer_sessions_consumer').on(table.consumerId),
    index('consumer_sessions_expiry').on(table.expiresAt),
  ],
);
