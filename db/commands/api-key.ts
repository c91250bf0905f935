/**
 * Management of an organization's keys (contract §3). Every change locks the organization's row. Where one key acts on
 * another, it is checked again under that lock that the acting key is still valid: a revoked key changes nothing.
 */
import { type ApiKey, apiKeyStatus, excessOf, FIRST_KEY_NAME, type KeyLimits } from '../../domain/api-key.ts';
import { notBefore } from '../../domain/clock.ts';
import { DomainError, requireNoFaults, stateConflict } from '../../domain/error.ts';
import { requireRoom } from '../../domain/quota.ts';
import { apiKeyResource } from '../../domain/resource/api-key.ts';
import type { Tx } from '../client.ts';
import {
  type ApiKeyCredential,
  countActiveKeys,
  getApiKey,
  hasOtherFullKey,
  insertApiKey,
  listDescendants,
  setApiKeyRevoked,
  setApiKeyRotated,
} from '../queries/api-key.ts';
import { insertAuditEntries, type OperatorAct } from '../queries/audit.ts';
import { recordEvent, type Stamp } from '../queries/event.ts';
import type { Answer } from '../queries/idempotency-key.ts';
import { lockOrganization } from '../queries/organization.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';
import { type Creation, type CreationDeps, commitCreation } from './creation.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'now'>;

/** The keys that the caller creates are descendants too, so to create another key does not help. */
const OWN_DESCENDANT =
  'It would also revoke your own key, and leave no other active key with scope full. Revoke the others one by one.';

/** The key that the request was sent with. */
type Caller = Pick<ApiKey, 'orgId' | 'keyId'> & Pick<Stamp, 'requestId'>;

const EXCEEDS_CALLER =
  'The key has a later expiry or more addresses than your key, which may get neither it nor its successor. ' +
  'Use a key with its limits.';

/**
 * Creates a key for the caller's organization. Limits that are null are those of the caller's key.
 *
 * @param wanted `credential` is a new one, whose raw key only its owner gets
 * @throws ValidationError when the key would exceed the caller's
 * @throws DomainError `credential_invalid` when the caller's key has become invalid; `quota_exceeded` when the
 *   organization has as many valid keys as it may have; `idempotency_key_reused`; `state_conflict` for a repeated
 *   request whose key exceeds the caller's
 */
export async function createApiKey(
  deps: CreationDeps,
  caller: Caller,
  { credential, ...wanted }: Pick<ApiKey, 'name'> & KeyLimits & { readonly credential: ApiKeyCredential },
  creation: Creation<ApiKey>,
): Promise<Answer> {
  const createdAt = deps.now();
  const admitReplay = admitReplayTo(caller, createdAt);
  const declared = { ...creation, name: 'api_key.create', hasSecret: true, admitReplay } as const;
  return await commitCreation(deps, declared, async (tx) => {
    const organization = await lockOrganization(tx, caller.orgId);
    const creator = await getValidCaller(tx, caller, createdAt);
    const key = {
      ...wanted,
      expiresAt: wanted.expiresAt ?? creator.expiresAt,
      allowedCidrs: wanted.allowedCidrs ?? creator.allowedCidrs,
    };
    requireNoFaults(excessOf(key, creator));
    requireRoom(organization, 'api_keys', await countActiveKeys(tx, caller.orgId, createdAt));
    const created = await insertApiKey(tx, caller.orgId, {
      ...credential,
      ...key,
      allowedCidrs: key.allowedCidrs && [...new Set(key.allowedCidrs)],
      createdAt,
      createdBy: creator.keyId,
    });
    await recordKeyEvent(tx, created, 'api_key.created', { at: createdAt, requestId: caller.requestId });
    return { id: created.keyId, created };
  });
}

/**
 * Replaces an active key by a new one with the same name, scope, expiry and allowed addresses. A key has at most one
 * successor: of two rotations at the same moment, the second finds the key rotated.
 *
 * @returns the answer with the new key
 * @throws DomainError `not_found`, `credential_invalid`; `state_conflict` when the key is not active, or has fewer
 *   limits than the caller's, which would get the successor; `idempotency_key_reused`
 */
export async function rotateApiKey(
  deps: CreationDeps,
  caller: Caller,
  { keyId, credential }: { readonly keyId: string; readonly credential: ApiKeyCredential },
  creation: Creation<ApiKey>,
): Promise<Answer> {
  const now = deps.now();
  // A key that has rotated itself may see its successor, which has its limits.
  const admitReplay = keyId === caller.keyId ? undefined : admitReplayTo(caller, now);
  const declared = { ...creation, name: 'api_key.rotate', hasSecret: true, admitReplay } as const;
  return await commitCreation(deps, declared, async (tx) => {
    const { key, other } = await lockKey(tx, caller, keyId, now);
    const status = apiKeyStatus(key, now);
    if (status !== 'active') throw stateConflict(status, 'Only an active key can be rotated.');
    if (other) requireWithin(key, other);
    // The expiry and the addresses stay: otherwise a limited key could remove its own limits.
    const { name, scope, expiresAt, allowedCidrs } = key;
    const createdAt = notBefore(now, key.createdAt);
    const successor = await insertApiKey(tx, key.orgId, {
      ...credential,
      name,
      scope,
      expiresAt,
      allowedCidrs,
      createdAt,
      createdBy: caller.keyId,
    });
    const rotated = await setApiKeyRotated(tx, key, successor.keyId);
    await recordKeyEvent(tx, rotated, 'api_key.rotated', { at: createdAt, requestId: caller.requestId });
    return { id: successor.keyId, created: successor };
  });
}

/** What a revocation ended. */
export type Revocation = { readonly key: ApiKey; readonly descendants: readonly ApiKey[] };

/**
 * Revokes a key permanently; a revoked key stays as it is.
 *
 * @param withDescendants also revokes the valid keys that the key made, those that they made, and so on; those that
 *   took its place are among them
 * @throws DomainError `not_found`, `credential_invalid`; `state_conflict` for a rotated key alone; `last_full_key`
 */
export async function revokeApiKey(
  deps: Deps,
  caller: Caller,
  keyId: string,
  withDescendants: boolean,
): Promise<Revocation> {
  const at = deps.now();
  return await commit(deps, 'api_key.revoke', async (tx) => {
    const { key } = await lockKey(tx, caller, keyId, at);
    // A key that revokes itself with its descendants acts on other keys too.
    if (withDescendants) await getValidCaller(tx, caller, at);
    // Refused, because the caller wants this key to have no valid successor.
    if (key.status === 'rotated' && !withDescendants) {
      throw stateConflict(
        'rotated',
        'The key was rotated and is invalid. Revoke the key that took its place, or this one with descendants=true.',
        { rotated_to: key.rotatedTo },
      );
    }
    const descendants = withDescendants ? await listDescendants(tx, key.orgId, keyId, at) : [];
    const ending = key.status === 'active' ? [key, ...descendants] : descendants;
    const endsFullKey = ending.some(({ scope }) => scope === 'full');
    const endingIds = ending.map((ended) => ended.keyId);
    if (endsFullKey && !(await hasOtherFullKey(tx, key.orgId, endingIds, at)))
      throw new DomainError('last_full_key', {}, withDescendants ? OWN_DESCENDANT : undefined);
    const revoked = await endKeys(tx, ending, { at, requestId: caller.requestId });
    return {
      key: revoked.find((ended) => ended.keyId === keyId) ?? key,
      descendants: revoked.filter((ended) => ended.keyId !== keyId),
    };
  });
}

/**
 * Revokes a key for an operator, with everything that it made unless `isAlone`: also the last key of scope `full`,
 * because a leaked one must end.
 *
 * @returns what was valid and is revoked now, and whether the organization still has a key of scope `full`
 * @throws DomainError `not_found`; `state_conflict` when nothing of it is valid
 */
export async function revokeApiKeyAsOperator(
  deps: Deps,
  { keyId, orgId, isAlone }: Pick<ApiKey, 'keyId' | 'orgId'> & { readonly isAlone: boolean },
  { operator, note, requestId }: OperatorAct,
): Promise<{ readonly revoked: readonly ApiKey[]; readonly hasFullKey: boolean }> {
  const at = deps.now();
  return await commit(deps, 'api_key.revoke_as_operator', async (tx) => {
    await lockOrganization(tx, orgId);
    const key = await getApiKey(tx, orgId, keyId);
    const status = apiKeyStatus(key, at);
    const descendants = isAlone ? [] : await listDescendants(tx, orgId, keyId, at);
    const ending = status === 'active' ? [key, ...descendants] : descendants;
    if (ending.length === 0) throw stateConflict(status, `The key is ${status}. Nothing is left to revoke.`);
    const revoked = await endKeys(tx, ending, { at, requestId });
    const hasFullKey = await hasOtherFullKey(tx, orgId, [keyId], at);
    const act = { action: 'key_revoke', operator, note, at, orgId } as const;
    await insertAuditEntries(
      tx,
      ending.map((ended) => ({ ...act, objectId: ended.keyId })),
    );
    return { revoked, hasFullKey };
  });
}

/** Revokes keys under their organization's lock, and reports each. */
async function endKeys(tx: Tx, ending: readonly ApiKey[], stamp: Stamp): Promise<ApiKey[]> {
  const revoked: ApiKey[] = [];
  for (const ended of ending) {
    const now = await setApiKeyRevoked(tx, ended, stamp.at);
    await recordKeyEvent(tx, now, 'api_key.revoked', stamp);
    revoked.push(now);
  }
  return revoked;
}

/** Writes a full key that no other key has created and that does not expire: a first or a reissued one. */
export async function createFullKey(
  tx: Tx,
  orgId: string,
  credential: ApiKeyCredential,
  { at: createdAt, requestId }: Stamp,
): Promise<string> {
  const limits = { scope: 'full', expiresAt: null, allowedCidrs: null } as const;
  const key = { ...credential, ...limits, name: FIRST_KEY_NAME, createdBy: null, createdAt };
  const created = await insertApiKey(tx, orgId, key);
  await recordKeyEvent(tx, created, 'api_key.created', { at: createdAt, requestId });
  return created.keyId;
}

/**
 * Reports every change of its keys to the owner, whichever key made it. So the owner notices a leaked key that rotates
 * itself. The event has no secret.
 */
const recordKeyEvent = (
  tx: Tx,
  key: ApiKey,
  type: 'api_key.created' | 'api_key.rotated' | 'api_key.revoked',
  stamp: Stamp,
): Promise<string> =>
  recordEvent(tx, {
    orgId: key.orgId,
    objectType: 'api_key',
    objectId: key.keyId,
    type,
    data: apiKeyResource(key, stamp.at),
    ...stamp,
  });

/**
 * Reads a key under its organization's lock. A key may act on itself until it is revoked: if it was rotated meanwhile,
 * the refusal says that. On another key it acts only while it is valid.
 *
 * @returns `other` is the caller's key where it is another one
 */
async function lockKey(
  tx: Tx,
  caller: Caller,
  keyId: string,
  now: Date,
): Promise<{ readonly key: ApiKey; readonly other: ApiKey | undefined }> {
  await lockOrganization(tx, caller.orgId);
  const other = keyId === caller.keyId ? undefined : await getValidCaller(tx, caller, now);
  const key = await getApiKey(tx, caller.orgId, keyId);
  if (!other && key.status === 'revoked') throw new DomainError('credential_invalid');
  return { key, other };
}

/**
 * An answer that shows a key is repeated only for a key that could have made it: a valid one without further limits.
 * Nothing is written, so no lock is needed: the answer is as if it had been sent just before a revocation.
 */
const admitReplayTo =
  (caller: Caller, now: Date) =>
  async (tx: Tx, keyId: string): Promise<void> => {
    const own = await getValidCaller(tx, caller, now);
    requireWithin(await getApiKey(tx, caller.orgId, keyId), own);
  };

function requireWithin(key: ApiKey, own: ApiKey): void {
  if (excessOf(key, own).length > 0) throw stateConflict('exceeds_caller', EXCEEDS_CALLER);
}

/** The key was valid when the request arrived. Under the organization's lock it must still be. */
async function getValidCaller(tx: Tx, { orgId, keyId }: Pick<Caller, 'orgId' | 'keyId'>, now: Date): Promise<ApiKey> {
  const key = await getApiKey(tx, orgId, keyId);
  if (apiKeyStatus(key, now) !== 'active') throw new DomainError('credential_invalid');
  return key;
}
