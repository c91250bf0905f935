/**
 * Looks API keys up and counts their requests. Those that arrive together share a statement: while one runs, the others
 * wait, and the next statement serves all of them. Nothing is cached for later requests, and no request is answered by a
 * statement that began before it arrived, so a revoked key is refused at once.
 *
 * The requests with one key from one address wait for each other first, so that the statement for all keys has each once,
 * however many requests its owner sends. A key that this process has not found lately waits in the turn of its address.
 */
import { type Database, isRefused } from '../../db/client.ts';
import { inGroups } from '../../db/group.ts';
import {
  authenticateApiKeys,
  authenticateRotatedKey,
  type KeyCaller,
  type Presentation,
  type Presented,
} from '../../db/queries/key-caller.ts';
import { addressTenant, asTenant } from '../../db/tenant.ts';
import type { Counted } from '../../domain/rate-limit.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';

/** How far `last_used_at` of a key may lag behind. */
const TOUCH_INTERVAL_MS = 60_000;
/** How many keys one statement looks up at most. */
const KEYS_TOGETHER_MAX = 128;
/** Keys of several addresses wait in a turn of their own. */
const SEVERAL = addressTenant('several');

/** Both return undefined for an invalid key, and reject when PostgreSQL cannot be read. */
export type KeyLookup = {
  /** @param isKnown whether the key was found lately, from this address */
  find(presented: Presented, isKnown: boolean): Promise<KeyCaller | undefined>;
  /** A key that repeats its own rotation. */
  findRotated(
    presented: Presented,
    repeated: { readonly keyId: string; readonly idempotencyKey: string },
  ): Promise<KeyCaller | undefined>;
};

/** @param windowSeconds the window in which requests are counted */
export function createKeyLookup(
  { db, runtime, now }: Pick<ApiDeps, 'db' | 'runtime' | 'now'>,
  windowSeconds: number,
): KeyLookup {
  const presentation = (): Presentation => {
    const at = now();
    const touchedBefore = new Date(at.getTime() - TOUCH_INTERVAL_MS);
    return { environment: environmentName(runtime), now: at, touchedBefore, windowSeconds };
  };
  const inTurnOfAddress = <Result>({ limitKey }: Presented, run: () => Result): Result =>
    asTenant(addressTenant(limitKey), run);

  const findAlone = async (queried: Database, key: Presented): Promise<KeyCaller | undefined> => {
    const [found] = await inTurnOfAddress(key, () => authenticateApiKeys(queried, [key], presentation()));
    return found;
  };
  const findKnown = inGroups<Presented, KeyCaller | undefined>(
    async (queried, keys) => {
      const found = await asTenant(SEVERAL, () => authenticateApiKeys(queried, keys, presentation()));
      return shareOut(keys, found);
    },
    { sizeMax: KEYS_TOGETHER_MAX },
  );
  /** Another key may be the reason of a refusal. Those that come next do not wait for the repetition. */
  const findTogether = (queried: Database, key: Presented): Promise<KeyCaller | undefined> =>
    findKnown(queried, '', key).catch((error: unknown) => {
      if (!isRefused(error)) throw error;
      return findAlone(queried, key);
    });
  const findOfKey = inGroups<Presented & { readonly isKnown: boolean }, KeyCaller | undefined>(
    async (queried, requests) => {
      const [first] = requests;
      const key = { ...first, cost: requests.reduce((sum, { cost }) => sum + cost, 0) };
      const found = await (first.isKnown ? findTogether(queried, key) : findAlone(queried, key));
      const shares = shareOut(
        requests,
        requests.map(() => found),
      );
      // The first one touches the key.
      return shares.map((share, index) => share && { ...share, isTouchDue: share.isTouchDue && index === 0 });
    },
  );
  return {
    find: (presented, isKnown) =>
      findOfKey(db, `${presented.keyHashes[0]?.toString('latin1')} ${presented.address}`, { ...presented, isKnown }),
    findRotated: (presented, repeated) =>
      inTurnOfAddress(presented, () => authenticateRotatedKey(db, presented, presentation(), repeated)),
  };
}

/** Of what was used after all of them: each has used as much as those before it and itself. */
function shareOut(
  presented: readonly Presented[],
  found: readonly (KeyCaller | undefined)[],
): (KeyCaller | undefined)[] {
  const laterOf = new Map<string, number>();
  const share = (caller: string, cost: number, counted: Counted): Counted => {
    const later = laterOf.get(caller) ?? 0;
    laterOf.set(caller, later + cost);
    return { ...counted, used: counted.used - later };
  };
  const shareOf = ({ cost, limitKey }: Presented, caller: KeyCaller | undefined): KeyCaller | undefined =>
    caller?.counted
      ? {
          ...caller,
          counted: {
            organization: share(caller.orgId, cost, caller.counted.organization),
            address: share(addressTenant(limitKey), cost, caller.counted.address),
          },
        }
      : caller;
  return presented
    .map((each, index) => ({ each, caller: found[index] }))
    .toReversed()
    .map(({ each, caller }) => shareOf(each, caller))
    .toReversed();
}
