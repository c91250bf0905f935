/**
 * How long a seat of a request of low priority rests after it: as long as that request took, while requests of other
 * priority come from another address. So a burst of lists leaves them about half of the process, and takes all of it
 * when there are none.
 */

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
    after(address: string, tookMs: number): number {
      const { atMs } = address === latest.address ? other : latest;
      return clock() - atMs > HEARD_MS ? 0 : Math.min(tookMs, REST_MAX_MS);
    },
  };
}
