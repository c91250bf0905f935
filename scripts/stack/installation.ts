/**
 * Installs programs in a folder, usually `.local/bin`. Only one process installs a program at a time. Others that want
 * the same program wait, and then find it installed. A program has a temporary name until it is complete.
 */
import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nameBuilt } from '../../process/local/content-hash.ts';
import { findProcess } from '../../process/local/process-record.ts';

export type Acquisition = {
  /** The environment with the explicit paths, PATH and proxies. Every program that this starts gets it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where installed programs are kept, usually `.local/bin`. */
  readonly binDirectory: string;
  /** Called before each step that takes long, and while a download is running. */
  readonly onProgress?: (text: string) => void;
  /** Ends a running download. */
  readonly signal?: AbortSignal | undefined;
  /** The SDK's own download. Throws when it fails. */
  readonly download?: (request: DownloadRequest) => Promise<unknown>;
};

export type DownloadRequest = Pick<Acquisition, 'env' | 'signal'> & {
  readonly kind: 'dev-server' | 'time-skipping';
  readonly version: string;
  readonly directory: string;
};

export type Outcome = { readonly path: string } | { readonly reason: string };

const POLL_MS = 100;
const INSTALLING = '.installing-';
const BYTES_REPORTED_EACH = 5_000_000;

/** Does the work while no other process of this machine does work with the same name in the same folder. */
export async function withLock<Value>(
  name: string,
  { binDirectory, onProgress, signal }: Pick<Acquisition, 'binDirectory' | 'onProgress' | 'signal'>,
  work: () => Promise<Value>,
): Promise<Value> {
  await mkdir(binDirectory, { recursive: true });
  const prefix = path.join(binDirectory, `.${name}.lock-`);
  const own = prefix + nameOfProcess(process.pid);
  let isWaiting = false;
  while (!(await take(prefix, own))) {
    if (!isWaiting) onProgress?.(`waiting for another process that is installing ${name}`);
    isWaiting = true;
    // Two that gave way to each other do not come back at the same moment.
    await sleep(POLL_MS * (1 + Math.random()), undefined, signal && { signal });
  }
  try {
    return await work();
  } finally {
    await rm(own, { force: true });
  }
}

/**
 * Creates a file that names this process, and looks for those of others only then: of two processes at least one sees
 * the other, and gives way. No process removes the file of one that runs.
 */
async function take(prefix: string, own: string): Promise<boolean> {
  if (await isHeld(prefix, own)) return false;
  try {
    await writeFile(own, '', { flag: 'wx' });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
  if (!(await isHeld(prefix, own))) return true;
  await rm(own, { force: true });
  return false;
}

/** Whether another process that runs has the lock. Removes the files of processes that were killed. */
async function isHeld(prefix: string, own: string): Promise<boolean> {
  const directory = path.dirname(prefix);
  const locks = (await readdir(directory)).map((name) => path.join(directory, name));
  const others = locks.filter((lock) => lock.startsWith(prefix) && lock !== own);
  const held = others.filter((lock) => lock === prefix + nameOfProcess(Number.parseInt(lock.slice(prefix.length), 10)));
  for (const lock of others) if (!held.includes(lock)) await rm(lock, { force: true });
  return held.length > 0;
}

/** Another process that gets the pid later has another start time. */
function nameOfProcess(pid: number): string {
  const startedAt = findProcess(pid)?.startedAt ?? '';
  return `${pid}-${createHash('sha256').update(startedAt).digest('hex').slice(0, 16)}`;
}

/**
 * Keeps the program that `make` returns under its name. The caller has the lock of that name.
 *
 * @param tool what fails when `make` fails, as the start of a sentence
 * @param make makes the program in a temporary folder and returns its path
 */
export async function install(
  { name, tool, binDirectory }: { readonly name: string; readonly tool: string; readonly binDirectory: string },
  make: (directory: string) => Promise<string>,
): Promise<Outcome> {
  const prefix = `${INSTALLING}${name}-`;
  const target = path.join(binDirectory, name);
  await mkdir(binDirectory, { recursive: true });
  // What a killed installation left.
  for (const left of await readdir(binDirectory))
    if (left.startsWith(prefix)) await rm(path.join(binDirectory, left), { recursive: true, force: true });
  const directory = await mkdtemp(path.join(binDirectory, prefix));
  try {
    const made = await make(directory);
    await chmod(made, 0o755);
    await nameBuilt(made, target);
    return { path: target };
  } catch (error) {
    return { reason: `${tool} failed: ${lastLine(error)}.` };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Reports how many bytes are in the folder while the work is running. */
export async function withProgress<Value>(
  {
    what,
    directory,
    totalBytes,
    onProgress,
  }: Pick<Acquisition, 'onProgress'> & {
    readonly what: string;
    readonly directory: string;
    readonly totalBytes?: number;
  },
  work: () => Promise<Value>,
): Promise<Value> {
  onProgress?.(totalBytes === undefined ? what : `${what}, ${megabytes(totalBytes)} MB`);
  let reportedBytes = 0;
  const timer = setInterval(() => {
    const bytes = Math.min(sizeOf(directory), totalBytes ?? Number.POSITIVE_INFINITY);
    if (bytes < reportedBytes + BYTES_REPORTED_EACH) return;
    reportedBytes = bytes;
    const of = totalBytes === undefined ? '' : ` of ${megabytes(totalBytes)}`;
    onProgress?.(`${what}: ${megabytes(bytes)}${of} MB`);
  }, POLL_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

const megabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1);

function sizeOf(directory: string): number {
  let bytes = 0;
  try {
    for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }))
      bytes += statSync(path.join(directory, name), { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    // The installation removes its folders meanwhile.
  }
  return bytes;
}

/** The last line that a failed program wrote, or its last error, shortened, without the full stop. */
function lastLine(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('killed' in error && error.killed === true) return 'it took too long';
  const written = ['stderr', 'stdout'].map((stream) =>
    stream in error ? String(Reflect.get(error, stream)).trim() : '',
  );
  const text = written.find((output) => output !== '') ?? error.message;
  const lines = text.split('\n');
  return (lines.findLast((line) => line.startsWith('ERROR:')) ?? lines.at(-1) ?? '')
    .trim()
    .replace(/\.$/, '')
    .slice(0, 300);
}
