/**
 * Erasing a recipient (contract §4): its data key is destroyed, which makes its personal data unreadable in every
 * table, permanently. One operator requests it and another one confirms it.
 */
import { stateConflict } from '../../domain/error.ts';
import { recipientEventData } from '../../domain/resource/recipient.ts';
import { CONFIRM_WITHIN_MS } from '../../domain/review.ts';
import { environmentName } from '../../domain/runtime.ts';
import { type AuditAction, insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import {
  confirmErasure,
  destroyDataKey,
  findOpenErasure,
  hasOpenSettlement,
  insertErasure,
  lockRecipientToErase,
} from '../queries/erasure.ts';
import { recordEvent } from '../queries/event.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

/**
 * The first call requests it; the same call by another operator does it. A consumer's active recipient is deactivated
 * by it, since no consumer can do that. The key is not opened, so a recipient that nobody can read can be erased too.
 * A recipient of another environment is not found: the local sandbox asks for no token, so one person could act as two.
 *
 * @returns `isErased` false: it is requested, and can be confirmed until `expiresAt`
 * @throws DomainError `not_found`; `state_conflict` for a partner's active recipient, one that has an open settlement
 *   or is erased, and for the operator who requested it
 */
export async function eraseRecipient(
  deps: CommitDeps & Pick<CommandDeps, 'now' | 'runtime'>,
  recipientId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<{ readonly isErased: boolean; readonly expiresAt: Date }> {
  const at = deps.now();
  return await commit(deps, 'recipient.erase', async (tx) => {
    const { locked, ownerKind } = await lockRecipientToErase(tx, recipientId, environmentName(deps.runtime));
    const { orgId, erasedAt } = locked;
    if (erasedAt) throw stateConflict('erased', `It was erased at ${erasedAt.toISOString()}.`);
    if (locked.isActive && ownerKind === 'partner')
      throw stateConflict('active', `The partner deactivates it first: DELETE /v1/recipients/${recipientId}`);
    if (await hasOpenSettlement(tx, orgId, recipientId))
      throw stateConflict('open_settlement', 'A settlement to it is open. Wait for its end, or cancel it.');
    const audit = (action: AuditAction) =>
      insertAuditEntry(tx, orgId, { objectId: recipientId, action, operator, note, at });
    const open = await findOpenErasure(tx, recipientId, at);
    if (!open) {
      const expiresAt = new Date(at.getTime() + CONFIRM_WITHIN_MS);
      await insertErasure(tx, { recipientId, requestedBy: operator, requestedAt: at, expiresAt });
      await audit('recipient_erase_request');
      return { isErased: false, expiresAt };
    }
    if (open.requestedBy === operator)
      throw stateConflict(
        'requested',
        `This operator has requested it. Another one confirms it before ${open.expiresAt.toISOString()}.`,
      );
    await confirmErasure(tx, open.erasureId, operator);
    const erased = await destroyDataKey(tx, locked, at);
    if (locked.isActive) {
      await recordEvent(tx, {
        orgId,
        objectType: 'recipient',
        objectId: recipientId,
        type: 'recipient.deactivated',
        data: recipientEventData(erased),
        at: erased.updatedAt,
        requestId,
      });
    }
    await audit('recipient_erase');
    return { isErased: true, expiresAt: open.expiresAt };
  });
}
