/**
 * A new key for an organization that has lost its own. One operator requests it and another one confirms it, so that no
 * operator can take over an organization alone.
 */
import { DomainError, stateConflict } from '../../domain/error.ts';
import { CONFIRM_WITHIN_MS } from '../../domain/review.ts';
import type { ApiKeyCredential } from '../queries/api-key.ts';
import { type AuditAction, insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import { confirmKeyReissue, findOpenKeyReissue, insertKeyReissue } from '../queries/key-reissue.ts';
import { createFullKey } from './api-key.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';
import { lockOperatedOrganization } from './organization.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'now' | 'runtime'>;

/**
 * The first call requests a key; the same call by another operator creates it. The organization's other keys stay as
 * they are: only the partner knows which of them is lost. Its subscribers are told of the new one.
 *
 * @param credential of a new key, which is stored only when it is confirmed
 * @returns `keyId` null: it is requested, and can be confirmed until `expiresAt`
 * @throws DomainError `not_found`; `state_conflict` for a consumer, and for the operator who requested it
 */
export async function reissueApiKey(
  deps: Deps,
  orgId: string,
  credential: ApiKeyCredential,
  { operator, note, requestId }: OperatorAct,
): Promise<{ readonly keyId: string | null; readonly expiresAt: Date }> {
  const at = deps.now();
  return await commit(deps, 'api_key.reissue', async (tx) => {
    const { kind } = await lockOperatedOrganization(tx, deps, orgId);
    if (kind !== 'partner')
      throw new DomainError('state_conflict', {}, 'A consumer has no API key. It signs in with a one-time code.');
    const audit = (action: AuditAction) => insertAuditEntry(tx, orgId, { objectId: orgId, action, operator, note, at });
    const open = await findOpenKeyReissue(tx, orgId, at);
    if (!open) {
      const expiresAt = new Date(at.getTime() + CONFIRM_WITHIN_MS);
      await insertKeyReissue(tx, { orgId, requestedBy: operator, requestedAt: at, expiresAt });
      await audit('key_reissue_request');
      return { keyId: null, expiresAt };
    }
    if (open.requestedBy === operator)
      throw stateConflict(
        'requested',
        `This operator has requested it. Another one confirms it before ${open.expiresAt.toISOString()}.`,
      );
    const keyId = await createFullKey(tx, orgId, credential, { at, requestId });
    await confirmKeyReissue(tx, open.reissueId, { confirmedBy: operator, keyId });
    await audit('key_reissue');
    return { keyId, expiresAt: open.expiresAt };
  });
}
