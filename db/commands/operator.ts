/** Adding and revoking operators. The first one is added with the credentials of the database alone. */
import { DomainError, stateConflict } from '../../domain/error.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import {
  countOperators,
  findOperator,
  insertOperator,
  lockOperators,
  setOperatorRevoked,
  type TokenHash,
} from '../queries/operator/token.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'now'>;
type Act = Omit<OperatorAct, 'requestId'>;

const objectIdOf = (name: string): string => `operator:${name}`;

/**
 * @param operator `hash`: of the new operator's token. `requireAdder` throws unless the caller is an operator. It is
 *   called under the lock, and not for the first operator ever. So of two first operators at once, one is refused
 * @throws DomainError `state_conflict` when there is an active operator of this name; what `requireAdder` throws
 */
export async function addOperator(
  deps: Deps,
  name: string,
  { hash, requireAdder }: { readonly hash: TokenHash; readonly requireAdder: (tx: Tx) => Promise<void> },
  act: Act,
): Promise<void> {
  const at = deps.now();
  await commit(deps, 'operator.add', async (tx) => {
    await lockOperators(tx);
    if ((await countOperators(tx)).ever > 0) await requireAdder(tx);
    if (await findOperator(tx, name)) throw stateConflict('active', `${name} is an operator already.`);
    await insertOperator(tx, { operatorId: newId(), name, ...hash, addedBy: act.operator, addedAt: at });
    await insertAuditEntry(tx, null, { objectId: objectIdOf(name), action: 'operator_add', ...act, at });
  });
}

/**
 * Revokes an operator's token permanently. What the operator approved stays approved.
 *
 * @param requireRevoker throws unless the caller is an operator. It is called under the lock: who was revoked a moment
 *   ago revokes nobody
 * @throws DomainError `not_found`; `state_conflict` for the last operator, without whom nobody could act; what
 *   `requireRevoker` throws
 */
export async function revokeOperator(
  deps: Deps,
  name: string,
  requireRevoker: (tx: Tx) => Promise<void>,
  act: Act,
): Promise<void> {
  const at = deps.now();
  await commit(deps, 'operator.revoke', async (tx) => {
    await lockOperators(tx);
    await requireRevoker(tx);
    if (!(await findOperator(tx, name))) throw new DomainError('not_found', {}, `There is no operator ${name}.`);
    if ((await countOperators(tx)).active === 1)
      throw new DomainError('state_conflict', {}, `${name} is the last operator. Add another one first.`);
    await setOperatorRevoked(tx, name, act.operator, at);
    await insertAuditEntry(tx, null, { objectId: objectIdOf(name), action: 'operator_revoke', ...act, at });
  });
}
