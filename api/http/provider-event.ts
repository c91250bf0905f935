/** What the routes of provider webhooks share (contract §9): the receipt, and the claim about a settlement's money. */
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import {
  type ClaimedEvidence,
  type EventClaim,
  receiveProviderEvent,
  type VerifiedEvent,
} from '../../db/commands/provider-event.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import type { ApiDeps } from '../deps.ts';
import { InvalidRequestError, missingField } from './request-fault.ts';
import { faultsOfIssues } from './validation.ts';

/** Whether the service knows a type of events. An event of another type is stored and not read further. */
export const isKnownType = (known: readonly string[], type: string): boolean => known.includes(type);

/**
 * An event of a known type, as its schema reads it. The schema of the route reads the envelope alone.
 *
 * @throws InvalidRequestError
 */
export function readKnownEvent<Schema extends z.ZodType>(schema: Schema, event: unknown): z.output<Schema> {
  const result = schema.safeParse(event, { reportInput: true });
  if (result.success) return result.data;
  throw new InvalidRequestError(faultsOfIssues(result.error.issues, 'body'));
}

/**
 * Stores a verified event, applies it and answers with its receipt.
 *
 * @throws DomainError `provider_event_conflict` when the event's id was seen with other bytes
 */
export async function receiveEvent(
  deps: ApiDeps,
  request: Pick<FastifyRequest, 'rawBody' | 'id' | 'subjectId'>,
  event: Pick<VerifiedEvent, 'provider' | 'eventId' | 'type'>,
  claim: EventClaim,
) {
  const { rawBody: bytes, id: requestId } = request;
  const receipt = await receiveProviderEvent(deps, { ...event, bytes, requestId }, claim);
  if (receipt.matched && claim.about === 'settlement') request.subjectId = claim.settlementId;
  if (receipt.matched && claim.about === 'verification') request.subjectId = claim.verificationId;
  return { received: true as const, event_id: event.eventId, ...receipt };
}

/**
 * What an event says about a settlement's money.
 *
 * @param methods the settlement must be paid by one of these
 * @param says the fields that the event has
 */
export function evidenceClaim(
  { settlementId, provider }: Pick<ClaimedEvidence, 'provider'> & { readonly settlementId: string },
  methods: readonly PaymentMethod[],
  says: Pick<ClaimedEvidence, 'kind'> & Partial<ClaimedEvidence>,
): EventClaim {
  return {
    about: 'settlement',
    settlementId,
    evidence: { provider, amountMinor: null, currency: null, failure: null, ...says },
    methods,
  };
}

/**
 * The money of an event that says that money moved. The provider's schema cannot require it, because other events have
 * none.
 *
 * @param amountField integer minor units
 * @param loc the location of `object` in the request
 * @throws InvalidRequestError naming each missing field
 */
export function movedMoney<Field extends string>(
  object: { readonly [Key in Field]?: number | undefined } & { readonly currency?: string | undefined },
  amountField: Field,
  loc: readonly string[],
): Pick<ClaimedEvidence, 'amountMinor' | 'currency'> {
  const amount = object[amountField];
  const { currency } = object;
  if (amount === undefined || currency === undefined) {
    const missing = [amount === undefined ? [amountField] : [], currency === undefined ? ['currency'] : []].flat();
    throw new InvalidRequestError(missing.map((field) => missingField([...loc, field])));
  }
  return { amountMinor: BigInt(amount), currency: currency.toUpperCase() };
}

/**
 * The money of an event that may name some. An amount without a currency is in the settlement's, and the currency of an
 * event without an amount says whether it is about the settlement's money.
 */
export const namedMoney = (
  amountMinor: number | undefined,
  currency: string | undefined,
): Pick<ClaimedEvidence, 'amountMinor' | 'currency'> => ({
  amountMinor: amountMinor === undefined ? null : BigInt(amountMinor),
  currency: currency?.toUpperCase() ?? null,
});
