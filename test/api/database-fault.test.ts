/** PostgreSQL that answers with a fault of its own: what a caller, a probe and the log see, and what is left of it. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { createLogger } from '../../process/logger.ts';

import { serverAccount } from '../../scripts/stack/postgres-program.ts';
import type { TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, settleBody } from '../support/partner.ts';
import { createTestDatabase } from '../support/postgres.ts';

const run = promisify(execFile);

type Fault = { readonly code: string; begin(api: TestApi): Promise<unknown>; end(api: TestApi): Promise<unknown> };

const limitConnections =
  (limit: number) =>
  async ({ owner }: TestApi) => {
    const { rows } = await owner.pool.query('SELECT current_database() AS name');
    await owner.pool.query(`ALTER DATABASE "${rows[0].name}" CONNECTION LIMIT ${limit}`);
    await owner.pool.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user',
    );
  };

const TOO_MANY_CONNECTIONS: Fault = { code: '53300', begin: limitConnections(0), end: limitConnections(-1) };

/** A statement that takes too long is canceled by PostgreSQL with the same error. */
const CANCELED: Fault = {
  code: '57014',
  begin: ({ owner }) =>
    owner.pool.query(`
      CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(60); RETURN NEW; END';
      CREATE TRIGGER hang BEFORE INSERT ON settlements FOR EACH ROW EXECUTE FUNCTION hang()`),
  end: ({ owner }) => owner.pool.query('DROP FUNCTION hang() CASCADE'),
};

const TRIES_MAX = 20;

const test = withApi();

/** A settlement is refused during the fault, nothing of it is written, and the same request succeeds afterwards. */
async function refusesAndRecovers(openApi: (lines: string[]) => Promise<TestApi>, fault: Fault): Promise<unknown> {
  const lines: string[] = [];
  const api = await openApi(lines);
  const caller = await api.createCaller();
  const body = settleBody(await createRecipient(api, caller));
  const settle = () => api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': randomUUID() });
  const key = { 'idempotency-key': 'the-same-key-again' };
  const before = await digestTables(api.owner.pool);
  await fault.begin(api);
  const isNamed = () => lines.some((line) => line.includes(`"${fault.code}"`));
  // The first ones may find connections that have just ended.
  for (let tries = 0; tries < TRIES_MAX && !isNamed(); tries += 1) {
    const refused = await api.call(caller, 'POST', '/v2/settle', body, key);
    expect([refused.statusCode, refused.json().code]).toEqual([503, 'temporarily_unavailable']);
    expect(refused.headers).toHaveProperty('retry-after');
  }
  expect(isNamed()).toBe(true);
  const { postgres } = (await api.call(null, 'GET', '/health/ready')).json();
  expect(await digestTables(api.owner.pool)).toEqual(before);
  await fault.end(api);
  const accepted = await api.call(caller, 'POST', '/v2/settle', body, key);
  expect(accepted.statusCode).toBe(202);
  expect((await settle()).statusCode).toBe(202);
  const { rows } = await api.owner.pool.query('SELECT count(*)::int AS n FROM settlements');
  expect(rows).toEqual([{ n: 2 }]);
  return postgres;
}

const logging = (lines: string[]) => ({
  logger: createLogger({ level: 'warn', name: 'api' }, { write: (line: string) => void lines.push(line) }),
});

test('too many connections: 503 that may be repeated, not ready, the log has the cause, and the service recovers by itself', async ({
  newApi,
}) => {
  expect(await refusesAndRecovers((lines) => newApi(logging(lines)), TOO_MANY_CONNECTIONS)).toBe('down');
});

test('every page is shown while PostgreSQL accepts no connection', async ({ newApi }) => {
  const api = await newApi();
  const get = (url: string) => api.app.inject({ method: 'GET', url });
  await TOO_MANY_CONNECTIONS.begin(api);
  for (const path of ['/', '/docs', '/docs/quickstart', '/docs/search?q=a', '/problems/not_found', '/llms.txt'])
    expect([path, (await get(path)).statusCode]).toEqual([path, 200]);
  const status = await get('/status');
  expect([status.statusCode, status.body]).toEqual([200, expect.stringContaining('its evidence could not be read')]);
  expect((await get('/nowhere')).statusCode).toBe(404);
  await TOO_MANY_CONNECTIONS.end(api);
});

test('a statement that is canceled: 503 that may be repeated, and nothing of it is written', async ({ newApi }) => {
  expect(await refusesAndRecovers((lines) => newApi(logging(lines)), CANCELED)).toBe('up');
});

test('a full disk: 503 that may be repeated, nothing half-written, and with room again it goes on', async ({
  newApi,
  skip,
}) => {
  const disk = await mountSmallDisk();
  if (!disk) return skip('only root can mount a small disk');
  const database = await createTestDatabase();
  const { owner } = await newApi();
  const space = `small_${randomUUID().replaceAll('-', '')}`;
  try {
    await owner.pool.query(`CREATE TABLESPACE ${space} LOCATION '${disk.folder}'`);
    const name = new URL(database.migrationUrl).pathname.slice(1);
    await owner.pool.query(`ALTER DATABASE ${name} SET TABLESPACE ${space}`);
    const fault = { code: '53100', begin: disk.fill, end: disk.clear };
    const open = (lines: string[]) =>
      newApi({ database: { ...database, drop: async () => undefined }, ...logging(lines) });
    expect(await refusesAndRecovers(open, fault)).toBe('up');
  } finally {
    await database.drop();
    await owner.pool.query(`DROP TABLESPACE IF EXISTS ${space}`);
    await disk.unmount();
  }
});

/** Undefined where this account may not mount one. */
async function mountSmallDisk() {
  const root = await mkdtemp(path.join(os.tmpdir(), 'settlement-disk-'));
  const mounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', root]).catch(() => undefined);
  if (!mounted) return void (await rm(root, { recursive: true }));
  const [folder, filler] = [path.join(root, 'space'), path.join(root, 'filler')];
  await mkdir(folder);
  await chmod(root, 0o755);
  const { uid, gid } = await serverAccount();
  if (uid !== undefined && gid !== undefined) await chown(folder, uid, gid);
  return {
    folder,
    // It ends when there is no room.
    fill: () => run('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k']).catch(() => undefined),
    clear: () => rm(filler),
    unmount: async () => {
      await run('umount', [root]);
      await rm(root, { recursive: true });
    },
  };
}
