/**
 * A base backup of a running PostgreSQL, as its manual describes and `pg_basebackup` takes it: between the start and
 * the end of the backup the data files are copied while the server writes, then the log that makes them consistent.
 */
import { execFile } from 'node:child_process';
import { chmod, chown, copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Account } from '../../scripts/stack/postgres-program.ts';
import { onDatabase } from './connection.ts';

const run = promisify(execFile);

/** Files of the running server, and the log, which is copied last. */
const LEFT_OUT = ['postmaster.pid', 'postmaster.opts', 'pg_wal'];

/**
 * @param from the directory of a cluster that `startCluster` created
 * @param to the directory of the copy, from which another server can be started
 * @param during runs while the files are being copied
 */
export async function backUp(
  serverUrl: string,
  { from, to, account }: { from: string; to: string; account: Account },
  during: () => Promise<void>,
): Promise<void> {
  const [source, target] = [path.join(from, 'data'), path.join(to, 'data')];
  await onDatabase(`${serverUrl}/postgres`, async (client) => {
    await mkdir(target, { recursive: true, mode: 0o700 });
    await chmod(to, 0o755);
    await client.query(`SELECT pg_backup_start('rehearsal', fast => true)`);
    const names = (await readdir(source)).filter((name) => !LEFT_OUT.includes(name));
    const [first = [], second = []] = [names.slice(0, names.length / 2), names.slice(names.length / 2)];
    for (const part of [first, second]) {
      await run('cp', ['-a', ...part.map((name) => path.join(source, name)), target]);
      if (part === first) await during();
    }
    const { rows } = await client.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)',
    );
    await run('cp', ['-a', path.join(source, 'pg_wal'), target]);
    await rm(path.join(target, 'backup_label'), { force: true });
    await writeFile(path.join(target, 'backup_label'), rows[0]?.labelfile ?? '', { mode: 0o600 });
  });
  await copyFile(path.join(from, 'password'), path.join(to, 'password'));
  const { uid, gid } = account;
  if (uid !== undefined && gid !== undefined)
    await Promise.all([target, path.join(target, 'backup_label')].map((item) => chown(item, uid, gid)));
}
