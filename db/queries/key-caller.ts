/**
 * The caller that an API key names. A key is looked up by its hash at every request, without a cache, because a rotated
 * key is invalid at once; the request is counted by the same statement.
 */
import type { ApiKey } from '../../domain/api-key.ts';
import type { Allowance, OwnLimits, Tier } from '../../domain/quota.ts';
import type { Counted } from '../../domain/rate-limit.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Scope } from '../../domain/scope.ts';
import type { Queryable } from '../client.ts';
import { statement } from '../statement.ts';
import { addressCaller, type Count, countingSql, resetSecondsSql } from './rate-limit.ts';

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

/** `place` counts the presented keys from 1. */
type PlacedRow = KeyCallerRow & { readonly place: number };

const KEY_COLUMNS = 'key.key_id, key.org_id, key.scope, key.tier, key.limits, key.is_suspended, key.is_touch_due';

/** @param condition which of the keys with one of the hashes */
const foundSql = (hashes: string, address: string, condition: string): string => `
  SELECT key_id, org_id, scope, tier, limits, suspended_at IS NOT NULL AS is_suspended,
         coalesce(last_used_at < $3::timestamptz, true) AS is_touch_due,
         allowed_cidrs IS NULL OR coalesce(${address} <<= ANY (allowed_cidrs::cidr[]), false) AS is_allowed
    FROM api_keys JOIN organizations USING (org_id)
   WHERE key_hash = ANY (${hashes}) AND api_keys.environment = $1 AND ${condition}
     AND (expires_at IS NULL OR expires_at > $2::timestamptz)
   LIMIT 1`;

/** For one key. The statement for several costs half as much again. `$7` is the address, which is counted first. */
const callerSql = (condition: string): string =>
  `WITH key AS (${foundSql('$5::bytea[]', '$6::inet', condition)}),
   counted AS (${countingSql(`SELECT $7::text, $4::int, $8::int FROM key WHERE is_allowed
     UNION ALL SELECT 'org:' || org_id, $4::int, $8::int FROM key WHERE is_allowed`)})
   SELECT ${KEY_COLUMNS}, own.used, address.used AS used_by_address,
          ${resetSecondsSql('own.begun', '$4::int')} AS reset_seconds
     FROM key LEFT JOIN counted own ON own.caller <> $7 LEFT JOIN counted address ON address.caller = $7`;

/**
 * For several keys. The lengths of the arrays are hidden from the planner: a plan for a few keys looks cheaper than the
 * one that a connection keeps, so it would make one at each call.
 */
const callersSql = (condition: string): string =>
  `WITH presented AS (
     SELECT place::int, ($5::bytea[])[(place - 1) * $6 + 1 : place * $6] AS hashes, address::inet, limit_caller, cost
       FROM unnest((SELECT $7::text[]), (SELECT $8::text[]), (SELECT $9::int[])) WITH ORDINALITY
              AS given (address, limit_caller, cost, place)
   ),
   key AS (
     SELECT place, limit_caller, cost, found.* FROM presented, LATERAL (
       ${foundSql('presented.hashes', 'presented.address', condition)}
     ) found
   ),
   counted AS (${countingSql(`SELECT caller, $4::int, sum(cost)::int
     FROM key, LATERAL (VALUES (limit_caller), ('org:' || org_id)) AS callers (caller)
     WHERE is_allowed GROUP BY caller ORDER BY caller`)})
   SELECT key.place, ${KEY_COLUMNS}, own.used, address.used AS used_by_address,
          ${resetSecondsSql('own.begun', '$4::int')} AS reset_seconds
     FROM key LEFT JOIN counted own ON is_allowed AND own.caller = 'org:' || key.org_id
       LEFT JOIN counted address ON is_allowed AND address.caller = key.limit_caller`;

type PresentationParameters = [environment: EnvironmentName, now: string, touchedBefore: string, windowSeconds: number];
type CallerParameters = [
  ...PresentationParameters,
  ...[keyHashes: readonly Buffer[], address: string | null, addressCaller: string, cost: number],
];
type CallersParameters = [
  ...PresentationParameters,
  ...[keyHashes: readonly Buffer[], hashesOfEach: number],
  ...[addresses: readonly (string | null)[], addressCallers: readonly string[], costs: readonly number[]],
];

const ACTIVE = `status = 'active'`;
const callerStatement = statement<CallerParameters, KeyCallerRow>('api_key.caller', callerSql(ACTIVE));
const callersStatement = statement<CallersParameters, PlacedRow>('api_key.callers', callersSql(ACTIVE));

/** A rotated key, with the idempotency key by which it has rotated itself, while the answer is kept. */
const rotatedCallerStatement = statement<[...CallerParameters, keyId: string, idempotencyKey: string], KeyCallerRow>(
  'api_key.rotated_caller',
  callerSql(`status = 'rotated' AND key_id = $9 AND EXISTS (
        SELECT FROM api_keys successor
          JOIN idempotency_keys bound ON bound.org_id = successor.org_id AND bound.resource_id = successor.key_id
          JOIN idempotency_secrets answer ON answer.org_id = bound.org_id AND answer.key = bound.key
         WHERE successor.key_id = api_keys.rotated_to AND successor.created_by = api_keys.key_id
           AND bound.key = $10 AND answer.expires_at > $2::timestamptz)`),
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
  presented: readonly [Presented, ...(readonly Presented[])],
  presentation: Presentation,
): Promise<(KeyCaller | undefined)[]> {
  if (presented.length === 1) {
    const [row] = await callerStatement(db, ...callerParameters(presented[0], presentation));
    return [toCaller(row)];
  }
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
  const parameters = callerParameters(presented, presentation);
  const [row] = await rotatedCallerStatement(db, ...parameters, repeated.keyId, repeated.idempotencyKey);
  return toCaller(row);
}

const presentationParameters = (presentation: Presentation): PresentationParameters => [
  presentation.environment,
  presentation.now.toISOString(),
  presentation.touchedBefore.toISOString(),
  presentation.windowSeconds,
];

const callerParameters = (
  { keyHashes, address, limitKey, cost }: Presented,
  presentation: Presentation,
): CallerParameters => [...presentationParameters(presentation), keyHashes, address, addressCaller(limitKey), cost];

const callersParameters = (presented: readonly Presented[], presentation: Presentation): CallersParameters => [
  ...presentationParameters(presentation),
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
