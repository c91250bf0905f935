/**
 * Wakes the requests that wait for a settlement to change. One connection of the process listens for the notifications
 * that PostgreSQL sends with each commit. A notification can be missed while the connection is being opened again, so a
 * waiting request must also read from time to time.
 */
import pg from 'pg';

export type ChangeListener = {
  /** Calls `onChange` after each change of this settlement, until the returned function is called. */
  subscribe(settlementId: string, onChange: () => void): () => void;
  close(): Promise<void>;
};

const CONNECT_TIMEOUT_MS = 3_000;
const RECONNECT_DELAY_MS = 1_000;

/**
 * Connects when something waits for the first time.
 *
 * @param onError is called when the connection breaks or cannot be opened; it is opened again
 */
export function createChangeListener(databaseUrl: string, onError: (error: Error) => void): ChangeListener {
  const waiting = new Map<string, Set<() => void>>();
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const retryLater = (broken: pg.Client) => (error: Error) => {
    if (client !== broken || isClosed) return;
    client = undefined;
    onError(error);
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
      .then(() => opened.query('LISTEN settlement_changed'))
      .catch(onBroken);
  }

  return {
    subscribe(settlementId, onChange) {
      listen();
      const others = waiting.get(settlementId) ?? new Set();
      waiting.set(settlementId, others.add(onChange));
      return () => {
        others.delete(onChange);
        if (others.size === 0 && waiting.get(settlementId) === others) waiting.delete(settlementId);
      };
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}
