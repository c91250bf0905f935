/** What a provider's event says about a settlement's money (contract §9): its evidence, committed with it. */
import type { Tx } from '../db/client.ts';
import { lockEvidenceTarget, type NewEvidence, recordEvidenceAndRing } from '../db/queries/evidence.ts';
import { ValidationError } from '../domain/error.ts';
import type { PaymentMethod } from '../domain/payment-method.ts';
import { type Settlement, settlementTime } from '../domain/settlement.ts';
import type { ApiDeps } from './deps.ts';
import { type EventReceipt, receiveEvent, type SignedEvent } from './event-receipt.ts';

/** What a settlement's provider says, before it is known whether there is such a settlement. */
export type EvidenceClaim = {
  readonly says: Omit<NewEvidence, 'sha256' | 'eventId' | 'provider'>;
  /** How the settlement must have been paid; a settlement of another method is not this provider's to speak of. */
  readonly methods: readonly PaymentMethod[];
};

/**
 * The money of an event that says that money moved; the provider's schema cannot require it, since other events have none.
 *
 * @param amountField integer minor units
 * @param loc where `object` stands in the request
 * @throws ValidationError naming each missing field
 */
export function movedMoney<Field extends string>(
  object: { readonly [Key in Field]?: number | undefined } & { readonly currency?: string | undefined },
  amountField: Field,
  loc: readonly string[],
): Pick<NewEvidence, 'amountMinor' | 'currency'> {
  const amount = object[amountField];
  const { currency } = object;
  if (amount === undefined || currency === undefined) {
    const missing = [amount === undefined ? [amountField] : [], currency === undefined ? ['currency'] : []].flat();
    throw new ValidationError(
      missing.map((field) => ({ loc: [...loc, field], msg: 'Field required', type: 'missing' })),
    );
  }
  return { amountMinor: BigInt(amount), currency: currency.toUpperCase() };
}

export type VerifiedEvent = SignedEvent & {
  readonly provider: 'cardproc' | 'bankledger';
  /** Undefined where the event says nothing that we apply: an unknown type, the wrong mode, no settlement named. */
  readonly claim: EvidenceClaim | undefined;
};

/** @throws DomainError `provider_event_conflict` when the id was seen with other bytes */
export async function receiveProviderEvent(deps: ApiDeps, { claim, ...event }: VerifiedEvent): Promise<EventReceipt> {
  const { provider, eventId, requestId } = event;
  return await receiveEvent(
    deps,
    event,
    claim && {
      lock: (tx) => lockTarget(tx, claim),
      apply: (tx, settlement, { sha256, at }) =>
        recordEvidenceAndRing(
          tx,
          settlement,
          { ...claim.says, provider, eventId, sha256 },
          settlementTime(settlement, at),
          requestId,
        ),
    },
  );
}

/** Locks the settlement that a claim is about; undefined when there is none that this provider may speak of. */
async function lockTarget(tx: Tx, { says, methods }: EvidenceClaim): Promise<Settlement | undefined> {
  const settlement = await lockEvidenceTarget(tx, says.settlementId);
  return settlement && methods.includes(settlement.paymentMethod) ? settlement : undefined;
}
