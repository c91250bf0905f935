/**
 * Installs the packages of `requirements.txt`, exactly these and no other, in a folder under `.local`. It needs Python
 * 3 with `pip` or `venv`; one of the two is enough. The machine's Python is not changed.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { localDirectory } from '../../process/local/place.ts';
import { withLock } from '../../scripts/stack/installation.ts';

export type PythonProgram = {
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
};

const REQUIREMENTS = path.join(import.meta.dirname, 'requirements.txt');
/** Holds one installation for each version of the list and of Python, and what the programs write. */
export const PYTHON_DIRECTORY = path.join(localDirectory, 'python');
/** The oldest Python 3 that the packages run on. */
const MINOR_VERSION_MIN = 10;

/**
 * @param purpose what the packages are for, as a sentence begins with it
 * @param say prints a line before something that takes minutes
 * @throws Error in one sentence when there is no Python, or it has neither pip nor venv
 */
export async function acquirePython(purpose: string, say: (line: string) => void): Promise<PythonProgram> {
  const python = await findPython(purpose);
  const version = createHash('sha256')
    .update(readFileSync(REQUIREMENTS))
    .update(await answerOf(python, ['--version']))
    .digest('hex');
  const installed = path.join(PYTHON_DIRECTORY, version.slice(0, 16));
  await withLock('packages', { binDirectory: PYTHON_DIRECTORY, onProgress: say }, async () => {
    if (existsSync(installed)) return;
    say(`Installing packages of Python under ${PYTHON_DIRECTORY}, once; this takes a minute or two.`);
    await install(python, purpose, installed);
  });
  const bytecode = path.join(PYTHON_DIRECTORY, 'bytecode');
  return { command: python, env: { PYTHONPATH: installed, PYTHONNOUSERSITE: '1', PYTHONPYCACHEPREFIX: bytecode } };
}

const CANDIDATES = ['python3', 'python'];

async function findPython(purpose: string): Promise<string> {
  for (const candidate of CANDIDATES) {
    const [, minor] = /^Python 3\.(\d+)/.exec(await answerOf(candidate, ['--version'])) ?? [];
    if (Number(minor) >= MINOR_VERSION_MIN) return await interpreterOf(candidate);
  }
  throw new Error(`${purpose} needs Python 3.${MINOR_VERSION_MIN} or newer as python3 on the PATH.`);
}

/** The interpreter itself. A shim, as of pyenv, does work of its own at `pip install`, and two of them at once fail. */
const interpreterOf = async (command: string): Promise<string> =>
  (await answerOf(command, ['-c', 'import sys; print(sys.executable)'])) || command;

/** What a program prints; empty when it fails or does not exist. */
async function answerOf(command: string, args: readonly string[]): Promise<string> {
  const { failed, stdout } = await execa(command, args, { reject: false });
  return failed ? '' : stdout;
}

/** Installs in a temporary folder and renames it, so that `target` is always complete. */
async function install(python: string, purpose: string, target: string): Promise<void> {
  const folder = await mkdtemp(path.join(PYTHON_DIRECTORY, 'install-'));
  const packages = path.join(folder, 'packages');
  try {
    const installer = await findInstaller(python, path.join(folder, 'venv'), purpose);
    const quiet = ['--quiet', '--disable-pip-version-check', '--no-warn-script-location'];
    // The list also has what its packages need: pip must choose no version. What is imported is compiled then.
    const options = [...quiet, '--no-compile', '--no-deps', '--requirement', REQUIREMENTS, '--target', packages];
    await execa(installer, ['-m', 'pip', 'install', ...options], { stderr: 'inherit' });
    await rename(packages, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A Python with pip: the machine's own, or one in a new virtual environment. */
async function findInstaller(python: string, environment: string, purpose: string): Promise<string> {
  if ((await answerOf(python, ['-m', 'pip', '--version'])) !== '') return python;
  const made = await execa(python, ['-m', 'venv', environment], { reject: false });
  if (made.failed)
    throw new Error(
      `${purpose} needs a Python with pip or venv (on Debian: python3-pip or python3-venv). This Python has neither.`,
    );
  return path.join(environment, 'bin', 'python');
}
