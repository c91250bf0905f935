/**
 * Recipients. An account number is sealed on its way into the table and nothing here reads it back: what leaves
 * is a `Recipient`, which has its last four characters.
 */
import { and, count, desc, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import {
  type GivenBankDetails,
  lastFour,
  type Recipient,
  type RecipientChange,
  type RecipientDraft,
  verificationAfter,
} from '../../domain/recipient.ts';
import { recipientResource } from '../../domain/resource/recipient.ts';
import type { Database, Queryable, Tx } from '../client.ts';
import { newId } from '../id.ts';
import { recipients } from '../schema/recipient.ts';
import type { Sealer } from '../seal.ts';
import { recordEvent } from './event.ts';

type RecipientRow = typeof recipients.$inferSelect;

const toRecipient = ({ accountNumberSealed: _sealed, ...row }: RecipientRow): Recipient => row;
const owned = (orgId: string, recipientId: string) =>
  and(eq(recipients.orgId, orgId), eq(recipients.recipientId, recipientId));

/** What a sealed account number is bound to; it opens for no other recipient. */
export const accountNumberBinding = (recipientId: string): string => `recipient.account_number:${recipientId}`;

function storedBankDetails(
  sealer: Sealer,
  recipientId: string,
  given: GivenBankDetails | null,
): Pick<RecipientRow, 'bankDetails' | 'accountNumberSealed'> {
  if (given === null) return { bankDetails: null, accountNumberSealed: null };
  const { account_number: accountNumber, ...shown } = given;
  return {
    bankDetails: { ...shown, account_number_last4: lastFour(accountNumber) },
    accountNumberSealed: sealer.seal(accountNumber, accountNumberBinding(recipientId)),
  };
}

/** Writes a new recipient: active, unverified. */
export async function insertRecipient(
  db: Queryable,
  orgId: string,
  draft: RecipientDraft,
  options: { sealer: Sealer; at: Date },
): Promise<Recipient> {
  const recipientId = newId();
  const row: RecipientRow = {
    ...draft,
    ...storedBankDetails(options.sealer, recipientId, draft.bankDetails),
    recipientId,
    orgId,
    isActive: true,
    verificationStatus: 'unverified',
    createdAt: options.at,
    updatedAt: options.at,
  };
  await db.insert(recipients).values(row);
  return toRecipient(row);
}

/** @throws DomainError `not_found`, for another organization's recipient as well */
export async function getRecipient(db: Queryable, orgId: string, recipientId: string): Promise<Recipient> {
  const [row] = await db.select().from(recipients).where(owned(orgId, recipientId)).limit(1);
  if (!row) throw new DomainError('not_found');
  return toRecipient(row);
}

/** As `getRecipient`; until the transaction ends nobody can change what was read. */
export async function getRecipientForShare(tx: Tx, orgId: string, recipientId: string): Promise<Recipient> {
  const [row] = await tx.select().from(recipients).where(owned(orgId, recipientId)).for('share');
  if (!row) throw new DomainError('not_found');
  return toRecipient(row);
}

/** As `getRecipient`; until the transaction ends the recipient is the caller's to change. */
export async function lockRecipient(tx: Tx, orgId: string, recipientId: string): Promise<Recipient> {
  const [row] = await tx.select().from(recipients).where(owned(orgId, recipientId)).for('no key update');
  if (!row) throw new DomainError('not_found');
  return toRecipient(row);
}

/** Newest first, inactive ones included. */
export async function listRecipients(db: Database, orgId: string, page: Page): Promise<Paged<Recipient>> {
  const ofOrganization = eq(recipients.orgId, orgId);
  const [rows, [total]] = await Promise.all([
    db
      .select()
      .from(recipients)
      .where(ofOrganization)
      .orderBy(desc(recipients.createdAt), desc(recipients.recipientId))
      .limit(page.limit)
      .offset(page.offset),
    db.select({ count: count() }).from(recipients).where(ofOrganization),
  ]);
  return { items: rows.map(toRecipient), total: total?.count ?? 0 };
}

/** Changes a recipient that the caller has locked; a change of nothing leaves it as it is. */
export async function changeRecipient(
  tx: Tx,
  recipient: Recipient,
  change: RecipientChange,
  options: { sealer: Sealer; at: Date },
): Promise<Recipient> {
  if (Object.keys(change).length === 0) return recipient;
  const { bankDetails, ...rest } = change;
  const [row] = await tx
    .update(recipients)
    .set({
      ...rest,
      ...(bankDetails === undefined ? {} : storedBankDetails(options.sealer, recipient.recipientId, bankDetails)),
      verificationStatus: verificationAfter(recipient, change),
      updatedAt: options.at,
    })
    .where(owned(recipient.orgId, recipient.recipientId))
    .returning();
  if (!row) throw new Error(`recipient ${recipient.recipientId} was changed without its lock`);
  return toRecipient(row);
}

/** Deactivates a recipient that the caller has locked, and tells of it; one that is inactive stays as it is. */
export async function deactivateRecipient(
  tx: Tx,
  recipient: Recipient,
  options: { at: Date; requestId: string },
): Promise<Recipient> {
  if (!recipient.isActive) return recipient;
  const { at, requestId } = options;
  const { orgId, recipientId } = recipient;
  const inactive: Recipient = { ...recipient, isActive: false, updatedAt: at };
  await tx.update(recipients).set({ isActive: false, updatedAt: at }).where(owned(orgId, recipientId));
  await recordEvent(tx, {
    orgId,
    objectType: 'recipient',
    objectId: recipientId,
    type: 'recipient.deactivated',
    data: recipientResource(inactive),
    at,
    requestId,
  });
  return inactive;
}
