/**
 * How long a seat stays empty after a request of low priority, while another address sends payments or single reads: as
 * long as a list took, or three times as long as a change took. So a burst of lists leaves about half of the process to
 * the others. Without others it may use all of it.
 */

/** The rest is so many times as long as the request. The event of a change is delivered after its answer. */
const FACTORS = { read: 1, change: 3 } as const;

/** After so long without a request, an address counts no more. */
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
    after(address: string, kind: keyof typeof FACTORS, tookMs: number): number {
      const { atMs } = address === latest.address ? other : latest;
      return clock() - atMs > HEARD_MS ? 0 : Math.min(FACTORS[kind] * tookMs, REST_MAX_MS);
    },
  };
}
