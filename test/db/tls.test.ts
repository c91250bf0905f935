/** PostgreSQL that TLS does not lead to: a process waits for it, and nobody is told that the service has a fault. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { TLSSocket } from 'node:tls';
import { expect, test, vi } from 'vitest';
import { connect, isUnavailable } from '../../db/client.ts';
import { migrate } from '../../db/migrate.ts';
import { withCommandErrors } from '../../ops/failure.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { WAIT } from '../support/patience.ts';
import { testPrograms } from '../support/program.ts';

const readFixture = (name: string) => readFileSync(path.join(import.meta.dirname, '..', 'fixtures', name));
const CERTIFICATE = { cert: readFixture('partner.crt.pem'), key: readFixture('partner.key.pem') };

/** The address of a server that answers the question for TLS in this way. */
async function serve(answer: (socket: Socket) => void): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => answer(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `postgresql://u:p@127.0.0.1:${port}/d?sslmode=verify-full`, close: () => void server.close() };
}

const encrypt = (socket: Socket): void => {
  socket.write('S');
  new TLSSocket(socket, { isServer: true, ...CERTIFICATE }).on('error', () => undefined);
};

test.for<[server: string, answer: (socket: Socket) => void, reason: string]>([
  ['has no TLS', (socket) => void socket.write('N'), 'The server does not support SSL connections'],
  ['fails before it', (socket) => void socket.write('E'), 'There was an error establishing an SSL connection'],
  ['has a certificate that nobody vouches for', encrypt, 'self-signed certificate'],
])(
  'a server that %s was not reached: a process waits, a request is 503, and a command says why',
  async ([_server, answer, reason], { onTestFinished }) => {
    const { url, close } = await serve(answer);
    onTestFinished(close);
    const connection = connect(url, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined });
    const error = await connection.pool.query('SELECT 1').catch((thrown: unknown) => thrown);
    await connection.close();
    expect(isUnavailable(error), String(error)).toBe(true);
    const migration = () => withCommandErrors(() => migrate({ databaseUrl: url, migrationUrl: url }).then(() => 0));
    await expect(migration()).rejects.toMatchObject({
      ...{ exitCode: 69, message: expect.stringContaining(`PostgreSQL does not answer: ${reason}`) },
    });

    const port = await freePort();
    const api = spawn(process.execPath, [(await testPrograms()).api], {
      cwd: repositoryRoot,
      env: {
        ...process.env,
        RUNTIME_ENVIRONMENT: 'local-sandbox',
        DATABASE_URL: url,
        TEMPORAL_ADDRESS: '127.0.0.1:1',
        PORT: String(port),
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    onTestFinished(() => void api.kill('SIGKILL'));
    const ready = await vi.waitFor(() => fetch(`http://127.0.0.1:${port}/health/ready`), WAIT);
    expect([ready.status, await ready.json()]).toMatchObject([503, { status: 'not_ready', postgres: 'down' }]);
    const organization = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
    const refused = await fetch(`http://127.0.0.1:${port}/v1/orgs`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(organization) },
    });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
  },
);
