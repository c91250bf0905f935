/**
 * Counts what needs no database, by client address: failed authentications (contract §2), unknown addresses and
 * methods, and pages. The counts are in this process's memory: counting in the database would cost what it should save,
 * and pages would be refused while it is down. Windows are by the monotonic clock: a clock that is set back prolongs none.
 */
import type { Budget, Counted } from '../../domain/rate-limit.ts';

/**
 * Addresses that are counted at once. Beyond this number the oldest are forgotten, so that an attacker cannot fill the
 * memory.
 */
const ADDRESSES_MAX = 50_000;

export type AddressCount = {
  /** @returns what the address has used of the budget then */
  add(address: string, cost?: number): Counted;
  /** What the address has used of the budget; undefined when nothing was counted in this window. */
  of(address: string): Counted | undefined;
};

export function createAddressCount({ windowSeconds }: Pick<Budget, 'windowSeconds'>): AddressCount {
  const windowMs = windowSeconds * 1_000;
  const counts = new Map<string, { readonly endsAtMs: number; used: number }>();
  const countedOf = ({ endsAtMs, used }: { readonly endsAtMs: number; readonly used: number }): Counted => ({
    used,
    resetSeconds: Math.max(1, Math.ceil((endsAtMs - performance.now()) / 1_000)),
  });
  const current = (address: string) => {
    const count = counts.get(address);
    if (!count || count.endsAtMs > performance.now()) return count;
    counts.delete(address);
    return undefined;
  };
  return {
    add(address, cost = 1) {
      const count = current(address) ?? { endsAtMs: performance.now() + windowMs, used: 0 };
      count.used += cost;
      const [oldest] = counts.keys();
      if (!counts.has(address) && oldest !== undefined && counts.size >= ADDRESSES_MAX) counts.delete(oldest);
      counts.set(address, count);
      return countedOf(count);
    },
    of(address) {
      const count = current(address);
      return count && countedOf(count);
    },
  };
}
