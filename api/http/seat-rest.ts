/**
 * How long a seat of a request of low priority rests after it, while requests of other priority come from another
 * address: as long as a read took, three times as long as a change. So a burst of lists leaves the others about half of
 * the process, and takes all of it when there are none.
 */

/** The event of a change is delivered to up to 20 subscriptions after its answer. */
const TIMES = { read: 1, change: 3 } as const;

/** An address that has sent nothing for so long has gone. */
const HEARD_MS = 1_000;
/** The longest rest. */
export const REST_MAX_MS = 50;

export function createSeatRest(clock = () => performance.now()) {
  /** The address that was heard last, and the last one before it that was another. */
  let latest = { address: '', atMs: Number.NEGATIVE_INFINITY };
  let other = latest;
  return {
    /** This address has sent a request that is not of low priority. */
    heard(address: string): void {
      if (address !== latest.address) other = latest;
      latest = { address, atMs: clock() };
    },
    /** @returns how long the seat rests, in ms, after a request of this address that took so long */
    after(address: string, kind: keyof typeof TIMES, tookMs: number): number {
      const { atMs } = address === latest.address ? other : latest;
      return clock() - atMs > HEARD_MS ? 0 : Math.min(TIMES[kind] * tookMs, REST_MAX_MS);
    },
  };
}
