/**
 * Recipients. An account number is sealed before it is stored, and nothing here reads it back: a `Recipient` has only
 * its last four characters.
 */
import { and, eq } from 'drizzle-orm';
import { notBefore } from '../../domain/clock.ts';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import {
  type GivenBankDetails,
  lastFour,
  type Recipient,
  type RecipientChange,
  type RecipientDraft,
  type RecipientVerificationStatus,
  type StoredDetails,
  verificationAfter,
} from '../../domain/recipient.ts';
import type { Database, Queryable, Tx } from '../client.ts';
import { newId } from '../id.ts';
import { recipients } from '../schema/recipient.ts';
import type { Sealer } from '../seal.ts';
import { statement } from '../statement.ts';
import { type List, readPage } from './page.ts';

export type RecipientRow = typeof recipients.$inferSelect;

export const toRecipient = ({
  accountNumberSealed: _sealed,
  eventSequence: _sequence,
  eventAt: _eventAt,
  ...row
}: RecipientRow): Recipient => row;
const owned = (orgId: string, recipientId: string) =>
  and(eq(recipients.orgId, orgId), eq(recipients.recipientId, recipientId));

/** What a sealed account number is bound to. It does not open for another recipient. */
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

/** The sealed number after a change of the bank details. One that is not given stays. */
function changedNumber(
  sealer: Sealer,
  recipientId: string,
  change: RecipientChange['bankDetails'],
): Partial<Pick<RecipientRow, 'accountNumberSealed'>> {
  if (change === null) return { accountNumberSealed: null };
  const given = change?.account_number;
  return given ? { accountNumberSealed: sealer.seal(given, accountNumberBinding(recipientId)) } : {};
}

/** Writes a new recipient: active and unverified. */
export async function insertRecipient(
  db: Queryable,
  orgId: string,
  draft: RecipientDraft,
  options: { readonly sealer: Sealer; readonly at: Date },
): Promise<Recipient> {
  const recipientId = newId();
  const row: RecipientRow = {
    ...draft,
    ...storedBankDetails(options.sealer, recipientId, draft.bankDetails),
    recipientId,
    orgId,
    isActive: true,
    verificationStatus: 'unverified',
    eventSequence: 0,
    eventAt: null,
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

/** A recipient with its account number in clear, for the moment in which a settlement freezes its payee. */
export type PayableRecipient = { readonly recipient: Recipient; readonly accountNumber: string | null };

/**
 * A stored recipient as it can be paid.
 *
 * @throws SealError when none of the service's keys opens the account number
 */
export function toPayable(sealer: Sealer, row: RecipientRow): PayableRecipient {
  const { accountNumberSealed, recipientId } = row;
  if (accountNumberSealed === null) return { recipient: toRecipient(row), accountNumber: null };
  const accountNumber = sealer.open(accountNumberSealed, accountNumberBinding(recipientId)).toString();
  return { recipient: toRecipient(row), accountNumber };
}

/**
 * The advisory lock of a recipient. Decisions about its settlements share it; a change of the recipient takes it alone.
 */
export const recipientLockSql = (recipientId: string): string => `hashtextextended('recipient ' || ${recipientId}, 0)`;

const lockRecipientStatement = statement<[recipientId: string], unknown>(
  'lock_recipient',
  `SELECT pg_advisory_xact_lock(${recipientLockSql('$1::text')})`,
);

/**
 * As `getRecipient`; locks the row until the transaction ends, and waits for the decisions that share it. Later
 * decisions wait in turn, so that many settlements of one recipient do not keep it from being changed.
 */
export async function lockRecipient(tx: Tx, orgId: string, recipientId: string): Promise<Recipient> {
  await lockRecipientStatement(tx, recipientId);
  const [row] = await tx.select().from(recipients).where(owned(orgId, recipientId)).for('no key update');
  if (!row) throw new DomainError('not_found');
  return toRecipient(row);
}

/** Which recipients are wanted; every filter that is given must match. */
export type RecipientSelection = {
  readonly isActive?: boolean | undefined;
  readonly verificationStatus?: RecipientVerificationStatus | undefined;
  readonly country?: string | undefined;
};

/** A page of the organization's recipients, newest first, inactive ones included unless they are filtered out. */
export async function listRecipients(
  db: Database,
  orgId: string,
  { selection, page }: { readonly selection: RecipientSelection; readonly page: Page },
): Promise<Paged<Recipient>> {
  const list: List<RecipientRow> = {
    ...selectedBy(orgId, selection),
    table: recipients,
    createdAt: recipients.createdAt,
    id: recipients.recipientId,
    cursorOf: ({ createdAt: at, recipientId: id }) => ({ at, id }),
  };
  const paged = await readPage(db, list, page, ({ where, orderBy, limit, offset }) =>
    db
      .select()
      .from(recipients)
      .where(where)
      .orderBy(...orderBy)
      .limit(limit)
      .offset(offset),
  );
  return { ...paged, items: paged.items.map(toRecipient) };
}

/** The indexes are (organization, [country,] is_active, verification_status, creation). */
function selectedBy(orgId: string, { isActive, verificationStatus, country }: RecipientSelection) {
  const ofOrganization = eq(recipients.orgId, orgId);
  if (isActive === undefined && verificationStatus === undefined && country === undefined)
    return { where: ofOrganization };
  return {
    where: and(ofOrganization, country === undefined ? undefined : eq(recipients.country, country)),
    ranges: [
      { column: recipients.isActive, values: isActive === undefined ? undefined : [isActive] },
      { column: recipients.verificationStatus, values: verificationStatus && [verificationStatus] },
    ],
  };
}

/**
 * Changes a locked recipient; an empty change leaves it as it is.
 *
 * @param options `details`: both kinds as they are after the change
 */
export async function updateRecipient(
  tx: Tx,
  recipient: Recipient,
  change: RecipientChange,
  options: { readonly details: StoredDetails; readonly sealer: Sealer; readonly at: Date },
): Promise<Recipient> {
  if (Object.keys(change).length === 0) return recipient;
  const { bankDetails, mobileDetails: _mobile, ...rest } = change;
  const [row] = await tx
    .update(recipients)
    .set({
      ...rest,
      ...options.details,
      ...changedNumber(options.sealer, recipient.recipientId, bankDetails),
      verificationStatus: verificationAfter(recipient, change),
      updatedAt: notBefore(options.at, recipient.updatedAt),
    })
    .where(owned(recipient.orgId, recipient.recipientId))
    .returning();
  if (!row) throw new Error(`recipient ${recipient.recipientId} was changed without its lock`);
  return toRecipient(row);
}

/** Deactivates a locked recipient. */
export async function setRecipientInactive(tx: Tx, recipient: Recipient, at: Date): Promise<Recipient> {
  const change = { isActive: false, updatedAt: notBefore(at, recipient.updatedAt) };
  await tx.update(recipients).set(change).where(owned(recipient.orgId, recipient.recipientId));
  return { ...recipient, ...change };
}
