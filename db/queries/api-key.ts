/**
 * API keys. A key is looked up by its hash at every request, without a cache, because a rotated key is invalid at once.
 * The keys of one organization change one after another, under its row's lock. No key is ever deleted.
 */
import { and, count, eq, gt, isNull, ne, notInArray, or, sql } from 'drizzle-orm';
import { ACTIVE_KEYS_MAX, type ApiKey, type KeyLimits } from '../../domain/api-key.ts';
import { notBefore } from '../../domain/clock.ts';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import type { Allowance, OwnLimits, Tier } from '../../domain/quota.ts';
import type { Counted } from '../../domain/rate-limit.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Scope } from '../../domain/scope.ts';
import type { Database, Queryable, Tx } from '../client.ts';
import { apiKeys } from '../schema/api-key.ts';
import { statement } from '../statement.ts';
import { type List, pageOf, readPage } from './page.ts';
import { addressCaller, type Count, countingSql, resetSecondsSql } from './rate-limit.ts';

export type ApiKeyRow = typeof apiKeys.$inferSelect;
/** What identifies a key: its id, the prefix that is shown, and the hash of the raw key under one pepper. */
export type ApiKeyCredential = Pick<ApiKey, 'keyId' | 'environment' | 'prefix'> & {
  readonly keyHash: Buffer;
  readonly pepperId: string;
};
export type NewApiKey = ApiKeyCredential & Pick<ApiKey, 'name' | 'createdAt' | 'createdBy'> & KeyLimits;

const toApiKey = ({
  keyHash: _hash,
  pepperId: _pepper,
  eventSequence: _sequence,
  eventAt: _at,
  ...row
}: ApiKeyRow): ApiKey => row;
/** Whether a key is valid at `at`. */
export const isWorking = (at: Date) =>
  and(eq(apiKeys.status, 'active'), or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, at)));
const owned = (orgId: string, keyId: string) => and(eq(apiKeys.orgId, orgId), eq(apiKeys.keyId, keyId));

/** What authentication needs of a valid key, and its request counted. */
export type KeyCaller = Pick<ApiKey, 'keyId' | 'orgId' | 'scope'> & {
  /** An operator has suspended its organization. */
  readonly isSuspended: boolean;
  readonly allowance: Allowance;
  /** Whether `touchApiKey` is due. */
  readonly isTouchDue: boolean;
  /** For its organization and for its address; null for a request from an address that the key does not allow. */
  readonly counted: { readonly organization: Counted; readonly address: Counted } | null;
};

type KeyCallerRow = {
  /** Among the keys that were presented, from 1. */
  readonly place: number;
  readonly key_id: string;
  readonly org_id: string;
  readonly scope: Scope;
  readonly is_suspended: boolean;
  readonly is_touch_due: boolean;
  readonly tier: Tier;
  readonly limits: OwnLimits;
  /** Null from an address that is not allowed. */
  readonly used: number | null;
  readonly used_by_address: number | null;
  readonly reset_seconds: number | null;
};

/**
 * The lengths of the arrays are hidden from the planner: a plan for a few keys looks cheaper than the one that a
 * connection keeps, so it would make one at each call.
 *
 * @param condition which of the keys with one of the hashes
 */
const callersSql = (condition: string): string =>
  `WITH presented AS (
     SELECT place::int, ($5::bytea[])[(place - 1) * $6 + 1 : place * $6] AS hashes, address::inet, limit_caller, cost
       FROM unnest((SELECT $7::text[]), (SELECT $8::text[]), (SELECT $9::int[])) WITH ORDINALITY
              AS given (address, limit_caller, cost, place)
   ),
   key AS (
     SELECT place, limit_caller, cost, found.* FROM presented, LATERAL (
       SELECT key_id, org_id, scope, tier, limits, suspended_at IS NOT NULL AS is_suspended,
              coalesce(last_used_at < $3::timestamptz, true) AS is_touch_due,
              allowed_cidrs IS NULL OR coalesce(presented.address <<= ANY (allowed_cidrs::cidr[]), false) AS is_allowed
         FROM api_keys JOIN organizations USING (org_id)
        WHERE key_hash = ANY (presented.hashes) AND api_keys.environment = $1 AND ${condition}
          AND (expires_at IS NULL OR expires_at > $2::timestamptz)
        LIMIT 1
     ) found
   ),
   counted AS (${countingSql(`SELECT caller, $4::int, sum(cost)::int
     FROM key, LATERAL (VALUES (limit_caller), ('org:' || org_id)) AS callers (caller)
     WHERE is_allowed GROUP BY caller ORDER BY caller`)})
   SELECT key.place, key.key_id, key.org_id, key.scope, key.tier, key.limits, key.is_suspended, key.is_touch_due,
          own.used, address.used AS used_by_address,
          ${resetSecondsSql('own.begun', '$4::int')} AS reset_seconds
     FROM key LEFT JOIN counted own ON is_allowed AND own.caller = 'org:' || key.org_id
       LEFT JOIN counted address ON is_allowed AND address.caller = key.limit_caller`;

type CallersParameters = [
  ...[environment: EnvironmentName, now: string, touchedBefore: string, windowSeconds: number],
  ...[keyHashes: readonly Buffer[], hashesOfEach: number],
  ...[addresses: readonly (string | null)[], addressCallers: readonly string[], costs: readonly number[]],
];

const callersStatement = statement<CallersParameters, KeyCallerRow>('api_key.callers', callersSql(`status = 'active'`));

/** A rotated key, with the idempotency key by which it has rotated itself, while the answer is kept. */
const rotatedCallerStatement = statement<[...CallersParameters, keyId: string, idempotencyKey: string], KeyCallerRow>(
  'api_key.rotated_caller',
  callersSql(`status = 'rotated' AND key_id = $10 AND EXISTS (
        SELECT FROM api_keys successor
          JOIN idempotency_keys bound ON bound.org_id = successor.org_id AND bound.resource_id = successor.key_id
          JOIN idempotency_secrets answer ON answer.org_id = bound.org_id AND answer.key = bound.key
         WHERE successor.key_id = api_keys.rotated_to AND successor.created_by = api_keys.key_id
           AND bound.key = $11 AND answer.expires_at > $2::timestamptz)`),
);

/** A key as it is presented. */
export type Presented = {
  /** One for each pepper. */
  readonly keyHashes: readonly Buffer[];
  /** Of the client, whole; null when it is unknown, which only a key without `allowed_cidrs` allows. */
  readonly address: string | null;
  /** What limits know the client by. */
  readonly limitKey: string;
  /** What its requests cost. */
  readonly cost: number;
};

/** When keys are presented, and where. */
export type Presentation = Pick<Count, 'windowSeconds'> & {
  readonly environment: EnvironmentName;
  readonly now: Date;
  /** A key that was last used before this is due to be touched. */
  readonly touchedBefore: Date;
};

/**
 * Finds valid keys and counts their requests for their organizations and addresses, in one round trip. An invalid key is
 * not counted, and neither is one from an address that it does not allow.
 *
 * @returns one entry for each, in their order: what was used after all of them
 */
export async function authenticateApiKeys(
  db: Queryable,
  presented: readonly Presented[],
  presentation: Presentation,
): Promise<(KeyCaller | undefined)[]> {
  const rows = await callersStatement(db, ...callersParameters(presented, presentation));
  const found = new Map(rows.map((row) => [row.place, row]));
  return presented.map((_, index) => toCaller(found.get(index + 1)));
}

/** As `authenticateApiKeys`, for a key that repeats its own rotation `keyId` with the idempotency key of that. */
export async function authenticateRotatedKey(
  db: Queryable,
  presented: Presented,
  presentation: Presentation,
  repeated: { readonly keyId: string; readonly idempotencyKey: string },
): Promise<KeyCaller | undefined> {
  const parameters = callersParameters([presented], presentation);
  const [row] = await rotatedCallerStatement(db, ...parameters, repeated.keyId, repeated.idempotencyKey);
  return toCaller(row);
}

const callersParameters = (
  presented: readonly Presented[],
  { environment, now, touchedBefore, windowSeconds }: Presentation,
): CallersParameters => [
  environment,
  now.toISOString(),
  touchedBefore.toISOString(),
  windowSeconds,
  presented.flatMap(({ keyHashes }) => keyHashes),
  presented[0]?.keyHashes.length ?? 0,
  presented.map(({ address }) => address),
  presented.map(({ limitKey }) => addressCaller(limitKey)),
  presented.map(({ cost }) => cost),
];

const toCaller = (row: KeyCallerRow | undefined): KeyCaller | undefined =>
  row && {
    keyId: row.key_id,
    orgId: row.org_id,
    scope: row.scope,
    isSuspended: row.is_suspended,
    allowance: { tier: row.tier, limits: row.limits },
    isTouchDue: row.is_touch_due,
    counted: countedOf(row),
  };

// The two windows begin together.
const countedOf = ({ used, used_by_address: byAddress, reset_seconds: resetSeconds }: KeyCallerRow) =>
  used === null || byAddress === null || resetSeconds === null
    ? null
    : { organization: { used, resetSeconds }, address: { used: byAddress, resetSeconds } };

/**
 * Stores when the key was last used and from which network, and its hash under the current pepper. The caller limits
 * how often.
 */
export async function touchApiKey(
  db: Queryable,
  { orgId, keyId }: Pick<ApiKey, 'orgId' | 'keyId'>,
  { at, from }: { readonly at: Date; readonly from: string },
  hashed: Partial<Pick<NewApiKey, 'keyHash' | 'pepperId'>> = {},
): Promise<void> {
  await db
    .update(apiKeys)
    .set({
      lastUsedAt: sql`greatest(${apiKeys.lastUsedAt}, ${apiKeys.createdAt}, ${at.toISOString()}::timestamptz)`,
      lastUsedFrom: from,
      ...hashed,
    })
    .where(owned(orgId, keyId));
}

/** Writes a new active key. */
export async function insertApiKey(tx: Tx, orgId: string, { keyHash, pepperId, ...key }: NewApiKey): Promise<ApiKey> {
  const unused = { status: 'active', lastUsedAt: null, lastUsedFrom: null, revokedAt: null, rotatedTo: null } as const;
  const stored: ApiKey = { ...key, orgId, ...unused };
  await tx
    .insert(apiKeys)
    .values({ ...stored, allowedCidrs: key.allowedCidrs && [...key.allowedCidrs], keyHash, pepperId });
  return stored;
}

/** @throws DomainError `not_found`, for another organization's key as well */
export async function getApiKey(db: Queryable, orgId: string, keyId: string): Promise<ApiKey> {
  const [row] = await db.select().from(apiKeys).where(owned(orgId, keyId)).limit(1);
  if (!row) throw new DomainError('not_found');
  return toApiKey(row);
}

/** Every key the organization ever had, newest first. */
export async function listApiKeys(db: Database, orgId: string, page: Page): Promise<Paged<ApiKey>> {
  const list: List<ApiKeyRow> = {
    table: apiKeys,
    where: eq(apiKeys.orgId, orgId),
    createdAt: apiKeys.createdAt,
    id: apiKeys.keyId,
    cursorOf: ({ createdAt: at, keyId: id }) => ({ at, id }),
  };
  const paged = await readPage(db, list, page, pageOf(db.select().from(apiKeys).$dynamic()));
  return { ...paged, items: paged.items.map(toApiKey) };
}

/** How many valid keys are hashed with each pepper. */
export async function countKeysByPepper(
  db: Queryable,
  at: Date,
): Promise<{ readonly pepperId: string; readonly count: number }[]> {
  return await db
    .select({ pepperId: apiKeys.pepperId, count: count() })
    .from(apiKeys)
    .where(isWorking(at))
    .groupBy(apiKeys.pepperId);
}

/** How many keys of the organization are valid at `at`. */
export async function countActiveKeys(db: Queryable, orgId: string, at: Date): Promise<number> {
  const [row] = await db
    .select({ count: count() })
    .from(apiKeys)
    .where(and(eq(apiKeys.orgId, orgId), isWorking(at)));
  return row?.count ?? 0;
}

/**
 * The valid keys that this key or one of its predecessors made, and what those made, and so on; successors count as
 * made by both the key that they replace and the one that rotated it. The oldest first. The key itself is not among
 * them.
 */
export async function listDescendants(tx: Tx, orgId: string, keyId: string, at: Date): Promise<ApiKey[]> {
  const descends = sql`${apiKeys.keyId} IN (
    WITH RECURSIVE root AS (
      SELECT key_id FROM api_keys WHERE org_id = ${orgId} AND key_id = ${keyId}
       UNION SELECT key.key_id FROM root JOIN api_keys key ON key.rotated_to = root.key_id
    ), line AS (
      SELECT key_id FROM root
       UNION SELECT made.key_id FROM line
               JOIN LATERAL (
                 SELECT key_id FROM api_keys WHERE created_by = line.key_id
                  UNION SELECT rotated_to FROM api_keys WHERE key_id = line.key_id AND rotated_to IS NOT NULL
               ) made ON true
    )
    SELECT key_id FROM line)`;
  const rows = await tx
    .select()
    .from(apiKeys)
    .where(and(eq(apiKeys.orgId, orgId), ne(apiKeys.keyId, keyId), isWorking(at), descends))
    .orderBy(apiKeys.createdAt, apiKeys.keyId)
    .limit(ACTIVE_KEYS_MAX);
  return rows.map(toApiKey);
}

/** Whether the organization has a key of scope `full` that is valid at `at`, besides these. */
export async function hasOtherFullKey(
  db: Queryable,
  orgId: string,
  keyIds: readonly string[],
  at: Date,
): Promise<boolean> {
  const [row] = await db
    .select({ keyId: apiKeys.keyId })
    .from(apiKeys)
    .where(
      and(eq(apiKeys.orgId, orgId), notInArray(apiKeys.keyId, [...keyIds]), eq(apiKeys.scope, 'full'), isWorking(at)),
    )
    .limit(1);
  return row !== undefined;
}

/** Marks a key as replaced by another one. The caller holds the organization's lock and has read the key under it. */
export async function setApiKeyRotated(tx: Tx, key: ApiKey, rotatedTo: string): Promise<ApiKey> {
  const rotated = { status: 'rotated', rotatedTo } as const;
  await tx.update(apiKeys).set(rotated).where(owned(key.orgId, key.keyId));
  return { ...key, ...rotated };
}

/** As `setApiKeyRotated`, for a key that gets no successor. */
export async function setApiKeyRevoked(tx: Tx, key: ApiKey, at: Date): Promise<ApiKey> {
  const revoked = { status: 'revoked', revokedAt: notBefore(at, key.createdAt) } as const;
  await tx.update(apiKeys).set(revoked).where(owned(key.orgId, key.keyId));
  return { ...key, ...revoked };
}
