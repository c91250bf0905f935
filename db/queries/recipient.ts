/**
 * Recipients. Personal data is stored as one text, sealed by the recipient's own key (`data-key.ts`). A `Recipient` has
 * only the last four characters of an account number.
 */
import { and, eq } from 'drizzle-orm';
import { notBefore } from '../../domain/clock.ts';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import {
  type GivenDetails,
  lastFour,
  type PersonalData,
  type Recipient,
  type RecipientChange,
  type RecipientDraft,
  type RecipientVerificationStatus,
  verificationAfter,
} from '../../domain/recipient.ts';
import type { Database, Queryable, Tx } from '../client.ts';
import { type DataKey, newDataKey, openDataKey, type ReadDeps } from '../data-key.ts';
import { newId } from '../id.ts';
import { recipientMetadata, recipients } from '../schema/recipient.ts';
import type { Sealer } from '../seal.ts';
import { statement } from '../statement.ts';
import { hasLabel, type Label } from './label.ts';
import { type List, type Range, readPage, type Source } from './page.ts';

export type RecipientRow = typeof recipients.$inferSelect;

const owned = (orgId: string, recipientId: string) =>
  and(eq(recipients.orgId, orgId), eq(recipients.recipientId, recipientId));

/** What the sealed personal data is bound to. */
const personalDataBinding = (recipientId: string): string => `recipient.personal_data:${recipientId}`;

/** A recipient with its personal data in full, for who pays it or changes it. */
export type OpenedRecipient = {
  readonly recipient: Recipient;
  /** Undefined once it is erased. */
  readonly held: { readonly personalData: PersonalData; readonly dataKey: DataKey } | undefined;
};

/** @throws SealError when none of the service's keys opens it */
export function openRecipient(sealer: Sealer, row: RecipientRow): OpenedRecipient {
  const { personalDataSealed, eventSequence: _sequence, eventAt: _eventAt, ...stored } = row;
  const dataKey = openDataKey(sealer, row);
  if (!dataKey || personalDataSealed === null) return { recipient: { ...stored, ...NOTHING_HELD }, held: undefined };
  const opened = dataKey.open(personalDataSealed, personalDataBinding(row.recipientId));
  const personalData = JSON.parse(opened.toString()) as PersonalData;
  return { recipient: { ...stored, ...shownOf(personalData) }, held: { personalData, dataKey } };
}

const NOTHING_HELD = { name: null, email: null, phone: null, bankDetails: null, mobileDetails: null };

function shownOf({ bankDetails, ...personalData }: PersonalData) {
  if (bankDetails === null) return { ...personalData, bankDetails };
  const { account_number: accountNumber, ...details } = bankDetails;
  return { ...personalData, bankDetails: { ...details, account_number_last4: lastFour(accountNumber) } };
}

/** The recipient's part of what `openRecipient` gives. */
export const toRecipient = (sealer: Sealer, row: RecipientRow): Recipient => openRecipient(sealer, row).recipient;

const sealPersonalData = (dataKey: Sealer, recipientId: string, personalData: PersonalData): string =>
  dataKey.seal(JSON.stringify(personalData), personalDataBinding(recipientId));

/** Writes a new recipient: active and unverified. */
export async function insertRecipient(
  db: Queryable,
  orgId: string,
  { kind, entityType, country, metadata, ...personalData }: RecipientDraft,
  { sealer, at }: { readonly sealer: Sealer; readonly at: Date },
): Promise<Recipient> {
  const recipientId = newId();
  const { dataKeySealed, dataKey } = newDataKey(sealer, recipientId);
  const stored = {
    recipientId,
    orgId,
    kind,
    entityType,
    country,
    metadata,
    dataKeySealed,
    isActive: true,
    verificationStatus: 'unverified' as const,
    erasedAt: null,
    createdAt: at,
    updatedAt: at,
  };
  const personalDataSealed = sealPersonalData(dataKey, recipientId, personalData);
  await db.insert(recipients).values({ ...stored, personalDataSealed });
  return { ...stored, ...shownOf(personalData) };
}

/** @throws DomainError `not_found`, for another organization's recipient as well */
export async function getRecipient({ db, sealer }: ReadDeps, orgId: string, recipientId: string): Promise<Recipient> {
  const [row] = await db.select().from(recipients).where(owned(orgId, recipientId)).limit(1);
  if (!row) throw new DomainError('not_found');
  return toRecipient(sealer, row);
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
export async function lockRecipient(
  tx: Tx,
  sealer: Sealer,
  orgId: string,
  recipientId: string,
): Promise<OpenedRecipient> {
  return openRecipient(sealer, await lockRecipientRow(tx, orgId, recipientId));
}

/** As `lockRecipient`, and opens nothing. */
export async function lockRecipientRow(tx: Tx, orgId: string, recipientId: string): Promise<RecipientRow> {
  await lockRecipientStatement(tx, recipientId);
  const [row] = await tx.select().from(recipients).where(owned(orgId, recipientId)).for('no key update');
  if (!row) throw new DomainError('not_found');
  return row;
}

/** Which recipients are wanted; every filter that is given must match. */
export type RecipientSelection = {
  readonly isActive?: boolean | undefined;
  readonly verificationStatus?: RecipientVerificationStatus | undefined;
  readonly country?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
};

/** A page of the organization's recipients, newest first, inactive ones included unless they are filtered out. */
export async function listRecipients(
  { db, sealer }: ReadDeps<Database>,
  orgId: string,
  { selection, page }: { readonly selection: RecipientSelection; readonly page: Page },
): Promise<Paged<Recipient>> {
  const list: List<RecipientRow> = {
    ...RECIPIENTS,
    ...sourceOf(db, orgId, selection),
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
  return { ...paged, items: paged.items.map((row) => toRecipient(sealer, row)) };
}

const RECIPIENTS = { table: recipients, createdAt: recipients.createdAt, id: recipients.recipientId } as const;

/**
 * The indexes are (organization, [country,] is_active, verification_status, creation), and for metadata (organization,
 * key, value, country, is_active, verification_status, creation).
 */
function sourceOf(
  db: Queryable,
  orgId: string,
  selection: RecipientSelection,
): Pick<List<RecipientRow>, 'where' | 'ranges' | 'idsFrom'> {
  const { isActive, verificationStatus, country, metadata = {} } = selection;
  const [label, ...others] = Object.entries(metadata);
  if (label) return { where: undefined, idsFrom: labeled(db, orgId, { selection, label, others }) };
  const ofOrganization = eq(recipients.orgId, orgId);
  if (isActive === undefined && verificationStatus === undefined && country === undefined)
    return { where: ofOrganization };
  return {
    where: and(ofOrganization, country === undefined ? undefined : eq(recipients.country, country)),
    ranges: rangesOf(recipients, selection),
  };
}

const rangesOf = (
  table: typeof recipients | typeof recipientMetadata,
  { isActive, verificationStatus }: RecipientSelection,
): Range[] => [
  { column: table.isActive, values: isActive === undefined ? undefined : [isActive] },
  { column: table.verificationStatus, values: verificationStatus && [verificationStatus] },
];

/** The recipients with one label; the others are looked up for each of them. */
function labeled(
  db: Queryable,
  orgId: string,
  { selection, label, others }: { selection: RecipientSelection; label: Label; others: readonly Label[] },
): Source {
  const [key, value] = label;
  const { country } = selection;
  return {
    table: recipientMetadata,
    createdAt: recipientMetadata.createdAt,
    id: recipientMetadata.recipientId,
    where: and(eq(recipientMetadata.orgId, orgId), eq(recipientMetadata.key, key), eq(recipientMetadata.value, value)),
    ranges: [
      { column: recipientMetadata.country, values: country === undefined ? undefined : [country] },
      ...rangesOf(recipientMetadata, selection),
    ],
    within: and(...others.map((wanted) => hasLabel(db, recipientMetadata, recipientMetadata, wanted))),
  };
}

/**
 * Changes a locked recipient, which is not erased; an empty change leaves it as it is.
 *
 * @param options `details`: both kinds as they are after the change
 */
export async function updateRecipient(
  tx: Tx,
  recipient: Recipient,
  { personalData, dataKey }: NonNullable<OpenedRecipient['held']>,
  options: { readonly change: RecipientChange; readonly details: GivenDetails; readonly at: Date },
): Promise<Recipient> {
  const { change, details, at } = options;
  if (Object.keys(change).length === 0) return recipient;
  const { metadata = recipient.metadata, bankDetails: _bank, mobileDetails: _mobile, ...given } = change;
  const changed = { ...personalData, ...given, ...details };
  const stored = {
    metadata,
    verificationStatus: verificationAfter(recipient, change),
    updatedAt: notBefore(at, recipient.updatedAt),
  };
  const { rowCount } = await tx
    .update(recipients)
    .set({ ...stored, personalDataSealed: sealPersonalData(dataKey, recipient.recipientId, changed) })
    .where(owned(recipient.orgId, recipient.recipientId));
  if (rowCount !== 1) throw new Error(`recipient ${recipient.recipientId} was changed without its lock`);
  return { ...recipient, ...stored, ...shownOf(changed) };
}

/** Deactivates a locked recipient. */
export async function setRecipientInactive(tx: Tx, recipient: Recipient, at: Date): Promise<Recipient> {
  const change = { isActive: false, updatedAt: notBefore(at, recipient.updatedAt) };
  await tx.update(recipients).set(change).where(owned(recipient.orgId, recipient.recipientId));
  return { ...recipient, ...change };
}
