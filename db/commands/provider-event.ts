/**
 * The receipt of a provider's event (contract §9). Its signature was verified before. One transaction locks what the
 * event is about, stores the event, and applies it, once. A provider can report on an object before the service has it,
 * after a restore for example: that event is applied when it is sent again. The workflow is signalled through the
 * outbox of the transaction.
 */
import { createHash } from 'node:crypto';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { EventProvider, NewEvidence } from '../../domain/settlement/evidence.ts';
import type { FactsOf } from '../../domain/settlement/facts.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import { canMoveVerification, type VerificationDecision } from '../../domain/verification.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import type { Stamp } from '../queries/event.ts';
import { insertProviderEvent, providerEventBinding, type Receipt } from '../queries/evidence.ts';
import { lockEvidenceTarget } from '../queries/settlement.ts';
import { type LockedVerification, lockVerificationTarget, moveVerification } from '../queries/verification.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';
import { recordEvidence } from './evidence.ts';
import { decideLocked } from './verification.ts';

/** An event whose signature was verified; `bytes` is its body exactly as it arrived. */
export type VerifiedEvent = {
  readonly provider: EventProvider;
  readonly eventId: string;
  readonly type: string;
  readonly bytes: Buffer;
  readonly requestId: string;
};

/** What an event says about a settlement's money. */
export type ClaimedEvidence = Omit<NewEvidence, 'evidenceId' | 'eventId' | 'sha256'>;

/** What an event says, in the service's own words. The object that it names may not exist. */
export type EventClaim =
  /** About a settlement's money. It is applied only to a settlement that is paid by one of `methods`. */
  | {
      readonly about: 'settlement';
      readonly settlementId: string;
      readonly evidence: ClaimedEvidence;
      readonly methods: readonly PaymentMethod[];
    }
  /** About a verification: the provider has begun the review, or has decided. */
  | {
      readonly about: 'verification';
      readonly verificationId: string;
      /** The provider's applicant, where the event names one. */
      readonly applicantId: string | undefined;
      readonly move: { readonly to: 'in_review' } | VerificationDecision;
    }
  /** Nothing to apply: an unknown type, the wrong mode, no object named. The event is stored nevertheless. */
  | { readonly about: 'nothing' };

export const NO_CLAIM: EventClaim = { about: 'nothing' };

/**
 * Stores a verified event once, permanently, and applies it once, as soon as its object exists.
 *
 * @throws DomainError `provider_event_conflict` when the event's id was seen with other bytes
 */
export async function receiveProviderEvent(
  deps: CommitDeps & Pick<CommandDeps, 'sealer' | 'now' | 'runtime'>,
  { bytes, requestId, ...event }: VerifiedEvent,
  claim: EventClaim,
): Promise<Receipt> {
  return await commit(deps, 'provider_event.receive', async (tx) => {
    const target = await lockTarget(deps, tx, claim);
    const matched = target?.isApplied === true;
    const sha256 = createHash('sha256').update(bytes).digest();
    const receivedAt = deps.now();
    const binding = providerEventBinding(event.provider, event.eventId);
    const bodySealed = deps.sealer.seal(keptBody(bytes, claim, target, binding), binding);
    const { receipt, exceptions } = await insertProviderEvent(
      tx,
      { ...event, bodySha256: sha256, bodySealed, matched, receivedAt },
      target?.about === 'settlement' ? target.settlementId : null,
    );
    if (!target?.isApplied || (receipt.duplicate && receipt.matched)) return receipt;
    await applyTo(tx, target, { eventId: event.eventId, sha256, exceptions, stamp: { at: receivedAt, requestId } });
    return { ...receipt, matched: true };
  });
}

type Claimed<About> = Extract<EventClaim, { readonly about: About }>;

/**
 * An object that exists, locked, with what the event says about it. An event about another applicant of a verification
 * is not applied to it.
 */
type Target = { readonly isApplied: boolean } & (
  | (Claimed<'settlement'> & { readonly settlement: Settlement })
  | (Claimed<'verification'> & { readonly locked: LockedVerification })
);

/**
 * Locks what the event is about; undefined when there is no object that this provider may report on. Each environment
 * has providers of its own, also where two use one database.
 */
async function lockTarget(
  { sealer, runtime }: Pick<CommandDeps, 'sealer' | 'runtime'>,
  tx: Tx,
  claim: EventClaim,
): Promise<Target | undefined> {
  const environment = environmentName(runtime);
  switch (claim.about) {
    case 'settlement': {
      const settlement = await lockEvidenceTarget(tx, claim.settlementId);
      return settlement?.environment === environment && claim.methods.includes(settlement.paymentMethod)
        ? { ...claim, settlement, isApplied: true }
        : undefined;
    }
    case 'verification': {
      const locked = await lockVerificationTarget(tx, sealer, claim.verificationId, environment);
      return locked && { ...claim, locked, isApplied: isAbout(locked.verification.applicantId, claim.applicantId) };
    }
    case 'nothing':
      return undefined;
  }
}

/** Whether an event that names `given` is about the applicant that is `known`. An event may come before it is known. */
const isAbout = (known: string | null, given: string | undefined): boolean =>
  known === null || given === undefined || known === given;

/**
 * What is stored of the body. A body about a person is also sealed by the recipient's own key, so that an erasure makes
 * it unreadable. Where there is no such key, nothing is: the person was erased, or the verification that the event names
 * is not there yet, and no erasure would reach what is stored now.
 */
function keptBody(bytes: Buffer, { about }: EventClaim, target: Target | undefined, binding: string): Buffer | string {
  if (about !== 'verification') return bytes;
  return (target?.about === about && target.locked.held?.dataKey.seal(bytes, binding)) || '';
}

type Receiving = Pick<FactsOf<'evidence'>, 'exceptions'> & {
  readonly eventId: string;
  readonly sha256: Buffer;
  readonly stamp: Stamp;
};

async function applyTo(tx: Tx, target: Target, { eventId, sha256, exceptions, stamp }: Receiving): Promise<void> {
  if (target.about === 'settlement') {
    const { settlement } = target;
    const evidence = { ...target.evidence, evidenceId: newId(), eventId, sha256: sha256.toString('hex') };
    await recordEvidence(tx, { settlement, exceptions }, evidence, stamp);
    return;
  }
  const { locked, move } = target;
  if (move.to !== 'in_review') await decideLocked(tx, locked, move, stamp);
  // It may arrive after the decision, which it does not undo.
  else if (canMoveVerification(locked.verification.status, 'in_review'))
    await moveVerification(tx, locked, { to: 'in_review', ...stamp });
}
