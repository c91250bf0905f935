/**
 * Turns between tenants, as a rule without I/O: a fixed number of seats, and a queue for each tenant. A seat is never
 * free while somebody waits who may have it. The tenants are served in turn: the only waiting request of a tenant that
 * may have a seat waits for at most one request of each other tenant.
 */
import { createPlaces } from './places.ts';

export type TurnLimits = {
  readonly seats: number;
  /** How many of them one tenant may have at once. */
  readonly seatsOfTenant: number;
  /** Requests that wait at once, of one tenant and of all. */
  readonly waitingMaxOfTenant: number;
  readonly waitingMax: number;
};

export type Turns = {
  /**
   * Asks for a seat. `begin` is called once there is one, and then `leave` must be called.
   *
   * @returns `full`, or `own_full` when as many of this tenant wait as may: `begin` is never called
   */
  take(tenant: string, begin: () => void): 'begun' | 'waits' | 'full' | 'own_full';
  /** Gives up a place in the queue. */
  withdraw(tenant: string, begin: () => void): void;
  /** Gives up a seat of this tenant. */
  leave(tenant: string): void;
  /** How many wait. */
  waiting(): number;
};

export function createTurns({ seats, seatsOfTenant, waitingMaxOfTenant, waitingMax }: TurnLimits): Turns {
  /** The tenants with somebody waiting, in the order of their turns. */
  const queues = new Map<string, Set<() => void>>();
  const places = createPlaces(seatsOfTenant);
  let free = seats;
  let waiting = 0;

  const remove = (tenant: string, queue: Set<() => void>, begin: () => void): void => {
    if (!queue.delete(begin)) return;
    waiting -= 1;
    if (queue.size === 0) queues.delete(tenant);
  };
  /** @returns false when there is no seat that the tenant may have */
  const sit = (tenant: string): boolean => {
    if (free === 0 || !places.enter(tenant)) return false;
    free -= 1;
    return true;
  };
  const seatNext = (): void => {
    for (const [tenant, queue] of queues) {
      const [begin] = queue;
      if (!begin || !sit(tenant)) continue;
      remove(tenant, queue, begin);
      // To the end: every other tenant that waits comes before its next request.
      if (queues.delete(tenant)) queues.set(tenant, queue);
      begin();
      return;
    }
  };
  return {
    take(tenant, begin) {
      if (sit(tenant)) {
        begin();
        return 'begun';
      }
      const queue = queues.get(tenant) ?? new Set();
      if (queue.size >= waitingMaxOfTenant) return 'own_full';
      if (waiting >= waitingMax) return 'full';
      queues.set(tenant, queue.add(begin));
      waiting += 1;
      return 'waits';
    },
    withdraw(tenant, begin) {
      const queue = queues.get(tenant);
      if (queue) remove(tenant, queue, begin);
    },
    leave(tenant) {
      free += 1;
      places.leave(tenant);
      seatNext();
    },
    waiting: () => waiting,
  };
}
