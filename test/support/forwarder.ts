/**
 * A TCP address that leads to a server, and can lead to another one later, as a name that follows a primary does. Its
 * connections can be disturbed.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** `cut`: nothing arrives any more, and nobody is told; `slow`: half a second in each direction; `reset`: RST. */
export const DISTURBANCES = ['cut', 'slow', 'reset'] as const;
export type LinkDisturbance = (typeof DISTURBANCES)[number];

const SLOW_MS = 500;

export type Forwarder = {
  readonly port: number;
  /** Ends all connections; new ones lead to this port. */
  pointTo(port: number): void;
  /** Disturbs every connection, also new ones, until `heal`. */
  disturb(how: LinkDisturbance): void;
  /** Connections that were cut end, because bytes of them are lost. */
  heal(): void;
  close(): void;
};

export async function startForwarder(firstPort: number): Promise<Forwarder> {
  const sockets = new Set<Socket>();
  let target = firstPort;
  let disturbed: LinkDisturbance | undefined;
  const forward = (from: Socket, to: Socket): void => {
    let passed = Promise.resolve();
    sockets.add(from.setNoDelay());
    from.on('error', () => to.destroy());
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
    from.on('end', () => void passed.then(() => to.end()));
    from.on('data', (bytes) => {
      if (disturbed === 'cut') return;
      const lateMs = disturbed === 'slow' ? SLOW_MS : 0;
      const slowed = lateMs > 0 ? delay(lateMs) : undefined;
      passed = passed.then(async () => {
        await slowed;
        if (to.writable && !to.write(bytes)) from.pause();
      });
    });
    to.on('drain', () => from.resume());
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true });
    forward(near, far);
    forward(far, near);
    if (disturbed === 'reset') near.resetAndDestroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    pointTo: (port) => {
      target = port;
      disturbed = undefined;
      endAll();
    },
    disturb: (how) => {
      disturbed = how;
      if (how === 'reset') for (const socket of sockets) socket.resetAndDestroy();
    },
    heal: () => {
      if (disturbed === 'cut') endAll();
      disturbed = undefined;
    },
    close: () => {
      server.close();
      endAll();
    },
  };
}
