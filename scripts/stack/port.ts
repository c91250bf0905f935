/** Free TCP ports on the loopback interface. A free port may be taken before it is used: who starts a server on it retries. */
import { connect, createServer } from 'node:net';

/** The wished port when nothing listens there, else one the system chooses. Without a wish, one the system chooses. */
export async function freePort(wished = 0): Promise<number> {
  return (await probe(wished)) ?? (await probe(0)) ?? Promise.reject(new Error('The system has no free port on 127.0.0.1.'));
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

/** Whether something accepts connections on the port. */
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
