/**
 * Finds or installs the Temporal programs. The sources are tried in this order: the path in an environment variable,
 * the PATH, an earlier installation, the SDK's own download, a build from published sources. Each source that does not
 * work gives its reason in one sentence. What is installed is kept in the binary directory.
 *
 * An installation has a temporary name until it is complete. Two processes that install at the same time do the work
 * twice, and nothing worse.
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
  /** The environment with the explicit paths, PATH, JAVA_HOME and proxies. Every program that this starts gets it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where installed programs are kept, usually `.local/bin`. */
  readonly binDirectory: string;
  /** Called before each step that takes long. */
  readonly onProgress?: (text: string) => void;
  /** Ends a running download or build. */
  readonly signal?: AbortSignal | undefined;
  /** The SDK's own download. Throws when it fails. */
  readonly download?: (request: DownloadRequest) => Promise<unknown>;
};

type DownloadRequest = Pick<Acquisition, 'env' | 'binDirectory' | 'signal'> & {
  readonly kind: 'dev-server' | 'time-skipping';
  readonly version: string;
};

type Outcome = { readonly path: string } | { readonly reason: string };
/** One place that a program can come from. */
type Source = (acquisition: Acquisition) => Outcome | Promise<Outcome>;

const run = promisify(execFile);

const CLI_VERSION = 'v1.5.1';
const TEST_SERVER_VERSION = 'v1.38.0';
const SERVER_VERSION = 'v1.29.1';
const DOWNLOAD_TIMEOUT_MS = 180_000;
const BUILD_TIMEOUT_MS = 900_000;
const INSTALLING = '.installing-';

/**
 * The `temporal` program, which contains the development server.
 *
 * @throws Error with the reason of every source, when none works
 */
export function acquireDevServer(acquisition: Acquisition): Promise<string> {
  return firstOf('No Temporal development server could be found or installed', acquisition, [
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
 * The server of a Temporal cluster, and the tool that creates its databases' schema. There is no download of them.
 *
 * @throws Error with the reason of every source, when none works
 */
export async function acquireClusterServer(
  acquisition: Acquisition,
): Promise<{ readonly server: string; readonly sqlTool: string }> {
  const acquire = (variable: string, what: string, folder: string, kept: string) => {
    const name = `${kept}-${SERVER_VERSION}`;
    const source = `go.temporal.io/server/cmd/${folder}@${SERVER_VERSION}`;
    return firstOf(`No ${what} could be found or installed`, acquisition, [
      explicitPath(variable),
      cached(name),
      goInstall({ source, name, what }),
    ]);
  };
  // One after the other: the second build reuses most of what the first has compiled.
  const server = await acquire('TEMPORAL_SERVER_PATH', 'Temporal server', 'server', 'temporal-server');
  return {
    server,
    sqlTool: await acquire('TEMPORAL_SQL_TOOL_PATH', 'Temporal schema tool', 'tools/sql', 'temporal-sql-tool'),
  };
}

/**
 * The time-skipping test server: a program whose only argument is the port.
 *
 * @throws Error with the reason of every source, when none works
 */
export function acquireTestServer(acquisition: Acquisition): Promise<string> {
  const built = path.join(`test-server-${TEST_SERVER_VERSION}`, 'run');
  return firstOf('No time-skipping Temporal server could be found or installed', acquisition, [
    explicitPath('TEMPORAL_TEST_SERVER_PATH'),
    cached(`temporal-test-server-${TEST_SERVER_VERSION}`),
    cached(built),
    download('time-skipping', `temporal-test-server-${TEST_SERVER_VERSION}`, TEST_SERVER_VERSION),
    mavenAssembly(built),
  ]);
}

async function firstOf(failure: string, acquisition: Acquisition, sources: readonly Source[]): Promise<string> {
  const reasons: string[] = [];
  for (const source of sources) {
    const outcome = await source(acquisition);
    if ('path' in outcome) return outcome.path;
    reasons.push(outcome.reason);
  }
  throw new Error(`${failure}:\n${reasons.map((reason) => `  ${reason}`).join('\n')}`);
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

function download(kind: DownloadRequest['kind'], name: string, version: string): Source {
  return async ({ env, binDirectory, onProgress, signal, download: fetchProgram = downloadBySdk }) => {
    onProgress?.(`downloading ${name}`);
    await mkdir(binDirectory, { recursive: true });
    try {
      await fetchProgram({ env, binDirectory, signal, kind, version });
    } catch (error) {
      return { reason: `The SDK's own download failed: ${lastLine(error)}.` };
    }
    const file = path.join(binDirectory, name);
    return isExecutable(file) ? { path: file } : { reason: `The SDK's own download left nothing at ${file}.` };
  };
}

/**
 * In a process of its own, so that a hanging download can be ended, and this process does not load the SDK's runtime.
 */
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

/**
 * @param build `source`: the program's package with its version; `name`: its file name; `what`: its name in messages
 */
function goInstall({
  source,
  name,
  what,
}: {
  readonly source: string;
  readonly name: string;
  readonly what: string;
}): Source {
  return async ({ env, binDirectory, onProgress, signal }) => {
    const go = findOnPath('go', env);
    if (!go) return { reason: 'There is no Go on the PATH to build it with.' };
    onProgress?.(`building the ${what} with Go, once; this takes some minutes`);
    return install(binDirectory, name, 'go install', async (directory) => {
      await run(go, ['install', source], {
        cwd: directory,
        env: { ...env, GOBIN: directory },
        timeout: BUILD_TIMEOUT_MS,
        signal,
      });
      const [built] = await readdir(directory);
      if (built === undefined) throw new Error('there is no program after the build');
      return path.join(directory, built);
    });
  };
}

function mavenAssembly(name: string): Source {
  return async ({ env, binDirectory, onProgress, signal }) => {
    const maven = findOnPath('mvn', env);
    if (!maven) return { reason: 'There is no Maven on the PATH to collect it with.' };
    if (!env['JAVA_HOME'] && !findOnPath('java', env))
      return { reason: 'There is no Java on the PATH to run it with.' };
    onProgress?.('collecting the time-skipping server with Maven, once; this takes about a minute');
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
    if ('reason' in outcome) return outcome;
    const program = path.join(binDirectory, name);
    await shareClasses(program, env, signal);
    return { path: program };
  };
}

/** Makes something in a temporary folder and renames it. If another process was first, its result stays. */
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
    return { reason: `${tool} failed: ${lastLine(error)}.` };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Removes the folders of killed installations. */
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

/** The last line that a failed program wrote, shortened. */
function lastLine(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('killed' in error && error.killed === true) return 'it took too long';
  const written = ['stderr', 'stdout'].map((stream) =>
    stream in error ? String(Reflect.get(error, stream)).trim() : '',
  );
  const text = written.find((output) => output !== '') ?? error.message;
  return (text.split('\n').at(-1) ?? '').trim().replace(/\.$/, '').slice(0, 300);
}
