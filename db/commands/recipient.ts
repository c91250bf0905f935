/** Recipients of payouts (contract §4). They are deactivated and never deleted, because settlements refer to them. */
import { notBefore } from '../../domain/clock.ts';
import { DomainError, stateConflict } from '../../domain/error.ts';
import { changedDetails, type Recipient, type RecipientChange, type RecipientDraft } from '../../domain/recipient.ts';
import { recipientEventData } from '../../domain/resource/recipient.ts';
import { numberedEvent } from '../queries/event.ts';
import type { Answer } from '../queries/idempotency-key.ts';
import { takeQuota } from '../queries/quota.ts';
import {
  deactivate,
  getRecipientRow,
  insertRecipient,
  lockRecipient,
  toRecipient,
  unopenedRecipient,
  updateRecipient,
} from '../queries/recipient.ts';
import { signalHeld } from '../queries/verification.ts';
import { type CommandDeps, type CommitDeps, commit, commitStatement } from './commit.ts';
import { type Creation, type CreationDeps, commitCreation } from './creation.ts';

/**
 * Registers a recipient: active and unverified.
 *
 * @param draft its details must be those of its country: the schema of the request checks them
 * @throws DomainError `idempotency_key_reused`, `quota_exceeded`
 */
export async function createRecipient(
  deps: CreationDeps,
  orgId: string,
  draft: RecipientDraft,
  creation: Creation<Recipient>,
): Promise<Answer> {
  return await commitCreation(deps, { ...creation, name: 'recipient.create' }, async (tx) => {
    const created = await insertRecipient(tx, orgId, draft, { sealer: deps.sealer, at: deps.now() });
    // Last: creations of one organization wait for each other from here on.
    await takeQuota(tx, orgId, 'recipients');
    return { id: created.recipientId, created, about: created };
  });
}

/**
 * Changes the fields that are present. With another name, another decision may count for the settlements that are held
 * (`decisionAboutPayee`), so they are signalled.
 *
 * @throws DomainError `not_found`; `state_conflict` for an inactive recipient; ValidationError
 */
export async function changeRecipient(
  deps: CommitDeps & Pick<CommandDeps, 'sealer' | 'now'>,
  orgId: string,
  recipientId: string,
  { change, requestId }: { readonly change: RecipientChange; readonly requestId: string },
): Promise<Recipient> {
  return await commit(deps, 'recipient.change', async (tx) => {
    const { recipient, held } = await lockRecipient(tx, deps.sealer, orgId, recipientId);
    const details = held && changedDetails(recipient.country, held.personalData, change);
    if (!recipient.isActive || !held || !details)
      throw stateConflict('inactive', 'The recipient is inactive and takes no change.');
    const changed = await updateRecipient(tx, recipient, held, { change, details, at: deps.now() });
    if (changed.name !== recipient.name) await signalHeld(tx, recipient, requestId);
    return changed;
  });
}

/** So often a deactivation begins again. Each time another request has changed the recipient. */
const DEACTIVATIONS_MAX = 10;

/**
 * Deactivates a recipient and records the event; an inactive recipient stays as it is. Reads it without a lock, and
 * writes only if it has not changed since. Otherwise it begins again. It is opened only to be returned, so that one
 * that nobody can read is deactivated too, and can then be erased.
 *
 * @throws DomainError `not_found`; `temporarily_unavailable` when others change it again and again
 * @throws SealError when none of the service's keys opens it; it is inactive then
 */
export async function deactivateRecipient(
  deps: CommitDeps & Pick<CommandDeps, 'sealer' | 'now'>,
  orgId: string,
  recipientId: string,
  requestId: string,
): Promise<Recipient> {
  for (let tries = 0; tries < DEACTIVATIONS_MAX; tries += 1) {
    const { row, version } = await getRecipientRow(deps.db, orgId, recipientId);
    if (!row.isActive) return toRecipient(deps.sealer, row);
    const inactive = { ...row, isActive: false, updatedAt: notBefore(deps.now(), row.updatedAt) };
    const event = numberedEvent(
      {
        orgId,
        objectType: 'recipient',
        objectId: recipientId,
        type: 'recipient.deactivated',
        data: recipientEventData(unopenedRecipient(inactive)),
        at: notBefore(inactive.updatedAt, row.eventAt ?? inactive.updatedAt),
        requestId,
      },
      row.eventSequence + 1,
    );
    const isWritten = await commitStatement(deps, 'recipient.deactivate', (db) =>
      deactivate(db, inactive, version, event),
    );
    if (isWritten) return toRecipient(deps.sealer, inactive);
  }
  throw new DomainError('temporarily_unavailable', {}, 'Other requests change this recipient. Repeat the request.');
}
