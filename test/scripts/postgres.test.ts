import { once } from 'node:events';
import fs, { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { findProcess } from '../../process/local/process-record.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { type Cluster, ensureDatabase, startCluster, stopCluster } from '../../scripts/stack/postgres.ts';
import { type PostgresProgram, postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { hasEnded } from '../../scripts/stack/process.ts';

let directory: string;
let program: PostgresProgram;
let cluster: Cluster;

beforeAll(async () => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'postgres-'));
  chmodSync(directory, 0o755);
  program = await postgresProgram(async () => directory);
  cluster = await startCluster({ program, directory });
});

afterAll(async () => {
  await cluster.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function query(url: string, text: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(text);
    return rows[0];
  } finally {
    await client.end();
  }
}

const postmasterFile = () => path.join(directory, 'data', 'postmaster.pid');

test('PostgreSQL refuses a wrong password, and only its owner can read the right one', async () => {
  const wrong = new URL(`${cluster.serverUrl}/postgres`);
  wrong.password = 'postgres';
  await expect(query(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
  expect(statSync(path.join(directory, 'password')).mode & 0o777).toBe(0o600);
});

test('the password is on the disk before the data has its name: after a power cut there are both, or no data', async ({
  onTestFinished,
}) => {
  const other = mkdtempSync(path.join(os.tmpdir(), 'postgres-'));
  chmodSync(other, 0o755);
  const flush = vi.spyOn(fs, 'fsyncSync');
  onTestFinished(async () => {
    flush.mockRestore();
    await stopCluster(other);
    rmSync(other, { recursive: true, force: true });
  });
  const named: boolean[] = [];
  flush.mockImplementation(() => void named.push(existsSync(path.join(other, 'data'))));
  await startCluster({ program, directory: other, settings: { fsync: 'off' } });
  expect(named).toEqual([false]);
});

test('PostgreSQL listens on the loopback interface only, without a socket in the file system', async () => {
  expect(
    await query(
      `${cluster.serverUrl}/postgres`,
      "SELECT current_setting('listen_addresses') AS tcp, current_setting('unix_socket_directories') AS unix",
    ),
  ).toEqual({
    tcp: '127.0.0.1',
    unix: '',
  });
});

test('the server is PostgreSQL 18 in UTF-8, durable, and sorts by code point whatever the locale of this machine', async () => {
  const settings = `SELECT current_setting('server_version_num')::int / 10000 AS version, current_setting('server_encoding') AS encoding,
    current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commits,
    (SELECT string_agg(letter, '' ORDER BY letter) FROM unnest(ARRAY['é', 'a', 'Z', 'ß']) AS letter) AS sorted, upper('é') AS upper`;
  expect(await query(`${cluster.serverUrl}/postgres`, settings)).toEqual({
    version: 18,
    encoding: 'UTF8',
    fsync: 'on',
    commits: 'on',
    sorted: 'Zaßé',
    upper: 'É',
  });
});

test('PostgreSQL takes another port when the requested one is taken', async () => {
  const other = mkdtempSync(path.join(os.tmpdir(), 'postgres-'));
  const neighbour = createServer();
  await once(neighbour.listen(0, '127.0.0.1'), 'listening');
  const { port: taken } = neighbour.address() as AddressInfo;
  const second = await startCluster({ program, directory: other, wishedPort: taken, settings: { fsync: 'off' } });
  try {
    expect(second.port).not.toBe(taken);
    expect(await query(`${second.serverUrl}/postgres`, 'SELECT 1 AS one')).toEqual({ one: 1 });
  } finally {
    await second.stop();
    neighbour.close();
    rmSync(other, { recursive: true, force: true });
  }
});

test('another port is found when the requested one is taken and is the last of all', async () => {
  const last = 65_535;
  const neighbour = createServer();
  await new Promise<void>((resolve) => neighbour.listen(last, '127.0.0.1', resolve));
  try {
    expect(await freePort(last)).toBeLessThan(last);
  } finally {
    neighbour.close();
  }
});

test('a start that fails after the server has begun leaves no server, and says what its log has', async () => {
  const other = mkdtempSync(path.join(os.tmpdir(), 'postgres-'));
  chmodSync(other, 0o755);
  const pgCtl = path.join(other, 'pg_ctl');
  // As when a signal ends it, or its time is over.
  writeFileSync(pgCtl, `#!/bin/sh\n"${program.pgCtl}" "$@"\nexit 1\n`, { mode: 0o755 });
  const logFile = path.join(other, 'log');
  const settings = { fsync: 'off', log_min_messages: 'panic' };
  try {
    await expect(startCluster({ program: { ...program, pgCtl }, directory: other, logFile, settings })).rejects.toThrow(
      `PostgreSQL did not start: its log is empty (${logFile}).`,
    );
    expect(existsSync(path.join(other, 'data', 'postmaster.pid'))).toBe(false);
  } finally {
    await stopCluster(other);
    rmSync(other, { recursive: true, force: true });
  }
});

test('the role of the service owns nothing, and its password stays the same', async () => {
  const { databaseUrl, migrationUrl } = await ensureDatabase(cluster, 'roles');
  expect(await query(databaseUrl, 'SELECT current_user AS role')).toEqual({ role: 'settlement_service' });
  await expect(query(databaseUrl, 'CREATE TABLE own (id text)')).rejects.toThrow('permission denied');
  expect(await query(migrationUrl, 'SELECT current_user AS role')).toEqual({ role: 'settlement' });
  expect(new URL(databaseUrl).password).not.toBe(new URL(migrationUrl).password);
  expect(await ensureDatabase(cluster, 'roles')).toEqual({ databaseUrl, migrationUrl });
});

test('a server whose parent was killed is taken over, with its port and its process', async () => {
  const again = await startCluster({ program, directory });
  expect(again).toMatchObject({ reused: true, port: cluster.port, process: { pid: cluster.process.pid } });
});

test('what was committed before the server was killed is there after the next start', async () => {
  const { migrationUrl } = await ensureDatabase(cluster, 'settlement');
  await query(migrationUrl, 'CREATE TABLE kept AS SELECT 42 AS answer');
  process.kill(cluster.process.pid, 'SIGKILL');
  await hasEnded(cluster.process, 10_000);
  expect(readFileSync(postmasterFile(), 'utf8')).toContain(String(cluster.process.pid));
  cluster = await startCluster({ program, directory });
  expect(cluster.reused).toBe(false);
  const again = await ensureDatabase(cluster, 'settlement');
  expect(await query(again.migrationUrl, 'SELECT answer FROM kept')).toEqual({ answer: 42 });
});

test('a pid file with the pid of another program is ignored, and that program keeps running', async () => {
  await cluster.stop();
  writeFileSync(
    postmasterFile(),
    [process.ppid, path.join(directory, 'data'), 0, cluster.port, '', '127.0.0.1', ''].join('\n'),
  );
  cluster = await startCluster({ program, directory });
  expect(cluster.reused).toBe(false);
  expect(findProcess(process.ppid)).toBeDefined();
});
