/**
 * Operators as the service knows them: each has a personal token, which proves the name that a command gives. The local
 * sandbox takes names without a token.
 */
import { createHmac } from 'node:crypto';
import type { Pepper } from '../config/environment.ts';
import type { Queryable } from '../db/client.ts';
import {
  findOperatorByToken,
  hasOtherEnvironment,
  setTokenHash,
  type TokenHash,
} from '../db/queries/operator/token.ts';
import { environmentName, isRemote } from '../domain/runtime.ts';
import type { OpsDeps } from './command.ts';
import { CommandError, EXIT } from './command-line/program.ts';
import { listForeignKeys } from './service-key.ts';

export const hashToken = ({ id, secret }: Pepper, token: string): TokenHash => ({
  tokenHash: createHmac('sha256', secret).update(`operator\0${token}`).digest(),
  pepperId: id,
});

/**
 * Requires that the operator is who the command says. In the local sandbox a name is enough where no token is set. Only
 * a change of operators needs a token there, if another environment uses the database: a new token is valid in both.
 * Moves the token to the active pepper, but not in a preview, and not to a pepper that no process has: if that one was a
 * mistake, the token would be refused once the mistake is corrected.
 *
 * @throws CommandError
 */
export async function requireOperator(
  {
    db,
    runtime,
    keys,
    operatorToken,
    isPreview = false,
    changesOperators = false,
  }: Pick<OpsDeps, 'runtime' | 'keys' | 'operatorToken' | 'isPreview'> & {
    readonly db: Queryable;
    readonly changesOperators?: boolean;
  },
  operator: string,
): Promise<void> {
  if (operatorToken === undefined) {
    const isAlone = !changesOperators || !(await hasOtherEnvironment(db, environmentName(runtime)));
    if (!isRemote(runtime) && isAlone) return;
    throw new CommandError(
      EXIT.refused,
      isRemote(runtime)
        ? 'OPERATOR_TOKEN is not set: outside the local sandbox a change needs a token.'
        : 'OPERATOR_TOKEN is not set: another environment uses the database, and a change of its operators needs a token.',
    );
  }
  const [active] = keys.apiKeyPeppers;
  const hashes = keys.apiKeyPeppers.map((pepper) => hashToken(pepper, operatorToken));
  const known = await findOperatorByToken(db, hashes);
  if (known?.name !== operator)
    throw new CommandError(EXIT.refused, `OPERATOR_TOKEN is not a valid token of ${operator}.`);
  if (known.pepperId === active.id || isPreview) return;
  if ((await listForeignKeys({ db, keys })).length > 0) return;
  await setTokenHash(db, known.operatorId, hashToken(active, operatorToken));
}
