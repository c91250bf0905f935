import { index, integer, pgTable, text } from 'drizzle-orm/pg-core';
import type { Channel } from '../../domain/otp.ts';
import { bytes, moment } from './column.ts';

/** The one-time codes that were requested. A row is deleted once it no longer proves or limits anything. */
export const otpChallenges = pgTable(
  'otp_challenges',
  {
    challengeId: text('challenge_id').primaryKey(),
    channel: text('channel').$type<Channel>().notNull(),
    contactHash: bytes('contact_hash').notNull(),
    contactSealed: text('contact_sealed').notNull(),
    codeHash: bytes('code_hash').notNull(),
    codeSealed: text('code_sealed'),
    attempts: integer('attempts').notNull(),
    createdAt: moment('created_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    consumedAt: moment('consumed_at'),
  },
  (table) => [
    index('otp_challenges_contact').on(table.contactHash, table.createdAt),
    index('otp_challenges_created').on(table.createdAt),
  ],
);
