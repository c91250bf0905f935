/**
 * Failures by client address: failed authentications (contract §2), and unknown addresses and methods. An address that
 * fails too often is refused before the database is asked. The counts are kept in this process's memory: counting in
 * the database would cost what it should save. Windows are by the monotonic clock: a clock that is set back prolongs
 * none.
 */
import type { Budget, Counted } from '../../domain/rate-limit.ts';

/**
 * Addresses that are counted at once. Beyond this number the oldest are forgotten, so that an attacker cannot fill the
 * memory.
 */
const ADDRESSES_MAX = 50_000;

export type FailureCount = {
  /** @returns what the address has used of the budget then */
  add(address: string): Counted;
  /** What the address has used of the budget; undefined when it has not failed in this window. */
  of(address: string): Counted | undefined;
};

export function createFailureCount({ windowSeconds }: Pick<Budget, 'windowSeconds'>): FailureCount {
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
    add(address) {
      const count = current(address) ?? { endsAtMs: performance.now() + windowMs, used: 0 };
      count.used += 1;
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
