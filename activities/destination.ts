/**
 * How many requests are in flight to one receiving host, over all subscriptions, organizations and lanes of a process:
 * so that many subscriptions together do not flood a host that is perhaps a stranger's. A host at its limit holds no
 * lane: its deliveries wait in the queues of their subscriptions, and are sent as places become free, in turn. The
 * subscriptions that fail have at most half of the places: many organizations may have their endpoints at one host, and
 * those that hang would take all of it.
 */
import { isLoopbackHost, targetHost } from '../domain/webhook-target.ts';
import { memoize } from './memo.ts';

/** Four times what one subscription may have. */
export const HOST_IN_FLIGHT_MAX = 128;
/** For how many URLs the host is remembered: parsing one takes as long as signing a small body. */
const URLS_MAX = 4_096;

/** Where a request goes, and whether its subscription has failed. */
export type Destination = { readonly url: string; readonly isFailing: boolean };

export type Destinations = {
  /**
   * Takes a place of the host.
   *
   * @param whenFree is called once, when this returns false and a place has become free; it may take the place
   */
  take(destination: Destination, whenFree: () => void): boolean;
  /** Gives the place back. @param destination as it was taken */
  release(destination: Destination): void;
};

type Host = { inFlight: number; failing: number; readonly waiting: Set<() => void> };

export function createDestinations(inFlightMax = HOST_IN_FLIGHT_MAX): Destinations {
  const hostOf = memoize(URLS_MAX, hostOfUrl);
  const hosts = new Map<string, Host>();
  return {
    take: ({ url, isFailing }, whenFree) => {
      const name = hostOf(url);
      const host = hosts.get(name) ?? { inFlight: 0, failing: 0, waiting: new Set() };
      if (host.inFlight >= inFlightMax || (isFailing && host.failing >= inFlightMax / 2)) {
        host.waiting.add(whenFree);
        return false;
      }
      host.inFlight += 1;
      if (isFailing) host.failing += 1;
      hosts.set(name, host);
      return true;
    },
    release: ({ url, isFailing }) => {
      const name = hostOf(url);
      const host = hosts.get(name);
      if (!host) return;
      host.inFlight -= 1;
      if (isFailing) host.failing -= 1;
      for (const next of [...host.waiting]) {
        if (host.inFlight >= inFlightMax) return;
        host.waiting.delete(next);
        next();
      }
      if (host.inFlight === 0 && host.waiting.size === 0) hosts.delete(name);
    },
  };
}

/** All ports of a host count together. On this machine, where only the local sandbox sends, each is a receiver. */
function hostOfUrl(text: string): string {
  const url = new URL(text);
  const name = targetHost(url);
  return isLoopbackHost(name) ? url.host : name;
}
