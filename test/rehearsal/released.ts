/**
 * The last released version, beside this one: its sources are taken out of the clone's history once, into a folder of
 * `.local`, where they find the packages of this clone, unless they need others.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { z } from 'zod';
import { localDirectory, repositoryRoot } from '../../process/local/place.ts';
import { findProcess } from '../../process/local/process-record.ts';
import type { OtherVersion } from '../support/process-stack.ts';

export type Released = OtherVersion & {
  readonly commit: string;
  /** The folder of its sources. */
  readonly directory: string;
};

const COMMIT_FILE = 'test/rehearsal/released-commit.txt';

/** Prints the programs as JSON. Both modules exist in every version from the first released one on. */
const BUILD = `
  const { compiledPrograms } = await import('./scripts/stack/compiled.ts');
  const { workflowBundle } = await import('./worker/bundle.ts');
  await workflowBundle();
  console.log(JSON.stringify(await compiledPrograms(['api', 'worker'], 'own code')));`;

/** The hash of the released commit. */
const releasedCommit = async (): Promise<string> =>
  (await readFile(path.join(repositoryRoot, COMMIT_FILE), 'utf8')).trim();

/** Why there is no released version to compare with; undefined when there is one. */
export async function whyNotReleased(): Promise<string | undefined> {
  const commit = await releasedCommit();
  const { failed } = await execa('git', ['cat-file', '-e', `${commit}^{commit}`], {
    cwd: repositoryRoot,
    reject: false,
  });
  return failed
    ? `This clone does not have the released commit ${commit} of ${COMMIT_FILE}: fetch the whole history.`
    : undefined;
}

/** The folder of the released sources. */
export async function releasedSources(): Promise<string> {
  const commit = await releasedCommit();
  const directory = path.join(localDirectory, 'released', commit);
  await removeAbandoned(path.dirname(directory));
  const isComplete = async () =>
    existsSync(path.join(directory, 'node_modules')) || (existsSync(directory) && (await sharesPackages(directory)));
  if (await isComplete()) return directory;
  await rm(directory, { recursive: true, force: true });
  const temporary = `${directory}.${process.pid}`;
  const archive = `${temporary}.tar`;
  await mkdir(temporary, { recursive: true });
  await execa('git', ['archive', '--format=tar', `--output=${archive}`, commit], { cwd: repositoryRoot });
  await execa('tar', ['-xf', archive, '-C', temporary]);
  await rm(archive);
  // What builds and runs the sources is found in this clone, which is around them.
  if (!(await sharesPackages(temporary))) await installPackages(temporary);
  await rename(temporary, directory).catch(async (error: unknown) => {
    await rm(temporary, { recursive: true, force: true });
    // Another process has done the same meanwhile.
    if (!(await isComplete())) throw error;
  });
  return directory;
}

/** Removes what builds left that were interrupted: their process, whose id ends the name, is gone. */
export async function removeAbandoned(folder: string): Promise<void> {
  for (const name of existsSync(folder) ? await readdir(folder) : []) {
    const pid = /\.([0-9]+)(\.tar)?$/.exec(name)?.[1];
    if (pid !== undefined && findProcess(Number(pid)) === undefined)
      await rm(path.join(folder, name), { recursive: true, force: true });
  }
}

/** Begins with links to the packages of this clone, so that npm only installs what differs. */
async function installPackages(directory: string): Promise<void> {
  await execa('cp', ['-al', path.join(repositoryRoot, 'node_modules'), directory]);
  // npm would write into this file, which is this clone's too.
  await rm(path.join(directory, 'node_modules/.package-lock.json'), { force: true });
  await execa('npm', ['install', '--omit=dev', '--no-audit', '--no-fund'], { cwd: directory });
}

const Lock = z.object({ packages: z.record(z.string(), z.looseObject({ dev: z.boolean().optional() })) });

const sharesPackages = async (directory: string): Promise<boolean> =>
  (await packagesOf(directory)) === (await packagesOf(repositoryRoot));

/** The packages of the product, as they are locked. */
async function packagesOf(root: string): Promise<string> {
  const { packages } = Lock.parse(JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8')));
  return JSON.stringify(Object.entries(packages).filter(([name, { dev }]) => name !== '' && dev !== true));
}

/** Builds the released programs, if they are not built. */
export async function buildReleased(): Promise<Released> {
  const directory = await releasedSources();
  const run = (args: readonly string[], env: Record<string, string> = {}) =>
    execa(process.execPath, ['--import', 'tsx', ...args], { cwd: directory, env });
  const { stdout } = await run(['--input-type=module', '--eval', BUILD]);
  const migrate: Released['migrate'] = async ({ databaseUrl, migrationUrl }) => {
    await run(['ops/migrate.ts'], {
      RUNTIME_ENVIRONMENT: 'local-sandbox',
      DATABASE_URL: databaseUrl,
      MIGRATION_DATABASE_URL: migrationUrl,
    });
  };
  return { commit: await releasedCommit(), directory, programs: JSON.parse(stdout), migrate };
}
