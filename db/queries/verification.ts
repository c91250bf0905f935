/**
 * Verifications. A move writes the state row, the recipient, the event, and the outbox rows that signal the workflows
 * that wait for it. The recipient's row is locked first, then the verification's, and no other. A settlement reads the
 * recipient FOR SHARE before it is held. So either the move sees the held settlement and signals it, or the settlement
 * sees the decision.
 */
import { and, desc, eq, inArray, isNull, max, ne, type SQL, sql } from 'drizzle-orm';
import { notBefore } from '../../domain/clock.ts';
import { DomainError, stateConflict } from '../../domain/error.ts';
import type { EventType } from '../../domain/event.ts';
import { settlementMessage, verificationMessage } from '../../domain/outbox.ts';
import type { Recipient, RecipientVerificationStatus } from '../../domain/recipient.ts';
import { verificationResource } from '../../domain/resource/verification.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import {
  canMoveVerification,
  type NewVerification,
  OPEN_VERIFICATION_STATUSES,
  openedVerification,
  recipientStatusAfter,
  type Verification,
  type VerificationDecision,
  type VerificationStatus,
  type VerificationType,
} from '../../domain/verification.ts';
import { type Database, readSnapshot, type Tx } from '../client.ts';
import { type DataKey, openDataKey, type ReadDeps } from '../data-key.ts';
import { isId } from '../id.ts';
import { organizations } from '../schema/organization.ts';
import { recipients } from '../schema/recipient.ts';
import { settlements } from '../schema/settlement.ts';
import { verifications } from '../schema/verification.ts';
import type { Sealer } from '../seal.ts';
import { recordEvent, type Stamp } from './event.ts';
import { enqueue } from './outbox.ts';
import { getRecipient, lockRecipient, type OpenedRecipient } from './recipient.ts';

/** Both rows are locked until the transaction ends. */
export type LockedVerification = OpenedRecipient & { readonly verification: Verification };

export type VerificationMove = ({ readonly to: 'in_review' | 'expired' } | VerificationDecision) & Stamp;

const LIST_MAX = 100;
/** PostgreSQL takes 65 535 parameters in a statement. */
const SIGNAL_BATCH = 1_000;

const EVENT_OF: Partial<Record<VerificationStatus, EventType>> = {
  pending: 'verification.pending',
  verified: 'verification.verified',
  rejected: 'verification.rejected',
  expired: 'verification.expired',
};

const owned = (orgId: string, verificationId: string) =>
  and(eq(verifications.orgId, orgId), eq(verifications.verificationId, verificationId));

type VerificationRow = typeof verifications.$inferSelect;
type Subject = Pick<Verification, 'subjectName' | 'givenContact'>;

/** What the sealed parts are bound to. */
const binding = (part: 'subject' | 'verified_name', verificationId: string): string =>
  `verification.${part}:${verificationId}`;

/** The digest by which decisions about a name are found. */
export const nameDigest = (dataKey: DataKey, name: string): Buffer => dataKey.digest(name, 'verification.subject');

/**
 * A verification as stored, with its personal data.
 *
 * @param dataKey the recipient's; undefined once it is erased
 */
export function openVerification(
  dataKey: Sealer | undefined,
  {
    subjectSealed,
    subjectDigest: _digest,
    verifiedNameSealed,
    eventSequence: _sequence,
    eventAt: _eventAt,
    ...row
  }: VerificationRow,
): Verification {
  if (!dataKey) return { ...row, subjectName: null, givenContact: null, verifiedName: null };
  const opened = dataKey.open(subjectSealed, binding('subject', row.verificationId)).toString();
  const verifiedName =
    verifiedNameSealed && dataKey.open(verifiedNameSealed, binding('verified_name', row.verificationId)).toString();
  return { ...row, ...(JSON.parse(opened) as Subject), verifiedName };
}

/** Opens a verification of a locked recipient. A unique index refuses a second open one of its type. */
export async function insertVerification(
  tx: Tx,
  { recipient, held }: OpenedRecipient,
  opening: NewVerification,
): Promise<Verification> {
  if (!held) throw new Error(`recipient ${recipient.recipientId} is erased and takes no verification`);
  // After each earlier decision, even one by a clock that is ahead: an earlier rejection counts no more.
  const createdAt = await afterDecisions(tx, recipient, opening.createdAt);
  const verification = openedVerification(recipient, { ...opening, createdAt });
  const { subjectName, givenContact, verifiedName: _none, ...stored } = verification;
  const subject: Subject = { subjectName, givenContact };
  await tx.insert(verifications).values({
    ...stored,
    subjectSealed: held.dataKey.seal(JSON.stringify(subject), binding('subject', verification.verificationId)),
    subjectDigest: nameDigest(held.dataKey, held.personalData.name),
  });
  await setRecipientStatus(tx, recipient, recipientStatusAfter(recipient, verification, false), createdAt);
  await recordStatus(tx, verification, { at: createdAt, requestId: opening.requestId });
  await enqueue(tx, verificationMessage(verification, null, opening.requestId));
  return verification;
}

/** The organization's verification with this id. */
export const findVerification = (
  deps: ReadDeps,
  orgId: string,
  verificationId: string,
): Promise<Verification | undefined> => findOpened(deps, owned(orgId, verificationId));

/** The one verification for which the condition holds, with its personal data. */
export async function findOpened(
  { db, sealer }: ReadDeps,
  condition: SQL | undefined,
): Promise<Verification | undefined> {
  const [row] = await db
    .select({ stored: verifications, dataKeySealed: recipients.dataKeySealed })
    .from(verifications)
    .innerJoin(recipients, eq(recipients.recipientId, verifications.recipientId))
    .where(condition)
    .limit(1);
  if (!row) return undefined;
  const { stored, dataKeySealed } = row;
  return openVerification(openDataKey(sealer, { recipientId: stored.recipientId, dataKeySealed }), stored);
}

/**
 * The latest decision about a recipient under a name, as a JSON object or NULL, for a statement that reads more. A
 * rejection says nothing any more once another verification of the name was opened.
 *
 * @param orgId the expression that holds it; the others likewise. `digest` is the name's
 */
export const decisionAboutNameSql = (orgId: string, recipientId: string, digest: string): string => `(
    SELECT jsonb_build_object('to', latest.status, 'at', latest.decided_at) FROM (
      SELECT v.verification_id, v.status, v.decided_at FROM verifications v
      WHERE v.org_id = ${orgId} AND v.recipient_id = ${recipientId} AND v.subject_digest = ${digest}
        AND v.decided_at IS NOT NULL
      ORDER BY v.decided_at DESC, v.verification_id DESC LIMIT 1
    ) latest
    WHERE latest.status = 'verified' OR NOT EXISTS (
      SELECT FROM verifications v
      WHERE v.org_id = ${orgId} AND v.recipient_id = ${recipientId} AND v.subject_digest = ${digest}
        AND v.created_at >= latest.decided_at AND v.verification_id <> latest.verification_id))`;

/** The open verification of this type, of a locked recipient; it is locked too. */
export async function findOpenVerification(
  tx: Tx,
  { recipient, held }: OpenedRecipient,
  verificationType: VerificationType,
): Promise<Verification | undefined> {
  const [row] = await tx
    .select()
    .from(verifications)
    .where(
      and(
        eq(verifications.recipientId, recipient.recipientId),
        eq(verifications.verificationType, verificationType),
        inArray(verifications.status, [...OPEN_VERIFICATION_STATUSES]),
      ),
    )
    .for('update');
  return row && openVerification(held?.dataKey, row);
}

/**
 * Locks the recipient, then its verification.
 *
 * @throws DomainError `not_found`, for another organization's verification as well
 */
export async function lockVerification(
  tx: Tx,
  sealer: Sealer,
  orgId: string,
  verificationId: string,
): Promise<LockedVerification> {
  const [found] = await tx
    .select({ recipientId: verifications.recipientId })
    .from(verifications)
    .where(owned(orgId, verificationId))
    .limit(1);
  if (!found) throw new DomainError('not_found');
  const locked = await lockRecipient(tx, sealer, orgId, found.recipientId);
  const [row] = await tx.select().from(verifications).where(owned(orgId, verificationId)).for('update');
  if (!row) throw new DomainError('not_found');
  return { ...locked, verification: openVerification(locked.held?.dataKey, row) };
}

/**
 * As `lockVerification`, for a provider's event, which names no organization; undefined for an unknown id, and for one
 * of another environment.
 */
export async function lockVerificationTarget(
  tx: Tx,
  sealer: Sealer,
  verificationId: string,
  environment: EnvironmentName,
): Promise<LockedVerification | undefined> {
  if (!isId(verificationId)) return undefined;
  const [row] = await tx
    .select({ orgId: verifications.orgId })
    .from(verifications)
    .innerJoin(organizations, eq(organizations.orgId, verifications.orgId))
    .where(and(eq(verifications.verificationId, verificationId), eq(organizations.environment, environment)))
    .limit(1);
  return row && lockVerification(tx, sealer, row.orgId, verificationId);
}

/**
 * A recipient and its latest verifications, newest first, from one snapshot.
 *
 * @throws DomainError `not_found`, for another organization's recipient as well
 */
export async function readVerifications(
  { db, sealer }: ReadDeps<Database>,
  orgId: string,
  recipientId: string,
): Promise<{ readonly recipient: Recipient; readonly verifications: Verification[] }> {
  return await readSnapshot(db, async (tx) => {
    const recipient = await getRecipient({ db: tx, sealer }, orgId, recipientId);
    const dataKey = openDataKey(sealer, recipient);
    const rows = await tx
      .select()
      .from(verifications)
      .where(and(eq(verifications.orgId, orgId), eq(verifications.recipientId, recipientId)))
      .orderBy(desc(verifications.createdAt), desc(verifications.verificationId))
      .limit(LIST_MAX);
    return { recipient, verifications: rows.map((row) => openVerification(dataKey, row)) };
  });
}

/**
 * Moves a locked verification to another state.
 *
 * @returns the verification in its new state
 * @throws DomainError `state_conflict` when the table has no such transition
 */
export async function moveVerification(
  tx: Tx,
  { recipient, held, verification }: LockedVerification,
  move: VerificationMove,
): Promise<Verification> {
  if (!canMoveVerification(verification.status, move.to)) throw stateConflict(verification.status);
  const decided = 'verifiedName' in move;
  const earliest = notBefore(notBefore(move.at, verification.createdAt), recipient.updatedAt);
  const at = decided ? await afterDecisions(tx, verification, earliest) : earliest;
  const change = {
    status: move.to,
    decidedAt: decided ? at : null,
    rejectionReason: decided ? move.rejectionReason : null,
  };
  // Nothing new is kept about who was erased.
  const verifiedName = (decided && held && move.verifiedName) || null;
  const moved: Verification = { ...verification, ...change, verifiedName };
  const { rowCount } = await tx
    .update(verifications)
    .set({
      ...change,
      verifiedNameSealed:
        verifiedName && held ? held.dataKey.seal(verifiedName, binding('verified_name', moved.verificationId)) : null,
    })
    .where(and(owned(verification.orgId, verification.verificationId), eq(verifications.status, verification.status)));
  if (rowCount !== 1) throw new Error(`verification ${verification.verificationId} was moved without its lock`);
  const othersOpen = move.to !== 'in_review' && (await hasOtherOpen(tx, verification));
  await setRecipientStatus(tx, recipient, recipientStatusAfter(recipient, moved, othersOpen), at);
  await recordStatus(tx, moved, { at, requestId: move.requestId });
  if (decided) {
    await enqueue(tx, verificationMessage(moved, 'verificationDecided', move.requestId));
    await signalHeld(tx, recipient, move.requestId);
  }
  return moved;
}

/** Replaces the level of a locked verification. */
export async function setLevel(tx: Tx, verification: Verification, levelName: string): Promise<Verification> {
  await tx.update(verifications).set({ levelName }).where(owned(verification.orgId, verification.verificationId));
  return { ...verification, levelName };
}

/** Stores the provider's applicant; false when one was stored before, or when the level is no longer the one given. */
export async function setApplicant(tx: Tx, verification: Verification, applicantId: string): Promise<boolean> {
  const { rowCount } = await tx
    .update(verifications)
    .set({ applicantId })
    .where(
      and(
        owned(verification.orgId, verification.verificationId),
        isNull(verifications.applicantId),
        sql`${verifications.levelName} IS NOT DISTINCT FROM ${verification.levelName}`,
      ),
    );
  return rowCount === 1;
}

/**
 * The time of an opening or of a decision: later than each decision about the recipient before it, since the latest
 * one counts.
 */
async function afterDecisions(tx: Tx, { recipientId }: Pick<Verification, 'recipientId'>, at: Date): Promise<Date> {
  const [row] = await tx
    .select({ latest: max(verifications.decidedAt) })
    .from(verifications)
    .where(eq(verifications.recipientId, recipientId));
  return row?.latest ? notBefore(at, new Date(row.latest.getTime() + 1)) : at;
}

async function hasOtherOpen(tx: Tx, { verificationId, recipientId }: Verification): Promise<boolean> {
  const [row] = await tx
    .select({ verificationId: verifications.verificationId })
    .from(verifications)
    .where(
      and(
        eq(verifications.recipientId, recipientId),
        ne(verifications.verificationId, verificationId),
        inArray(verifications.status, [...OPEN_VERIFICATION_STATUSES]),
      ),
    )
    .limit(1);
  return row !== undefined;
}

async function setRecipientStatus(
  tx: Tx,
  recipient: Recipient,
  verificationStatus: RecipientVerificationStatus,
  at: Date,
): Promise<void> {
  if (verificationStatus === recipient.verificationStatus) return;
  await tx
    .update(recipients)
    .set({ verificationStatus, updatedAt: notBefore(at, recipient.updatedAt) })
    .where(and(eq(recipients.orgId, recipient.orgId), eq(recipients.recipientId, recipient.recipientId)));
}

/** Records the event of the verification's status, where the status has one. */
async function recordStatus(tx: Tx, verification: Verification, { at, requestId }: Stamp): Promise<void> {
  const type = EVENT_OF[verification.status];
  if (type === undefined) return;
  await recordEvent(tx, {
    orgId: verification.orgId,
    objectType: 'verification',
    objectId: verification.verificationId,
    type,
    data: verificationResource(verification),
    at,
    requestId,
  });
}

/**
 * Signals the workflow of every settlement that is held for this locked recipient: what verification says about its
 * payee has changed.
 */
export async function signalHeld(
  tx: Tx,
  { orgId, recipientId }: Pick<Recipient, 'orgId' | 'recipientId'>,
  requestId: string,
): Promise<void> {
  const held = await tx
    .select({
      settlementId: settlements.settlementId,
      orgId: settlements.orgId,
      corridor: settlements.corridor,
      paymentMethod: settlements.paymentMethod,
    })
    .from(settlements)
    .where(
      and(
        eq(settlements.orgId, orgId),
        eq(settlements.recipientId, recipientId),
        eq(settlements.status, 'compliance_hold'),
      ),
    );
  const messages = held.map((settlement) => settlementMessage(settlement, 'verificationDecided', requestId));
  for (let start = 0; start < messages.length; start += SIGNAL_BATCH)
    await enqueue(tx, ...messages.slice(start, start + SIGNAL_BATCH));
}
