/**
 * Connects the embedded database with the keys that sealed its data. The keys are in `.local`, and the database may be
 * elsewhere: when `.local` was deleted alone, nothing in the database can be opened, and no API key is valid.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { NamedKey } from '../../config/environment.ts';
import type { Config } from '../../config/load.ts';
import { replaceFile } from './replace-file.ts';

/**
 * Remembers the active key of a new database, by its hash.
 *
 * @throws Error in one sentence when none of the keys is the one of this database
 */
export async function matchKeys(databaseDirectory: string, encryptionKeys: Config['encryptionKeys']): Promise<void> {
  const file = path.join(databaseDirectory, 'key.sha256');
  const [active] = encryptionKeys;
  const known = existsSync(file) ? (await readFile(file, 'utf8')).trim() || undefined : undefined;
  if (known !== undefined && !encryptionKeys.some((key) => hashOf(key) === known))
    throw new Error(
      `the keys of the data in ${databaseDirectory} are gone (.local/sandbox-secrets.json is new or was changed): put the old file back, or run \`npm run reset\` to start with empty data.`,
    );
  if (known === hashOf(active)) return;
  await mkdir(databaseDirectory, { recursive: true });
  replaceFile(file, `${hashOf(active)}\n`);
}

const hashOf = ({ key }: NamedKey): string => createHash('sha256').update(key).digest('hex');
