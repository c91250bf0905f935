/**
 * Where the Temporal programs come from: what the caller names, what the machine has, the SDK's own download, or a
 * build from published sources. The branches are tried in that order, the result is kept under the binary directory, and
 * each branch that cannot serve says why in one sentence.
 *
 * Everything is installed under a private name and renamed, so two acquisitions at the same moment only do the work twice.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { repositoryRoot } from '../../process/place.ts';
import { layOut, shareClasses } from './test-server.ts';

export type Acquisition = {
  /** The caller's environment, handed on to every program this starts: the explicit paths, PATH, JAVA_HOME, proxies. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where acquired programs are kept, usually `.local/bin`. */
  readonly binDirectory: string;
  /** Told before each step that takes long. */
  readonly onProgress?: (text: string) => void;
  /** Ends a download or a build that is under way. */
  readonly signal?: AbortSignal | undefined;
  /** The SDK's own download; throws when it does not work. */
  readonly download?: (request: DownloadRequest) => Promise<unknown>;
};

type DownloadRequest = Pick<Acquisition, 'env' | 'binDirectory' | 'signal'> & {
  readonly kind: 'dev-server' | 'time-skipping';
  readonly version: string;
};

type Outcome = { readonly path: string } | { readonly refusal: string };
type Branch = (acquisition: Acquisition) => Outcome | Promise<Outcome>;

const run = promisify(execFile);

const CLI_VERSION = 'v1.5.1';
const TEST_SERVER_VERSION = 'v1.38.0';
const SERVER_VERSION = 'v1.29.1';
const DOWNLOAD_TIMEOUT_MS = 180_000;
const BUILD_TIMEOUT_MS = 900_000;
const INSTALLING = '.installing-';

/**
 * The `temporal` program, which holds the development server.
 *
 * @throws Error with the reason of every branch, when none serves
 */
export function acquireDevServer(acquisition: Acquisition): Promise<string> {
  return firstOf('No Temporal development server could be found or made', acquisition, [
    explicitPath('TEMPORAL_CLI_PATH'),
    onPath,
    cached(`temporal-${CLI_VERSION}`),
    download('dev-server', `temporal-${CLI_VERSION}`, CLI_VERSION),
    goInstall({
      source: `github.com/temporalio/cli/cmd/temporal@${CLI_VERSION}`,
      name: `temporal-${CLI_VERSION}`,
      what: 'Temporal development server',
    }),
  ]);
}

/**
 * The server of a Temporal cluster, and the tool that makes its databases' schema; nobody offers them as a download.
 *
 * @throws Error with the reason of every branch, when none serves
 */
export async function acquireClusterServer(
  acquisition: Acquisition,
): Promise<{ readonly server: string; readonly sqlTool: string }> {
  const acquire = (variable: string, what: string, folder: string, kept: string) => {
    const name = `${kept}-${SERVER_VERSION}`;
    const source = `go.temporal.io/server/cmd/${folder}@${SERVER_VERSION}`;
    return firstOf(`No ${what} could be found or made`, acquisition, [
      explicitPath(variable),
      cached(name),
      goInstall({ source, name, what }),
    ]);
  };
  // One after the other: the second build finds most of what it needs compiled by the first.
  const server = await acquire('TEMPORAL_SERVER_PATH', 'Temporal server', 'server', 'temporal-server');
  return {
    server,
    sqlTool: await acquire('TEMPORAL_SQL_TOOL_PATH', 'Temporal schema tool', 'tools/sql', 'temporal-sql-tool'),
  };
}

/**
 * The time-skipping test server, as a program whose one argument is the port.
 *
 * @throws Error with the reason of every branch, when none serves
 */
export function acquireTestServer(acquisition: Acquisition): Promise<string> {
  const built = path.join(`test-server-${TEST_SERVER_VERSION}`, 'run');
  return firstOf('No time-skipping Temporal server could be found or made', acquisition, [
    explicitPath('TEMPORAL_TEST_SERVER_PATH'),
    cached(`temporal-test-server-${TEST_SERVER_VERSION}`),
    cached(built),
    download('time-skipping', `temporal-test-server-${TEST_SERVER_VERSION}`, TEST_SERVER_VERSION),
    mavenAssembly(built),
  ]);
}

async function firstOf(failure: string, acquisition: Acquisition, branches: readonly Branch[]): Promise<string> {
  const refusals: string[] = [];
  for (const branch of branches) {
    const outcome = await branch(acquisition);
    if ('path' in outcome) return outcome.path;
    refusals.push(outcome.refusal);
  }
  throw new Error(`${failure}:\n${refusals.map((refusal) => `  ${refusal}`).join('\n')}`);
}

/** A path that was named and is wrong stops the search: another program than the one asked for would surprise. */
function explicitPath(variable: string): Branch {
  return ({ env }) => {
    const named = env[variable];
    if (!named) return { refusal: `${variable} is not set.` };
    if (!isExecutable(named)) throw new Error(`${variable} names ${named}, which is not an executable file.`);
    return { path: path.resolve(named) };
  };
}

async function onPath({ env }: Acquisition): Promise<Outcome> {
  const found = findOnPath('temporal', env);
  if (!found) return { refusal: 'There is no temporal on the PATH.' };
  try {
    const { stdout } = await run(found, ['--version'], { timeout: 10_000 });
    if (/\bServer \d/.test(stdout)) return { path: found };
  } catch {
    // Said below: a program that fails and one that says something else are refused alike.
  }
  return { refusal: `The temporal on the PATH (${found}) does not tell the version of its server.` };
}

function cached(name: string): Branch {
  return ({ binDirectory }) => {
    const file = path.join(binDirectory, name);
    return isExecutable(file) ? { path: file } : { refusal: `Nothing is kept at ${file} yet.` };
  };
}

function download(kind: DownloadRequest['kind'], name: string, version: string): Branch {
  return async ({ env, binDirectory, onProgress, signal, download: fetchProgram = downloadBySdk }) => {
    onProgress?.(`downloading ${name}`);
    await mkdir(binDirectory, { recursive: true });
    try {
      await fetchProgram({ env, binDirectory, signal, kind, version });
    } catch (error) {
      return { refusal: `The SDK's own download did not work: ${lastWords(error)}.` };
    }
    const file = path.join(binDirectory, name);
    return isExecutable(file) ? { path: file } : { refusal: `The SDK's own download left nothing at ${file}.` };
  };
}

/** In a process of its own, so that a download which hangs can be ended and the SDK's runtime leaves no trace here. */
function downloadBySdk({ env, binDirectory, signal, kind, version }: DownloadRequest): Promise<unknown> {
  const args = [
    '--import',
    'tsx',
    fileURLToPath(new URL('./sdk-download.ts', import.meta.url)),
    kind,
    binDirectory,
    version,
  ];
  return run(process.execPath, args, {
    cwd: repositoryRoot,
    env: { ...env },
    timeout: DOWNLOAD_TIMEOUT_MS,
    killSignal: 'SIGKILL',
    signal,
  });
}

/** @param build `source`: the program's package with its version; `name`: what it is kept as; `what`: told while it is built */
function goInstall({
  source,
  name,
  what,
}: {
  readonly source: string;
  readonly name: string;
  readonly what: string;
}): Branch {
  return async ({ env, binDirectory, onProgress, signal }) => {
    const go = findOnPath('go', env);
    if (!go) return { refusal: 'There is no Go on the PATH to build it with.' };
    onProgress?.(`building the ${what} with Go, once, which takes some minutes`);
    return install(binDirectory, name, 'go install', async (directory) => {
      await run(go, ['install', source], {
        cwd: directory,
        env: { ...env, GOBIN: directory },
        timeout: BUILD_TIMEOUT_MS,
        signal,
      });
      const [built] = await readdir(directory);
      if (built === undefined) throw new Error('it built nothing');
      return path.join(directory, built);
    });
  };
}

function mavenAssembly(name: string): Branch {
  return async ({ env, binDirectory, onProgress, signal }) => {
    const maven = findOnPath('mvn', env);
    if (!maven) return { refusal: 'There is no Maven on the PATH to collect it with.' };
    if (!env['JAVA_HOME'] && !findOnPath('java', env))
      return { refusal: 'There is no Java on the PATH to run it with.' };
    onProgress?.('collecting the time-skipping server with Maven, once, which takes about a minute');
    const outcome = await install(binDirectory, path.dirname(name), 'mvn', async (directory) => {
      const { pom, pluginGoal, jars } = await layOut(directory, TEST_SERVER_VERSION);
      const args = [
        '--batch-mode',
        '--quiet',
        `--file=${pom}`,
        pluginGoal,
        '-DincludeScope=runtime',
        `-DoutputDirectory=${jars}`,
      ];
      await run(maven, args, { cwd: directory, env: { ...env }, timeout: BUILD_TIMEOUT_MS, signal });
      return path.dirname(jars);
    });
    if ('refusal' in outcome) return outcome;
    const program = path.join(binDirectory, name);
    await shareClasses(program, env, signal);
    return { path: program };
  };
}

/** Makes something in a private folder and renames it into place. Whoever comes second finds the first one's work there. */
async function install(
  binDirectory: string,
  name: string,
  tool: string,
  make: (directory: string) => Promise<string>,
): Promise<Outcome> {
  await mkdir(binDirectory, { recursive: true });
  await removeAbandoned(binDirectory);
  const directory = await mkdtemp(path.join(binDirectory, INSTALLING));
  const target = path.join(binDirectory, name);
  try {
    const made = await make(directory);
    await rename(made, target).catch((error: unknown) => {
      if (!existsSync(target)) throw error;
    });
    return { path: target };
  } catch (error) {
    return { refusal: `${tool} did not work: ${lastWords(error)}.` };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Folders of installations that were killed. */
async function removeAbandoned(binDirectory: string): Promise<void> {
  for (const name of await readdir(binDirectory)) {
    const directory = path.join(binDirectory, name);
    if (name.startsWith(INSTALLING) && statSync(directory).mtimeMs < Date.now() - 2 * BUILD_TIMEOUT_MS)
      await rm(directory, { recursive: true, force: true });
  }
}

function findOnPath(name: string, env: Acquisition['env']): string | undefined {
  const suffixes = process.platform === 'win32' ? ['.exe', '.cmd', ''] : [''];
  const folders = (env['PATH'] ?? '').split(path.delimiter).filter((folder) => folder !== '');
  return folders.flatMap((folder) => suffixes.map((suffix) => path.join(folder, name + suffix))).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The last line a failed program wrote, cut to a sentence's length. */
function lastWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('killed' in error && error.killed === true) return 'it took too long';
  const written = ['stderr', 'stdout'].map((stream) =>
    stream in error ? String(Reflect.get(error, stream)).trim() : '',
  );
  const text = written.find((output) => output !== '') ?? error.message;
  return (text.split('\n').at(-1) ?? '').trim().replace(/\.$/, '').slice(0, 300);
}
