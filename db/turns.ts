/**
 * Turns between tenants, as a rule without I/O: a fixed number of seats, and a queue for each tenant. A seat is never
 * free while somebody waits, so a tenant that is alone may take all of them. Otherwise the tenants are served in turn:
 * the only waiting request of a tenant waits for at most one request of each other tenant.
 */
export type TurnLimits = {
  readonly seats: number;
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
  /** Gives up a seat. */
  leave(): void;
  /** How many wait. */
  waiting(): number;
};

export function createTurns({ seats, waitingMaxOfTenant, waitingMax }: TurnLimits): Turns {
  /** The tenants with somebody waiting, in the order of their turns. */
  const queues = new Map<string, Set<() => void>>();
  let free = seats;
  let waiting = 0;

  const remove = (tenant: string, queue: Set<() => void>, begin: () => void): void => {
    if (!queue.delete(begin)) return;
    waiting -= 1;
    if (queue.size === 0) queues.delete(tenant);
  };
  const next = (): (() => void) | undefined => {
    for (const [tenant, queue] of queues) {
      const [begin] = queue;
      if (!begin) continue;
      remove(tenant, queue, begin);
      // To the end: every other tenant that waits comes before its next request.
      if (queues.delete(tenant)) queues.set(tenant, queue);
      return begin;
    }
    return undefined;
  };
  return {
    take(tenant, begin) {
      if (free > 0) {
        free -= 1;
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
    leave() {
      const begin = next();
      if (begin) begin();
      else free += 1;
    },
    waiting: () => waiting,
  };
}
