/**
 * Opening a verification (contract §8): the record, its event and the request to start its workflow are one
 * transaction under the recipient's lock, so that two at once open one. Whatever a provider is then asked, the record
 * is there before.
 */
import type { Tx } from '../db/client.ts';
import { newId } from '../db/id.ts';
import { enqueue } from '../db/queries/outbox.ts';
import { lockRecipient } from '../db/queries/recipient.ts';
import { expireIfOver, findOpenVerification, insertVerification, setApplicant } from '../db/queries/verification.ts';
import { DomainError } from '../domain/error.ts';
import { type Applicant, DEFAULT_LEVEL } from '../domain/idverify.ts';
import { sandboxVerificationMessage } from '../domain/outbox.ts';
import type { Recipient } from '../domain/recipient.ts';
import { verificationDetail } from '../domain/resource/verification.ts';
import {
  type DocumentType,
  defaultVerificationType,
  type GivenContact,
  type NewVerification,
  openedVerification,
  type Verification,
  type VerificationType,
} from '../domain/verification.ts';
import type { ApiDeps } from './deps.ts';
import { bindAnswer, type CommandAnswer, findAnswer, type KeyedCommand } from './idempotency.ts';

type Opening = { readonly orgId: string; readonly recipientId: string; readonly requestId: string };

export type ManualOpening = Opening & {
  readonly verificationType: VerificationType | undefined;
  readonly documentType: DocumentType | null;
  readonly documentCountry: string | null;
  /** Where the caller sent a key: it binds this command for ever. */
  readonly keyed: KeyedCommand | undefined;
};

/**
 * Opens a verification that is decided by hand, or answers as the key's first use was answered.
 *
 * @throws DomainError `idempotency_key_reused`, `not_found`, `state_conflict`; none binds the key
 */
export async function openManualVerification(deps: ApiDeps, opening: ManualOpening): Promise<CommandAnswer> {
  const answered = opening.keyed && (await findAnswer(deps.db, opening.keyed));
  if (answered) return answered;
  const answer = await deps.db.transaction((tx) => commitManual(deps, tx, opening));
  deps.dispatcher.nudge();
  return answer;
}

async function commitManual(deps: ApiDeps, tx: Tx, opening: ManualOpening): Promise<CommandAnswer> {
  const recipient = await lockRecipient(tx, opening.orgId, opening.recipientId);
  const record: NewVerification = {
    verificationId: newId(),
    verificationType: opening.verificationType ?? defaultVerificationType(recipient.entityType),
    documentType: opening.documentType,
    documentCountry: opening.documentCountry,
    provider: 'manual_mock',
    levelName: null,
    givenContact: null,
    requestId: opening.requestId,
    createdAt: deps.now(),
  };
  const body = Buffer.from(JSON.stringify(verificationDetail(openedVerification(recipient, record))));
  const answer = { resourceId: record.verificationId, status: 201, body };
  // Before the recipient is judged: another request with this key may have opened the verification meanwhile.
  const bound = opening.keyed
    ? await bindAnswer(tx, opening.keyed, answer, record.createdAt)
    : { ...answer, replayed: false };
  if (bound.replayed) return bound;
  const { free, open } = await findPlace(deps, tx, recipient, record.verificationType);
  if (open) throw alreadyOpen(open);
  await insertVerification(tx, free, record);
  return bound;
}

export type ApplicantOpening = Opening & {
  readonly levelName: string | undefined;
  readonly givenContact: GivenContact;
};

export type OpenedApplicant = {
  readonly verification: Verification;
  readonly applicant: Applicant;
  readonly simulation: boolean;
};

/**
 * Opens a verification by the identity provider, or goes on with the open one, and has the provider make its
 * applicant. Whatever fails, the same request again goes on from there.
 *
 * @throws DomainError `provider_not_configured`, `not_found`, `state_conflict`, `temporarily_unavailable`
 */
export async function openApplicant(deps: ApiDeps, opening: ApplicantOpening): Promise<OpenedApplicant> {
  const provider = deps.idverify;
  if (!provider) throw new DomainError('provider_not_configured');
  const { recipient, verification, levelName } = await deps.db.transaction((tx) => commitApplicant(deps, tx, opening));
  deps.dispatcher.nudge();
  const { verificationId, verificationType } = verification;
  const applicant = await provider.createApplicant({
    verificationId,
    verificationType,
    levelName,
    email: recipient.email,
    phone: recipient.phone,
  });
  await deps.db.transaction(async (tx) => {
    const named = await setApplicant(tx, verification, applicant.applicantId);
    // The simulated provider begins to look at an applicant when there is one.
    if (named && provider.simulation) await enqueue(tx, sandboxVerificationMessage(verification, opening.requestId));
  });
  deps.dispatcher.nudge();
  return { verification, applicant, simulation: provider.simulation };
}

async function commitApplicant(deps: ApiDeps, tx: Tx, opening: ApplicantOpening) {
  const recipient = await lockRecipient(tx, opening.orgId, opening.recipientId);
  const verificationType = defaultVerificationType(recipient.entityType);
  const levelName = opening.levelName ?? DEFAULT_LEVEL[verificationType];
  const { free, open } = await findPlace(deps, tx, recipient, verificationType);
  if (open) {
    if (open.provider !== 'idverify' || (opening.levelName !== undefined && open.levelName !== levelName))
      throw alreadyOpen(open);
    return { recipient, verification: open, levelName: open.levelName ?? levelName };
  }
  const verification = await insertVerification(tx, free, {
    verificationId: newId(),
    verificationType,
    documentType: null,
    documentCountry: null,
    provider: 'idverify',
    levelName,
    givenContact: opening.givenContact,
    requestId: opening.requestId,
    createdAt: deps.now(),
  });
  return { recipient, verification, levelName };
}

/**
 * The open verification of this type, or the recipient, free for a new one.
 *
 * @throws DomainError `state_conflict` when the recipient is inactive
 */
async function findPlace(
  deps: ApiDeps,
  tx: Tx,
  recipient: Recipient,
  verificationType: VerificationType,
): Promise<{ readonly free: Recipient; readonly open: Verification | undefined }> {
  if (!recipient.isActive)
    throw new DomainError(
      'state_conflict',
      { current_state: 'inactive' },
      'The recipient is inactive and takes no verification.',
    );
  const found = await findOpenVerification(tx, recipient, verificationType);
  if (!found) return { free: recipient, open: undefined };
  const verification = await expireIfOver(tx, { recipient, verification: found }, deps.now());
  return verification.status === 'expired'
    ? { free: await lockRecipient(tx, recipient.orgId, recipient.recipientId), open: undefined }
    : { free: recipient, open: verification };
}

const alreadyOpen = ({ status, verificationId }: Verification): DomainError =>
  new DomainError(
    'state_conflict',
    { current_state: status, verification_id: verificationId },
    'A verification of this type is open for the recipient. Wait for its decision.',
  );
