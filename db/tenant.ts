/**
 * In front of the API's connections, and of its work of low priority, stands one queue for each tenant: an organization,
 * or the address of a caller who has not named one. They are served in turn (`turns.ts`), so that one tenant's burst
 * delays nobody else's single request. What a process does for all of them together is a tenant of its own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import { DomainError, OwnBurstError } from '../domain/error.ts';
import { createTurns, type Turns } from './turns.ts';

/** What waits at once, in one process. An organization may have more requests than these. */
export const WAITING = { waitingMaxOfTenant: 256, waitingMax: 4_096 } as const;
/** How long a statement waits for its turn, unless the caller says otherwise. */
const TURN_TIMEOUT_MS = 3_000;

const PROCESS = 'process';
const ADDRESS = 'address:';

const current = new AsyncLocalStorage<string>();

/** The tenant of callers at an address who have not said who they are. */
export const addressTenant = (limitKey: string): string => `${ADDRESS}${limitKey}`;

/** The id of the organization that is served; undefined for another tenant, and where none is named. */
export function servedOrganization(): string | undefined {
  const tenant = current.getStore();
  return tenant === PROCESS || tenant?.startsWith(ADDRESS) ? undefined : tenant;
}

/**
 * Runs a function, and all that it starts, in the turns of this tenant: an organization's id, or an `addressTenant`.
 */
export const asTenant = <T>(tenant: string, run: () => T): T => current.run(tenant, run);

/** As `asTenant`, for what several tenants wait for: one of them must not delay it. */
export const asProcess = <T>(run: () => T): T => current.run(PROCESS, run);

export type SeatRequest = {
  readonly timeoutMs: number;
  /** What is waited for, as in "The request waited too long for the database". */
  readonly subject: string;
  /** Called once there is a seat, which is then to be left. */
  readonly begin: () => void;
  /** Called in its place, when too many wait or the wait was too long. */
  readonly refuse: (error: DomainError) => void;
};

/** Takes a seat for a tenant, or waits for one. */
export function takeSeat(turns: Turns, tenant: string, { timeoutMs, subject, begin, refuse }: SeatRequest): void {
  let timer: NodeJS.Timeout | undefined;
  const beginInTime = (): void => {
    clearTimeout(timer);
    begin();
  };
  const taken = turns.take(tenant, beginInTime);
  if (taken === 'full' || (taken === 'own_full' && tenant === PROCESS))
    refuse(unavailable(`Too many requests wait for ${subject}.`));
  else if (taken === 'own_full') refuse(new OwnBurstError(textOf(`Too many of your requests wait for ${subject}.`)));
  if (taken !== 'waits') return;
  timer = setTimeout(() => {
    turns.withdraw(tenant, beginInTime);
    refuse(unavailable(`The request waited too long for ${subject}.`));
  }, timeoutMs);
}

type Checkout = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (reason?: Error | boolean) => void,
) => void;

/** Makes a pool give its connections to the tenants in turn. A seat is a connection. */
export function serveInTurn(pool: pg.Pool, turnTimeoutMs = TURN_TIMEOUT_MS): Turns {
  const seats = pool.options.max;
  const turns = createTurns({ ...WAITING, seats, seatsOfTenant: seats });
  const connect = pool.connect.bind(pool);

  const checkOut = (checkout: Checkout): void => {
    const tenant = current.getStore() ?? PROCESS;
    const begin = (): void => {
      connect((error, client, release) => {
        if (!client) {
          turns.leave(tenant);
          checkout(error, undefined, release);
          return;
        }
        const releaseOnce = client.release;
        client.release = (reason) => {
          releaseOnce(reason);
          turns.leave(tenant);
        };
        checkout(undefined, client, client.release);
      });
    };
    const refuse = (error: DomainError): void => checkout(error, undefined, () => undefined);
    takeSeat(turns, tenant, { timeoutMs: turnTimeoutMs, subject: 'the database', begin, refuse });
  };
  const checkOutPromised = (): Promise<pg.PoolClient> =>
    new Promise((resolve, reject) => {
      checkOut((error, client) => (client ? resolve(client) : reject(error)));
    });
  // The pool's own `query` connects by this function too.
  pool.connect = ((checkout?: Checkout) => (checkout ? checkOut(checkout) : checkOutPromised())) as pg.Pool['connect'];
  return turns;
}

const textOf = (cause: string): string =>
  `${cause} Repeat the request after Retry-After. With the same Idempotency-Key this is safe.`;
const unavailable = (cause: string): DomainError => new DomainError('temporarily_unavailable', {}, textOf(cause));
