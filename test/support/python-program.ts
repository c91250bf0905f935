/**
 * Installs packages of Python, in the exact versions of a list, in a folder under `.local`. It needs Python 3 with
 * `pip` or `venv`; one of the two is enough. The machine's Python is not changed.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';

export type PythonProgram = {
  readonly command: string;
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
};

export type PythonPackages = {
  /** What they are for, as a sentence begins with it. */
  readonly purpose: string;
  /** The oldest Python 3 that the packages run on; 10 if it is not given. */
  readonly minorVersionMin?: number;
  /** The file that lists all of them, with their versions and hashes. */
  readonly requirements: string;
  /** Holds one installation for each version of the requirements. */
  readonly directory: string;
};

/**
 * @param say prints a line before something that takes minutes
 * @throws Error in one sentence when there is no Python, or it has neither pip nor venv
 */
export async function acquirePython(
  { purpose, requirements, directory, minorVersionMin = 10 }: PythonPackages,
  say: (line: string) => void,
): Promise<PythonProgram> {
  const python = await findPython(purpose, minorVersionMin);
  const version = createHash('sha256')
    .update(readFileSync(requirements))
    .update(await answerOf(python, ['--version']))
    .digest('hex');
  const installed = path.join(directory, version.slice(0, 16));
  if (!existsSync(installed)) {
    say(`Installing packages of Python under ${directory}, once; this takes a minute or two.`);
    await install(python, { purpose, requirements, directory }, installed);
  }
  return {
    command: python,
    directory,
    env: { PYTHONPATH: installed, PYTHONNOUSERSITE: '1', PYTHONDONTWRITEBYTECODE: '1' },
  };
}

const CANDIDATES = ['python3', 'python'];

async function findPython(purpose: string, minorVersionMin: number): Promise<string> {
  for (const candidate of CANDIDATES) {
    const [, minor] = /^Python 3\.(\d+)/.exec(await answerOf(candidate, ['--version'])) ?? [];
    if (Number(minor) >= minorVersionMin) return await interpreterOf(candidate);
  }
  throw new Error(`${purpose} needs Python 3.${minorVersionMin} or newer as python3 on the PATH.`);
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
async function install(
  python: string,
  { purpose, requirements, directory }: PythonPackages,
  target: string,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  const folder = await mkdtemp(path.join(directory, 'install-'));
  const packages = path.join(folder, 'packages');
  try {
    const installer = await findInstaller(python, path.join(folder, 'venv'), purpose);
    const options = [
      '--quiet',
      '--disable-pip-version-check',
      '--no-warn-script-location',
      '--require-hashes',
      '--requirement',
      requirements,
      '--target',
      packages,
    ];
    await execa(installer, ['-m', 'pip', 'install', ...options], { stderr: 'inherit' });
    await rename(packages, target).catch((error: unknown) => {
      // Another run has installed it meanwhile.
      if (!existsSync(target)) throw error;
    });
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
