/**
 * In front of the API's connections stands one queue for each tenant: an organization, or the address of a caller who
 * has not named one. They are served in turn (`turns.ts`), so that one tenant's burst delays nobody else's single
 * request. What a process does for all of them together is a tenant of its own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import { DomainError, OwnBurstError } from '../domain/error.ts';
import { createTurns, type Turns } from './turns.ts';

/** Checkouts of a connection that wait at once, in one process. An organization may have more requests than these. */
export const WAITING = { maxOfTenant: 256, max: 4_096 } as const;
/** How long one waits for its turn, unless the caller says otherwise. */
const TURN_TIMEOUT_MS = 3_000;

const PROCESS = 'process';

const current = new AsyncLocalStorage<string>();

/** The tenant of callers at an address who have not said who they are. */
export const addressTenant = (limitKey: string): string => `address:${limitKey}`;

/**
 * Runs a function, and all that it starts, in the turns of this tenant: an organization's id, or an `addressTenant`.
 */
export const asTenant = <T>(tenant: string, run: () => T): T => current.run(tenant, run);

/** As `asTenant`, for what several tenants wait for: one of them must not delay it. */
export const asProcess = <T>(run: () => T): T => current.run(PROCESS, run);

type Checkout = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (reason?: Error | boolean) => void,
) => void;

/** Makes a pool give its connections to the tenants in turn. A seat is a connection. */
export function serveInTurn(pool: pg.Pool, turnTimeoutMs = TURN_TIMEOUT_MS): Turns {
  const turns = createTurns({
    seats: pool.options.max,
    waitingMaxOfTenant: WAITING.maxOfTenant,
    waitingMax: WAITING.max,
  });
  const connect = pool.connect.bind(pool);

  const checkOut = (checkout: Checkout): void => {
    const tenant = current.getStore() ?? PROCESS;
    let timer: NodeJS.Timeout | undefined;
    const begin = (): void => {
      clearTimeout(timer);
      connect((error, client, release) => {
        if (!client) {
          turns.leave();
          checkout(error, undefined, release);
          return;
        }
        const releaseOnce = client.release;
        client.release = (reason) => {
          releaseOnce(reason);
          turns.leave();
        };
        checkout(undefined, client, client.release);
      });
    };
    const taken = turns.take(tenant, begin);
    const refuse = (error: DomainError): void => checkout(error, undefined, () => undefined);
    if (taken === 'full' || (taken === 'own_full' && tenant === PROCESS))
      refuse(unavailable('Too many requests wait for the database.'));
    else if (taken === 'own_full')
      refuse(new OwnBurstError(textOf('Too many of your requests wait for the database.')));
    if (taken !== 'waits') return;
    timer = setTimeout(() => {
      turns.withdraw(tenant, begin);
      refuse(unavailable('The request waited too long for the database.'));
    }, turnTimeoutMs);
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
