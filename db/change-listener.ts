/**
 * Wakes what waits for a change: the requests that wait for a settlement, and the lanes that wait for deliveries. One
 * connection of the process listens for PostgreSQL's notifications on a channel. A notification can be missed while the
 * connection is being opened again, so who waits must also look from time to time.
 */
import pg from 'pg';

/** `settlement_changed` names the settlement, `deliveries_due` the number of a lane. */
export type Channel = 'settlement_changed' | 'deliveries_due';

export type ChangeListener = {
  /** Calls `onChange` after each notification about this subject, until the returned function is called. */
  subscribe(subject: string, onChange: () => void): () => void;
  close(): Promise<void>;
};

const CONNECT_TIMEOUT_MS = 3_000;
const RECONNECT_DELAY_MS = 1_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Connects when something waits for the first time.
 *
 * @param onError is called when the connection breaks or cannot be opened. It is tried again each second, and `onError`
 *   is called again only after it was open
 */
export function createChangeListener(
  databaseUrl: string,
  channel: Channel,
  onError: (error: Error) => void,
): ChangeListener {
  const waiting = new Map<string, Set<() => void>>();
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isDown = false;
  let isClosed = false;

  const retryLater = (broken: pg.Client) => (error: Error) => {
    if (client !== broken || isClosed) return;
    client = undefined;
    if (!isDown) onError(error);
    isDown = true;
    broken.end().catch(() => undefined);
    timer = setTimeout(listen, RECONNECT_DELAY_MS);
  };

  function listen(): void {
    if (client || isClosed) return;
    const opened = new pg.Client({
      connectionString: databaseUrl,
      application_name: 'settlement-changes',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      // A host that vanishes ends no connection, and the system would look for it only after two hours.
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      query_timeout: CONNECT_TIMEOUT_MS,
    });
    client = opened;
    const onBroken = retryLater(opened);
    opened.on('error', onBroken);
    opened.on('end', () => onBroken(new Error('the connection was closed')));
    opened.on('notification', ({ payload }) => {
      for (const onChange of waiting.get(payload ?? '') ?? []) onChange();
    });
    opened
      .connect()
      .then(() => opened.query(`LISTEN ${channel}`))
      .then(() => {
        isDown = false;
      })
      .catch(onBroken);
  }

  return {
    subscribe(subject, onChange) {
      listen();
      const others = waiting.get(subject) ?? new Set();
      waiting.set(subject, others.add(onChange));
      return () => {
        others.delete(onChange);
        if (others.size === 0 && waiting.get(subject) === others) waiting.delete(subject);
      };
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      // Not awaited: a server that has vanished never says that it has closed.
      client?.end().catch(() => undefined);
    },
  };
}
