/** The connection to Temporal while Temporal is away. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connectTemporal } from '../../process/temporal.ts';
import { stretched } from '../support/patience.ts';

const AWAY_MS = 12_000;

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
  for (const endMs = performance.now() + AWAY_MS; performance.now() < endMs; ) {
    await temporal.health();
    await delay(100);
  }
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
  // gRPC's default would wait 6 s by now.
  expect(Math.max(...gaps)).toBeLessThan(stretched(3_000));
  expect(times.length).toBeGreaterThan(6);
});
