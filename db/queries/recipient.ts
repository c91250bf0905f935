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
import { columnsOf, jsonColumns } from '../column-list.ts';
import { type DataKey, newDataKey, openDataKey, type ReadDeps } from '../data-key.ts';
import { newId } from '../id.ts';
import { recipientMetadata, recipients } from '../schema/recipient.ts';
import type { Sealer } from '../seal.ts';
import { type Parameter, statement } from '../statement.ts';
import { eventText, eventValues, type NumberedEvent } from './event.ts';
import { hasLabel, type Label } from './label.ts';
import { type List, pageOf, type Range, readPage, type Source } from './page.ts';

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
  const { personalDataSealed } = row;
  const dataKey = openDataKey(sealer, row);
  if (!dataKey || personalDataSealed === null) return { recipient: unopenedRecipient(row), held: undefined };
  const opened = dataKey.open(personalDataSealed, personalDataBinding(row.recipientId));
  const personalData = JSON.parse(opened.toString()) as PersonalData;
  return { recipient: recipientOf(row, shownOf(personalData)), held: { personalData, dataKey } };
}

const NOTHING_HELD = { name: null, email: null, phone: null, bankDetails: null, mobileDetails: null };

/** A recipient without its personal data. */
export const unopenedRecipient = (row: RecipientRow): Recipient => recipientOf(row, NOTHING_HELD);

type Shown = Pick<Recipient, keyof typeof NOTHING_HELD>;

function recipientOf(row: RecipientRow, shown: Shown): Recipient {
  const { personalDataSealed: _sealed, eventSequence: _sequence, eventAt: _eventAt, ...stored } = row;
  return { ...stored, ...shown };
}

function shownOf({ bankDetails, ...personalData }: PersonalData): Shown {
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

const RECIPIENT = jsonColumns<RecipientRow>(columnsOf(recipients), 'r');

const readStatement = statement<
  [orgId: string, recipientId: string],
  { readonly recipient: readonly unknown[]; readonly version: string }
>(
  'read_recipient',
  `SELECT ${RECIPIENT.text} AS recipient, r.xmin::text AS version FROM recipients r
  WHERE r.org_id = $1 AND r.recipient_id = $2`,
);

/** A recipient's row with the `version` that every change of the row replaces. */
type VersionedRow = { readonly row: RecipientRow; readonly version: string };

/** @throws DomainError `not_found`, for another organization's recipient as well */
export async function getRecipientRow(db: Queryable, orgId: string, recipientId: string): Promise<VersionedRow> {
  const [read] = await readStatement(db, orgId, recipientId);
  if (!read) throw new DomainError('not_found');
  return { row: RECIPIENT.rowOf(read.recipient), version: read.version };
}

/** @throws DomainError `not_found` */
export async function getRecipient({ db, sealer }: ReadDeps, orgId: string, recipientId: string): Promise<Recipient> {
  return toRecipient(sealer, (await getRecipientRow(db, orgId, recipientId)).row);
}

/**
 * The advisory lock of a recipient. Decisions about its settlements share it; a change of the recipient takes it alone.
 */
export const recipientLockSql = (recipientId: string): string => `hashtextextended('recipient ' || ${recipientId}, 0)`;

/** Takes that lock alone, before the row: who waits for it holds nothing that a decision needs. */
const ALONE = `alone AS MATERIALIZED (SELECT pg_advisory_xact_lock(${recipientLockSql('$2::text')}))`;

const lockStatement = statement<[orgId: string, recipientId: string], { readonly recipient: readonly unknown[] }>(
  'lock_recipient',
  `WITH ${ALONE} SELECT ${RECIPIENT.text} AS recipient FROM alone, recipients r
  WHERE r.org_id = $1 AND r.recipient_id = $2 FOR NO KEY UPDATE OF r`,
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
  const [locked] = await lockStatement(tx, orgId, recipientId);
  if (!locked) throw new DomainError('not_found');
  return RECIPIENT.rowOf(locked.recipient);
}

/** Which recipients are wanted; every filter that is given must match. */
export type RecipientSelection = {
  readonly isActive?: boolean | undefined;
  readonly verificationStatus?: RecipientVerificationStatus | undefined;
  readonly country?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
};

/**
 * A page of the organization's recipients, newest first, inactive ones included unless they are filtered out. Each is
 * to be opened by `toRecipient` as it is shown: a page takes long to open.
 */
export async function listRecipients(
  db: Database,
  orgId: string,
  { selection, page }: { readonly selection: RecipientSelection; readonly page: Page },
): Promise<Paged<RecipientRow>> {
  const list: List<RecipientRow> = {
    ...RECIPIENTS,
    ...sourceOf(db, orgId, selection),
    cursorOf: ({ createdAt: at, recipientId: id }) => ({ at, id }),
  };
  return await readPage(db, list, page, pageOf(db.select().from(recipients).$dynamic()));
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

const deactivateStatement = statement<readonly Parameter[], unknown>(
  'deactivate_recipient',
  `WITH ${ALONE}, deactivated AS (
    UPDATE recipients r SET is_active = false, updated_at = $4, event_sequence = $5, event_at = $6 FROM alone
    WHERE r.org_id = $1 AND r.recipient_id = $2 AND r.xmin = $3::xid RETURNING r.recipient_id
  ), ${eventText('deactivated', 6)}
  SELECT FROM deactivated`,
);

/**
 * Deactivates a recipient and writes the event, unless it was changed since it was read: then it writes nothing. Waits
 * for the decisions that share the recipient's lock.
 *
 * @param version of the row that was read
 */
export async function deactivate(
  db: Queryable,
  { orgId, recipientId, updatedAt }: RecipientRow,
  version: string,
  event: NumberedEvent,
): Promise<boolean> {
  const [at, eventAt] = [updatedAt.toISOString(), event.at.toISOString()];
  const values = [orgId, recipientId, version, at, event.sequence, eventAt, ...eventValues(event)];
  return (await deactivateStatement(db, ...values)).length === 1;
}
