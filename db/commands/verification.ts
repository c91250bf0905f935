/**
 * Verifications (contract §8): opening and deciding them. Every command locks the recipient first, then the
 * verification. So of two requests at the same moment one opens a verification and the other finds it, and the first
 * decision counts.
 */
import { notBefore } from '../../domain/clock.ts';
import { DomainError, stateConflict } from '../../domain/error.ts';
import { DEFAULT_LEVEL } from '../../domain/idverify.ts';
import { sandboxVerificationMessage } from '../../domain/outbox.ts';
import type { Recipient } from '../../domain/recipient.ts';
import {
  type DocumentType,
  defaultVerificationType,
  type GivenContact,
  isOpen,
  isSameDecision,
  type NewVerification,
  type Verification,
  type VerificationDecision,
  type VerificationType,
} from '../../domain/verification.ts';
import type { Tx } from '../client.ts';
import type { ReadDeps } from '../data-key.ts';
import { newId, verificationIdOf } from '../id.ts';
import type { Stamp } from '../queries/event.ts';
import type { Answer, KeyedRequest } from '../queries/idempotency-key.ts';
import { enqueue } from '../queries/outbox.ts';
import { takeQuota } from '../queries/quota.ts';
import { lockRecipient, type OpenedRecipient } from '../queries/recipient.ts';
import {
  findOpenVerification,
  findVerification,
  insertVerification,
  type LockedVerification,
  lockVerification,
  moveVerification,
  setApplicant,
  setLevel,
} from '../queries/verification.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';
import { type Creation, type CreationDeps, commitCreation, findFirstAnswer } from './creation.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'sealer' | 'now'>;

type Opening = { readonly orgId: string; readonly recipientId: string; readonly requestId: string };

export type ManualOpening = Opening & {
  /** Undefined: the type that fits the recipient. */
  readonly verificationType: VerificationType | undefined;
  readonly documentType: DocumentType | null;
  readonly documentCountry: string | null;
};

/**
 * Opens a verification that is decided manually.
 *
 * @throws DomainError `idempotency_key_reused`, `not_found`, `state_conflict`, `quota_exceeded`; none binds the key
 */
export async function openManualVerification(
  deps: CreationDeps,
  opening: ManualOpening,
  creation: Creation<Verification>,
): Promise<Answer> {
  return await commitCreation(deps, { ...creation, name: 'verification.open_manual' }, async (tx) => {
    const locked = await lockRecipient(tx, deps.sealer, opening.orgId, opening.recipientId);
    const { recipient } = locked;
    const record = {
      ...manualVerification(opening, recipient, notBefore(deps.now(), recipient.updatedAt)),
      verificationId: newVerificationId(creation.keyed),
    };
    const current = await findOpenAfterExpiry(deps, tx, locked, record.verificationType, record.createdAt);
    if (current.open) throw alreadyOpen(current.open);
    await requireUnusedId({ db: tx, sealer: deps.sealer }, recipient, record.verificationId);
    await takeQuota(tx, opening.orgId, 'verifications');
    const created = await insertVerification(tx, current, record);
    return { id: created.verificationId, created };
  });
}

const newVerificationId = (keyed: KeyedRequest | undefined): string =>
  keyed ? verificationIdOf(keyed.orgId, keyed.idempotencyKey) : newId();

/**
 * A key that is not bound may have begun a verification: the provider failed, and the request was not repeated.
 *
 * @throws DomainError `idempotency_key_reused`, `state_conflict`
 */
async function requireUnusedId(
  deps: ReadDeps<Tx>,
  { orgId, recipientId }: Recipient,
  verificationId: string,
): Promise<void> {
  const begun = await findVerification(deps, orgId, verificationId);
  if (!begun) return;
  if (begun.recipientId !== recipientId)
    throw new DomainError('idempotency_key_reused', { mismatch: ['recipient_id'] });
  throw stateConflict(begun.status, undefined, { verification_id: verificationId });
}

const manualVerification = (
  opening: ManualOpening,
  recipient: Recipient,
  createdAt: Date,
): Omit<NewVerification, 'verificationId'> => ({
  verificationType: opening.verificationType ?? defaultVerificationType(recipient.entityType),
  documentType: opening.documentType,
  documentCountry: opening.documentCountry,
  provider: 'manual_mock',
  levelName: null,
  givenContact: null,
  requestId: opening.requestId,
  createdAt,
});

export type ProviderOpening = Opening & {
  /** Undefined for a request without a key. */
  readonly keyed: KeyedRequest | undefined;
  /** Why a new request is refused, by what the route knows. A key that is bound is answered nevertheless. */
  readonly refusal?: Error | undefined;
  /** Undefined: the provider's default level for the type. */
  readonly levelName: string | undefined;
  readonly givenContact: GivenContact;
};

export type OpenedForProvider = { readonly recipient: Recipient; readonly verification: Verification };

/**
 * Opens a verification that the identity provider decides, or returns the one that is open. The record exists before
 * the provider is called, so that the request can be sent again. Until its applicant exists, another level replaces its
 * level: the provider is asked for that one from its next attempt on.
 *
 * @returns the answer, when the request's key is bound
 * @throws DomainError `idempotency_key_reused`, `not_found`, `state_conflict`, `quota_exceeded`; the refusal
 */
export async function openProviderVerification(
  deps: CreationDeps,
  opening: ProviderOpening,
): Promise<OpenedForProvider | { readonly answered: Answer }> {
  return await commit(deps, 'verification.open_provider', async (tx) => {
    const { keyed } = opening;
    const answered = keyed && (await findFirstAnswer(deps, tx, { keyed, hasSecret: true }));
    if (answered) return { answered };
    if (opening.refusal) throw opening.refusal;
    const locked = await lockRecipient(tx, deps.sealer, opening.orgId, opening.recipientId);
    const verificationType = defaultVerificationType(locked.recipient.entityType);
    const levelName = opening.levelName ?? DEFAULT_LEVEL[verificationType];
    const createdAt = notBefore(deps.now(), locked.recipient.updatedAt);
    const { open, ...current } = await findOpenAfterExpiry(deps, tx, locked, verificationType, createdAt);
    const { recipient } = current;
    if (open) {
      if (open.provider !== 'idverify') throw alreadyOpen(open);
      if (opening.levelName === undefined || open.levelName === levelName) return { recipient, verification: open };
      // The provider may refuse the level, for as long as it lacks it. Once it has an applicant, the level is fixed.
      if (open.applicantId !== null || open.status !== 'pending') throw alreadyOpen(open);
      return { recipient, verification: await setLevel(tx, open, levelName) };
    }
    const verificationId = newVerificationId(keyed);
    await requireUnusedId({ db: tx, sealer: deps.sealer }, recipient, verificationId);
    await takeQuota(tx, opening.orgId, 'verifications');
    const verification = await insertVerification(tx, current, {
      verificationId,
      verificationType,
      documentType: null,
      documentCountry: null,
      provider: 'idverify',
      levelName,
      givenContact: opening.givenContact,
      requestId: opening.requestId,
      createdAt,
    });
    return { recipient, verification };
  });
}

/**
 * Stores the applicant that the provider created for a verification. The first one stays.
 *
 * @param verification as it was when the provider was asked
 * @param applicant `simulated`: the sandbox's simulated provider reviews it from now on
 * @returns false when it was not stored: there is one, or another level has replaced the one that was asked for
 */
export async function storeApplicant(
  deps: CommitDeps,
  verification: Verification,
  applicant: { readonly applicantId: string; readonly simulated: boolean },
): Promise<boolean> {
  return await commit(deps, 'verification.store_applicant', async (tx) => {
    const isStored = await setApplicant(tx, verification, applicant.applicantId);
    if (isStored && applicant.simulated)
      await enqueue(tx, sandboxVerificationMessage(verification, verification.requestId));
    return isStored;
  });
}

/**
 * The verification of a request whose applicant was created meanwhile. Until then another request may have replaced its
 * level, which is fixed now.
 *
 * @throws DomainError `state_conflict` when the request names another level; `temporarily_unavailable` when the
 *   database has lost the verification since
 */
export async function readWithApplicant(
  deps: ReadDeps,
  { recipient, verification: { orgId, verificationId } }: OpenedForProvider,
  { levelName }: Pick<ProviderOpening, 'levelName'>,
): Promise<OpenedForProvider> {
  const verification = await findVerification(deps, orgId, verificationId);
  if (!verification) throw new DomainError('temporarily_unavailable');
  if (levelName !== undefined && verification.levelName !== levelName) throw alreadyOpen(verification);
  return { recipient, verification };
}

/**
 * Answers the request that began a verification, once its applicant is stored. The answer shows a token, so a key's
 * answer is stored sealed.
 *
 * @throws DomainError `idempotency_key_reused`; `temporarily_unavailable` when the database has lost the verification
 */
export async function answerApplicant(
  deps: CreationDeps,
  { recipient, verification: { orgId, verificationId } }: OpenedForProvider,
  creation: Creation<Verification>,
): Promise<Answer> {
  const declared = { ...creation, name: 'verification.answer_applicant', hasSecret: true } as const;
  return await commitCreation(deps, declared, async (tx) => {
    const created = await findVerification({ db: tx, sealer: deps.sealer }, orgId, verificationId);
    if (!created) throw new DomainError('temporarily_unavailable');
    return { id: verificationId, created, about: recipient };
  });
}

/**
 * The recipient's open verification of this type; undefined when there is none. One that is past its time is expired
 * first, which can change the recipient: the recipient is returned as it now is.
 *
 * @throws DomainError `state_conflict` when the recipient is inactive
 */
async function findOpenAfterExpiry(
  { sealer }: Pick<CommandDeps, 'sealer'>,
  tx: Tx,
  locked: OpenedRecipient,
  verificationType: VerificationType,
  at: Date,
): Promise<OpenedRecipient & { readonly open: Verification | undefined }> {
  const { recipient } = locked;
  if (!recipient.isActive) throw stateConflict('inactive', 'The recipient is inactive and takes no verification.');
  const found = await findOpenVerification(tx, locked, verificationType);
  if (!found) return { ...locked, open: undefined };
  const verification = await expireIfOver(tx, { ...locked, verification: found }, at);
  return verification.status === 'expired'
    ? { ...(await lockRecipient(tx, sealer, recipient.orgId, recipient.recipientId)), open: undefined }
    : { ...locked, open: verification };
}

const alreadyOpen = ({ status, verificationId }: Verification): DomainError =>
  stateConflict(status, 'A verification of this type is open for the recipient. Wait for its decision.', {
    verification_id: verificationId,
  });

/**
 * Decides a verification for its partner. The same decision again is answered alike.
 *
 * @returns the verification as it now is
 * @throws DomainError `not_found`; `state_conflict` when it has another decision, or has expired
 */
export async function decideVerification(
  deps: Deps,
  orgId: string,
  verificationId: string,
  decision: VerificationDecision & { readonly requestId: string },
): Promise<Verification> {
  const { requestId, ...decided } = decision;
  const { result, verification } = await commit(deps, 'verification.decide', async (tx) => {
    const locked = await lockVerification(tx, deps.sealer, orgId, verificationId);
    return await decideLocked(tx, locked, decided, { at: deps.now(), requestId });
  });
  // Thrown after the commit, because a verification that has just expired must stay so.
  if (result === 'refused') throw stateConflict(verification.status);
  return verification;
}

/** What a decision led to: taken now, the same as taken before, or refused by the state that `verification` is in. */
export type DecisionOutcome = {
  readonly result: 'decided' | 'repeated' | 'refused';
  readonly verification: Verification;
};

/** Decides a locked verification. Commit whatever the result is: a refused one may have been expired here. */
export async function decideLocked(
  tx: Tx,
  locked: LockedVerification,
  decision: VerificationDecision,
  stamp: Stamp,
): Promise<DecisionOutcome> {
  const verification = await expireIfOver(tx, locked, stamp.at);
  if (isOpen(verification.status))
    return { result: 'decided', verification: await moveVerification(tx, locked, { ...decision, ...stamp }) };
  return { result: isSameDecision(verification, decision) ? 'repeated' : 'refused', verification };
}

/**
 * Expires a verification that nobody decided in time; any other stays as it is.
 *
 * @throws DomainError `not_found`
 */
export async function expireVerification(
  deps: CommitDeps & Pick<CommandDeps, 'sealer'>,
  orgId: string,
  verificationId: string,
  at: Date,
): Promise<Verification> {
  return await commit(deps, 'verification.expire', async (tx) =>
    expireIfOver(tx, await lockVerification(tx, deps.sealer, orgId, verificationId), at),
  );
}

async function expireIfOver(tx: Tx, locked: LockedVerification, at: Date): Promise<Verification> {
  const { verification } = locked;
  if (!isOpen(verification.status) || at < verification.expiresAt) return verification;
  return await moveVerification(tx, locked, { to: 'expired', at, requestId: verification.requestId });
}
