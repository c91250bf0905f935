/** What must be true of this machine before a stack starts. Each failure is one sentence: the cause and the remedy. */
import { mkdirSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { localDirectory } from '../../process/local/place.ts';

export type Machine = {
  readonly node: string;
  readonly freeDiskBytes: number;
  readonly freeMemoryBytes: number;
  /** Where the disk was measured. */
  readonly directory: string;
};

const NODE_WANTED = { major: 20, minor: 19 };
/** The first start needs about 500 MB for programs and data. */
const DISK_MIN_BYTES = 1_000_000_000;
/** The processes of a stack use about 900 MB. */
const MEMORY_MIN_BYTES = 1_200_000_000;

/** @throws Error when the stack cannot run on this machine */
export async function checkMachine(warn: (sentence: string) => void): Promise<void> {
  const { fault, warnings } = judge(await measure());
  for (const sentence of warnings) warn(sentence);
  if (fault !== undefined) throw new Error(fault);
}

async function measure(): Promise<Machine> {
  mkdirSync(localDirectory, { recursive: true });
  const { bavail, bsize } = await statfs(localDirectory);
  return {
    node: process.versions.node,
    freeDiskBytes: bavail * bsize,
    freeMemoryBytes: process.availableMemory(),
    directory: localDirectory,
  };
}

/** The sentence that forbids a start, if any, and those that only warn. */
export function judge({ node, freeDiskBytes, freeMemoryBytes, directory }: Machine): {
  readonly fault: string | undefined;
  readonly warnings: readonly string[];
} {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  const { major: wantedMajor, minor: wantedMinor } = NODE_WANTED;
  const isOld = major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
  const fault = isOld
    ? `Node ${node} is too old: install Node ${wantedMajor}.${wantedMinor} or later.`
    : freeDiskBytes < DISK_MIN_BYTES
      ? `only ${megabytes(freeDiskBytes)} MB are free on the disk of ${directory}: free at least ${megabytes(DISK_MIN_BYTES)} MB.`
      : undefined;
  const isTight = freeMemoryBytes < MEMORY_MIN_BYTES;
  const warnings = isTight
    ? [`Only ${megabytes(freeMemoryBytes)} MB of memory are free: close programs if the stack is slow or is killed.`]
    : [];
  return { fault, warnings };
}

const megabytes = (bytes: number): number => Math.round(bytes / 1_000_000);
