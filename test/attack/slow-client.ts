/** Clients that hold a connection and send almost nothing: no request, half a request, or one byte now and then. */
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const DRIP_INTERVAL_MS = 500;
/** A signature's form is all that the API asks for before it reads this body: it asks the database nothing. */
const BODY_HEAD = [
  ...['POST /v2/webhooks/bankledger HTTP/1.1', 'Host: slow.example', 'Content-Type: application/json'],
  ...[`X-Signature: ${'a'.repeat(64)}`, 'Content-Length: 100000', '', ''],
].join('\r\n');
const KINDS = [
  { first: '', drip: '' },
  { first: 'GET /health/live HTTP/1.1\r\nHo', drip: '' },
  { first: 'GET /health/live HTTP/1.1\r\nX-Slow: ', drip: 'a' },
  { first: BODY_HEAD, drip: ' ' },
] as const;

export type SlowClients = {
  /** How many connections the server has ended, by the status of its answer; 0 means no answer. */
  readonly ended: ReadonlyMap<number, number>;
  /** How many clients are connected. */
  open(): number;
  close(): void;
};

/**
 * Opens `count` connections. Opens each again when the server ends it, until `close`.
 *
 * @param arrivalMs the time over which the clients connect, evenly; a thousand new connections at once would have a
 *   cost of their own
 */
export async function openSlowClients(
  address: { readonly host: string; readonly port: number },
  count: number,
  arrivalMs = 0,
): Promise<SlowClients> {
  const ended = new Map<number, number>();
  const sockets = new Map<number, Socket>();
  let closing = false;
  const open = (index: number, connected: () => void): void => {
    const { first } = kindOf(index);
    let text = '';
    const socket = connect(address, connected);
    // Written before the connection is open, so that it precedes every drip.
    if (first !== '') socket.write(first);
    sockets.set(index, socket);
    socket.on('data', (part: Buffer) => {
      text += part.toString('latin1');
    });
    // The server is expected to cut these clients off.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(index);
      connected();
      if (closing) return;
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
      ended.set(status, (ended.get(status) ?? 0) + 1);
      open(index, () => undefined);
    });
  };
  const arrive = async (index: number): Promise<void> => {
    await delay((arrivalMs * index) / count);
    await new Promise<void>((resolve) => open(index, resolve));
  };
  await Promise.all(Array.from({ length: count }, (_, index) => arrive(index)));
  const drip = setInterval(() => {
    for (const [index, socket] of sockets)
      if (kindOf(index).drip !== '' && socket.writable) socket.write(kindOf(index).drip);
  }, DRIP_INTERVAL_MS);
  return {
    ended,
    open: () => [...sockets.values()].filter(({ readyState }) => readyState === 'open').length,
    close: () => {
      closing = true;
      clearInterval(drip);
      for (const socket of sockets.values()) socket.destroy();
    },
  };
}

const kindOf = (index: number): (typeof KINDS)[number] => KINDS[index % KINDS.length] ?? KINDS[0];
