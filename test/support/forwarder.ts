/** A TCP address that leads to a server, and can lead to another one later: as a name that follows a primary does. */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

export type Forwarder = {
  readonly port: number;
  /** Ends all connections; new ones lead to this port. */
  pointTo(port: number): void;
  /** Nothing arrives any more, and nobody is told. It lasts until `pointTo`. */
  stall(): void;
  close(): void;
};

export async function startForwarder(firstPort: number): Promise<Forwarder> {
  const sockets = new Set<Socket>();
  let target = firstPort;
  let isStalled = false;
  const server = createServer((near) => {
    const far = connect({ port: target, host: '127.0.0.1' });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket.setNoDelay());
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
      if (isStalled) socket.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    pointTo: (port) => {
      target = port;
      isStalled = false;
      endAll();
    },
    stall: () => {
      isStalled = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    close: () => {
      server.close();
      endAll();
    },
  };
}
