/** Free TCP ports on the loopback interface. Another program may take a port before it is used, so callers retry. */
import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';

const NEIGHBOURS = 20;
const LAST = 65_535;
/** The system gives none of these to a connection, or to a server that takes any port. */
const QUIET = [11_000, 31_000] as const;

/** The wished port, or the next free one after it. Without a wish, or if all of those are taken, any quiet one. */
export async function freePort(wished = 0): Promise<number> {
  for (let port = wished; port !== 0 && port <= Math.min(wished + NEIGHBOURS, LAST); port += 1) {
    const free = await probe(port);
    if (free !== undefined) return free;
  }
  const chosen = (await probe(randomInt(...QUIET))) ?? (await probe(0));
  if (chosen === undefined) throw new Error('The system has no free port on 127.0.0.1.');
  return chosen;
}

/** Different free ports, in ascending order from the wished one. */
export async function freePorts(count: number, wished: number): Promise<number[]> {
  const ports: number[] = [];
  for (let next = wished; ports.length < count; next = (ports.at(-1) ?? next) + 1) ports.push(await freePort(next));
  return ports;
}

function probe(port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      const chosen = typeof address === 'object' ? address?.port : undefined;
      server.close(() => resolve(chosen));
    });
  });
}

/** Whether a server accepts connections on the port. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const finish = (listening: boolean) => () => {
      socket.destroy();
      resolve(listening);
    };
    socket.once('connect', finish(true));
    socket.once('error', finish(false));
  });
}
