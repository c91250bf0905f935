import { sql } from 'drizzle-orm';
import { check, index, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Scope } from '../../domain/scope.ts';
import { bytes, eventCounter, moment, reference } from './column.ts';
import { organizations } from './organization.ts';

/**
 * Only a peppered HMAC of a raw key is stored (contract §3), with the id of its pepper. The status `expired` is derived
 * from `expires_at` and never stored.
 */
export const apiKeys = pgTable(
  'api_keys',
  {
    keyId: text('key_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    name: text('name').notNull(),
    scope: text('scope').$type<Scope>().notNull(),
    status: text('status').$type<'active' | 'rotated' | 'revoked'>().notNull(),
    environment: text('environment').$type<EnvironmentName>().notNull(),
    prefix: text('prefix').notNull(),
    keyHash: bytes('key_hash').notNull(),
    pepperId: text('pepper_id').notNull(),
    createdAt: moment('created_at').notNull(),
    lastUsedAt: moment('last_used_at'),
    /** The network of the address that used it last, never the whole address. */
    lastUsedFrom: text('last_used_from'),
    /** Blocks of addresses from which alone the key is valid; null: from everywhere. */
    allowedCidrs: text('allowed_cidrs').array(),
    expiresAt: moment('expires_at'),
    revokedAt: moment('revoked_at'),
    rotatedTo: text('rotated_to'),
    /** The key that the creating or rotating request was sent with; null for those that no key made. */
    createdBy: text('created_by'),
    ...eventCounter(),
  },
  (table) => [
    uniqueIndex('api_keys_key_hash').on(table.keyHash),
    index('api_keys_org').on(table.orgId, table.createdAt),
    index('api_keys_prefix').on(table.prefix),
    index('api_keys_expiry').on(table.expiresAt).where(sql`${table.status} = 'active' AND ${table.scope} = 'full'`),
    index('api_keys_created_by').on(table.createdBy),
    index('api_keys_rotated_to').on(table.rotatedTo),
  ],
);

/** Requests for a new key of an organization that has lost its own. Another operator than the first one confirms it. */
export const keyReissues = pgTable(
  'key_reissues',
  {
    reissueId: text('reissue_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    requestedBy: text('requested_by').notNull(),
    requestedAt: moment('requested_at').notNull(),
    /** Until then it can be confirmed. */
    expiresAt: moment('expires_at').notNull(),
    confirmedBy: text('confirmed_by'),
    keyId: text('key_id').references(() => apiKeys.keyId),
  },
  (table) => [
    index('key_reissues_org').on(table.orgId, table.requestedAt),
    check(
      'key_reissues_two_operators',
      sql`(${table.confirmedBy} IS NULL) = (${table.keyId} IS NULL) AND ${table.confirmedBy} IS DISTINCT FROM ${table.requestedBy}`,
    ),
  ],
);
