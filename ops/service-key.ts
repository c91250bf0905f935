/** Whether the keys of a command are those of the running processes. */
import type { Queryable } from '../db/client.ts';
import { findForeignKeys } from '../db/queries/service-key.ts';
import { serviceKeysOf } from '../process/key-check.ts';
import type { OpsDeps } from './command.ts';
import { CommandError, EXIT } from './command-line/program.ts';

type Deps = Pick<OpsDeps, 'keys'> & { readonly db: Queryable };

/** @returns a sentence for each active key of the command that no process has */
export const listForeignKeys = ({ db, keys }: Deps): Promise<readonly string[]> =>
  findForeignKeys(db, serviceKeysOf(keys));

/**
 * Requires that processes have the active keys. With keys that they lack, they could read nothing any more, a new API
 * key would be refused, and a consumer whom they do not find becomes a new one at the next sign-in, permanently.
 *
 * @throws CommandError
 */
export async function requireKnownKeys(deps: Deps): Promise<void> {
  const faults = await listForeignKeys(deps);
  if (faults.length > 0)
    throw new CommandError(
      EXIT.refused,
      `${faults.join('; ')}. Run this with the keys of the running processes: a new key comes first there, then here.`,
    );
}
