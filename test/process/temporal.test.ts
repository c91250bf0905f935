/** The connection to Temporal while Temporal is away. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test, vi } from 'vitest';
import { connectTemporal } from '../../process/temporal.ts';
import { WAIT } from '../support/patience.ts';

test('a process tries to connect to Temporal every second, however long Temporal has been away', async ({
  onTestFinished,
}) => {
  const times: number[] = [];
  // A port that somebody holds, and that ends every connection.
  const server = createServer((socket) => {
    times.push(performance.now());
    socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const temporal = connectTemporal({
    temporal: { connectionOptions: { address: `127.0.0.1:${port}` }, namespace: 'default' },
    payloadKeys: undefined,
  });
  onTestFinished(async () => {
    await temporal.close();
    server.close();
  });
  // By then, gRPC's default would wait 40 s. On a busy machine only some tries are in time.
  await vi.waitUntil(async () => {
    await temporal.health();
    const [before = 0, last = 0] = times.slice(-2);
    return times.length > 8 && last - before < 1_500;
  }, WAIT);
});
