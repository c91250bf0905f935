/**
 * Looks API keys up and counts their requests. Requests with one key that arrive together share a statement: while one
 * runs, those that arrive wait, and the next statement serves all of them. Nothing is cached for later requests, and no
 * request is answered by a statement that began before it arrived, so a revoked key is refused at once.
 */
import { inGroups } from '../../db/group.ts';
import {
  authenticateApiKey,
  authenticateRotatedKey,
  type KeyCaller,
  type Presented,
} from '../../db/queries/api-key.ts';
import { addressTenant, asTenant } from '../../db/tenant.ts';
import type { Counted } from '../../domain/rate-limit.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';

/** How far `last_used_at` of a key may lag behind. */
const TOUCH_INTERVAL_MS = 60_000;
/** Keys whose organizations are remembered at once. Beyond this number the oldest are forgotten. */
const ORGANIZATIONS_MAX = 50_000;

/** A key as it was presented: its hash under each pepper, and the client's address. */
export type PresentedKey = Pick<Presented, 'keyHashes' | 'address' | 'limitKey'>;

/** Both return undefined for an invalid key, and reject when PostgreSQL cannot be read. */
export type KeyLookup = {
  find(presented: PresentedKey, cost: number): Promise<KeyCaller | undefined>;
  /** A key that repeats its own rotation. */
  findRotated(
    presented: PresentedKey,
    cost: number,
    repeated: { readonly keyId: string; readonly idempotencyKey: string },
  ): Promise<KeyCaller | undefined>;
};

type Lookup = { readonly id: string; readonly presented: PresentedKey; readonly cost: number };

/** @param windowSeconds the window in which requests are counted */
export function createKeyLookup(
  { db, runtime, now }: Pick<ApiDeps, 'db' | 'runtime' | 'now'>,
  windowSeconds: number,
): KeyLookup {
  /** The organizations of keys that were found, so that the next lookup waits in its own organization's turn. */
  const organizations = new Map<string, string>();
  const remember = (id: string, { orgId }: KeyCaller): void => {
    organizations.set(id, orgId);
    const [oldest] = organizations.keys();
    if (oldest !== undefined && organizations.size > ORGANIZATIONS_MAX) organizations.delete(oldest);
  };

  const presentedNow = (presented: PresentedKey): Presented => {
    const at = now();
    const touchedBefore = new Date(at.getTime() - TOUCH_INTERVAL_MS);
    return { ...presented, environment: environmentName(runtime), now: at, touchedBefore };
  };
  const lookUp = inGroups<Lookup, KeyCaller | undefined>(async (queried, together) => {
    const [{ id, presented }] = together;
    const cost = together.reduce((sum, waiting) => sum + waiting.cost, 0);
    const found = await asTenant(organizations.get(id) ?? addressTenant(presented.limitKey), () =>
      authenticateApiKey(queried, presentedNow(presented), { windowSeconds, cost }),
    );
    if (found) remember(id, found);
    return shareOut(found, together);
  });

  return {
    find: (presented, cost) => {
      const id = `${presented.keyHashes[0]?.toString('latin1')} ${presented.address}`;
      return lookUp(db, id, { id, presented, cost });
    },
    findRotated: (presented, cost, repeated) =>
      asTenant(addressTenant(presented.limitKey), () =>
        authenticateRotatedKey(db, presentedNow(presented), { windowSeconds, cost }, repeated),
      ),
  };
}

const before = (counted: Counted, later: number): Counted => ({ ...counted, used: counted.used - later });

/** Each request has used as much as those before it and itself. The first one touches the key. */
function shareOut(found: KeyCaller | undefined, together: readonly Lookup[]): readonly (KeyCaller | undefined)[] {
  let later = together.reduce((sum, { cost }) => sum + cost, 0);
  return together.map(({ cost }, index) => {
    later -= cost;
    return (
      found && {
        ...found,
        isTouchDue: found.isTouchDue && index === 0,
        counted: found.counted && {
          organization: before(found.counted.organization, later),
          address: before(found.counted.address, later),
        },
      }
    );
  });
}
