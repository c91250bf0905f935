import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { NamedKey } from '../../config/environment.ts';
import { findProcess, isRunning } from '../../process/local/process-record.ts';
import { matchKeys } from '../../scripts/stack/data-key.ts';
import { type Cluster, startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { judge } from '../../scripts/stack/preflight.ts';
import { removeData } from '../../scripts/stack/reset.ts';
import { writeStack } from '../../scripts/stack/state.ts';
import { createSupervisor } from '../../scripts/stack/supervisor.ts';
import { until } from '../support/wait.ts';

let home: string;
let directory: string;
let outside: string;
let cluster: Cluster | undefined;

beforeEach(() => {
  home = mkdtempSync(path.join(os.tmpdir(), 'reset-'));
  directory = path.join(home, 'local');
  outside = path.join(home, 'outside');
  mkdirSync(directory);
});

afterEach(async () => {
  await cluster?.stop();
  cluster = undefined;
  rmSync(home, { recursive: true, force: true });
});

const put = (...names: string[]) => {
  for (const name of names) {
    mkdirSync(path.dirname(path.join(home, name)), { recursive: true });
    writeFileSync(path.join(home, name), 'x');
  }
};

describe('npm run reset', () => {
  test('removes the data in the clone and outside of it, and keeps installed programs and the secrets', async () => {
    put(
      'local/postgres/data/PG_VERSION',
      'local/temporal/server-1.32.db',
      'local/cluster/log/api.log',
      'local/log/a.log',
    );
    put('local/sandbox-secrets.json', 'outside/postgres/data/PG_VERSION', 'local/bin/temporal', 'local/bundle/b.js');
    const removed = await removeData({ directory, outside: [outside, path.join(home, 'none')] });
    expect(removed.map((item) => path.relative(home, item))).toEqual([
      'outside',
      'local/cluster',
      'local/temporal',
      'local/postgres',
      'local/log',
    ]);
    // Of the secrets: a database of DATABASE_URL stays, and without them nothing opens its data.
    const kept = ['bin', 'bundle', 'sandbox-secrets.json'];
    expect(readdirSync(directory).toSorted((a, b) => a.localeCompare(b))).toEqual(kept);
    expect(existsSync(outside)).toBe(false);
  });

  test('removes nothing while the stack is running', async () => {
    put('local/postgres/data/PG_VERSION');
    await createSupervisor({ embedsDatabase: true, directory });
    await expect(removeData({ directory, outside: [] })).rejects.toThrow(
      `The stack of this clone is running (process ${process.pid}): stop it first.`,
    );
    expect(existsSync(path.join(directory, 'postgres'))).toBe(true);
  });

  test('has no start begin until the data is removed', async () => {
    put('local/temporal/server-1.32.db', ...Array.from({ length: 3_000 }, (_, n) => `local/postgres/data/${n}`));
    const removing = removeData({ directory, outside: [] });
    await until('the removal', () => !existsSync(path.join(directory, 'temporal')), { timeoutMs: 10_000, everyMs: 0 });
    const started = createSupervisor({ embedsDatabase: true, directory });
    await expect(started).rejects.toThrow('The stack of this clone is already running');
    await removing;
    expect(readdirSync(directory)).toEqual([]);
  });

  test('stops a PostgreSQL that a killed stack left outside, also when .local was deleted before', async () => {
    const program = await postgresProgram(async () => home);
    for (const folder of [home, outside]) {
      mkdirSync(folder, { recursive: true, mode: 0o755 });
      chmodSync(folder, 0o755);
    }
    cluster = await startCluster({ program, directory: path.join(outside, 'postgres'), settings: { fsync: 'off' } });
    expect(isRunning(cluster.process)).toBe(true);
    await removeData({ directory, outside: [outside] });
    expect(isRunning(cluster.process)).toBe(false);
    expect(existsSync(outside)).toBe(false);
  });

  test('is done again without data, and says so by an empty list', async () => {
    const own = findProcess(process.pid);
    if (own) writeStack({ supervisor: { ...own, startedAt: 'long ago' }, processes: {} }, directory);
    expect(await removeData({ directory, outside: [outside] })).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe('the keys of the data', () => {
  const key = (id: string): NamedKey => ({ id, key: randomBytes(32) });

  test('a database with other keys is an error that names the way out', async () => {
    await matchKeys(outside, [key('k1')]);
    await expect(matchKeys(outside, [key('k1')])).rejects.toThrow(
      /^the keys of the data in .+outside are gone .+: put the old file back, or run `npm run reset` to start with empty data\.$/,
    );
  });

  test('the file of the key is replaced as a whole, so that a crash leaves no half of it', async () => {
    const [first, second] = [key('k1'), key('k2')];
    await matchKeys(outside, [first]);
    const file = path.join(outside, 'key.sha256');
    const before = readFileSync(file, 'utf8');
    const link = path.join(outside, 'before');
    linkSync(file, link);
    await matchKeys(outside, [second, first]);
    expect(readFileSync(file, 'utf8')).not.toBe(before);
    // Written in place, this one would have changed too.
    expect(readFileSync(link, 'utf8')).toBe(before);
    expect(readdirSync(outside).toSorted()).toEqual(['before', 'key.sha256']);
  });

  test('a file that a crash left empty names no key: the keys are not gone, and the active one is remembered', async () => {
    const [first, second] = [key('k1'), key('k2')];
    await matchKeys(outside, [first]);
    writeFileSync(path.join(outside, 'key.sha256'), '');
    await matchKeys(outside, [first]);
    await expect(matchKeys(outside, [second])).rejects.toThrow('are gone');
  });

  test('the same key is accepted at every start, and a new active key while the old one is listed', async () => {
    const [first, second, third] = [key('k1'), key('k2'), key('k3')];
    await matchKeys(outside, [first]);
    await matchKeys(outside, [first]);
    await matchKeys(outside, [second, first]);
    await matchKeys(outside, [third, second]);
    await expect(matchKeys(outside, [first])).rejects.toThrow('are gone');
  });
});

describe('the machine', () => {
  const machine = { node: '20.19.0', freeDiskBytes: 5e9, freeMemoryBytes: 5e9, directory: '/clone/.local' };

  test('a machine with enough of everything has no fault and no warning', () => {
    expect(judge(machine)).toEqual({ fault: undefined, warnings: [] });
    expect(judge({ ...machine, node: '24.0.0' }).fault).toBeUndefined();
  });

  test.each([
    [{ node: '20.18.9' }, 'Node 20.18.9 is too old: install Node 20.19 or later.'],
    [{ node: '18.20.4' }, 'Node 18.20.4 is too old: install Node 20.19 or later.'],
    [{ freeDiskBytes: 3e8 }, 'only 300 MB are free on the disk of /clone/.local: free at least 1000 MB.'],
  ])('%j: one sentence with the cause and the remedy', (differs, sentence) => {
    expect(judge({ ...machine, ...differs })).toEqual({ fault: sentence, warnings: [] });
  });

  test('little memory is a warning: the start may still succeed', () => {
    expect(judge({ ...machine, freeMemoryBytes: 7e8 })).toEqual({
      fault: undefined,
      warnings: ['Only 700 MB of memory are free: close programs if the stack is slow or is killed.'],
    });
  });
});
