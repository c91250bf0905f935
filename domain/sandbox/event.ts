/**
 * What the sandbox's providers can report (contract §6), in the service's own words. Each provider's adapter translates
 * it into that provider's event. Payers' tokens and test helpers both select from these events.
 */
import { type FieldFault, requireNoFaults, stateConflict, ValidationError } from '../error.ts';
import { formatMoney, parseMoney } from '../money.ts';
import type { PaymentMethod } from '../payment-method.ts';
import type { Settlement, SettlementStatus } from '../settlement/state.ts';

export type CollectionEvent = 'collection_succeeded' | 'collection_partial' | 'collection_failed' | 'dispute_opened';

const PAYOUT_EVENTS = ['payout_confirmed', 'payout_refused'] as const;
export type PayoutEvent = (typeof PAYOUT_EVENTS)[number];

export const SANDBOX_EVENTS = [
  'collection_succeeded',
  'collection_partial',
  'collection_failed',
  'payout_confirmed',
  'payout_refused',
  'dispute_opened',
] as const satisfies readonly (CollectionEvent | PayoutEvent)[];
export type SandboxEvent = CollectionEvent | PayoutEvent;

export const isPayoutEvent = (event: SandboxEvent): event is PayoutEvent =>
  PAYOUT_EVENTS.some((known) => known === event);

/**
 * What a provider reports about a collection. `amountMinor` is in the settlement's source currency, and 0 when no money
 * moves.
 */
export type CollectionReport = { readonly event: CollectionEvent; readonly amountMinor: bigint };

/**
 * An accepted request for an event. The settlement's payment method decides which provider sends it. An amount of 0 is
 * none: a dispute without one is about the whole payment.
 */
export type SandboxCommand = { readonly event: SandboxEvent; readonly amountMinor: bigint };

/** The id of the event that a command sends. Workers of the released version give it too. */
export const commandEventId = (commandId: string): string => `evt_${commandId}`;

/** A regular expression of PostgreSQL for these ids: that of a command is a UUID of version 7. */
export const COMMAND_EVENT_IDS = '^evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$';

/** More than the largest settlement, so that an overpayment can be sent too. */
const AMOUNT_MINOR_MAX = 10_000_000n;

/** Money that arrives by this event. */
export const collectsMoney = (event: SandboxEvent): boolean =>
  event === 'collection_succeeded' || event === 'collection_partial';

/** The states in which the rail can answer: the payout was sent, and the settlement has not ended. */
const AWAITING_RAIL_STATUSES: readonly SettlementStatus[] = ['paying_out', 'needs_review'];

const DISPUTABLE_METHODS: readonly PaymentMethod[] = ['card'];

type Asked = { readonly event: SandboxEvent; readonly amount?: string | undefined };

/**
 * The event that a test helper requests. Without an amount, it sends what is missing.
 *
 * @param underWayMinor what earlier commands send, and what has not arrived
 * @throws ValidationError on `event` or `amount`; DomainError `state_conflict` when no payout waits for an answer
 */
export function sandboxCommand(settlement: Settlement, asked: Asked, underWayMinor: bigint): SandboxCommand {
  const { event, amount } = asked;
  const { paymentMethod, sourceCurrency, status } = settlement;
  const refuse = (field: string, rule: string) => new ValidationError([{ field, rule }]);
  requireNoFaults(amountFaults(asked));
  if (event === 'dispute_opened' && !DISPUTABLE_METHODS.includes(paymentMethod))
    throw refuse('event', 'only card payments are disputed');
  if (!isPayoutEvent(event) && paymentMethod === 'internal')
    throw refuse('event', 'no provider collects for a settlement that is funded internally');
  if (isPayoutEvent(event) && !AWAITING_RAIL_STATUSES.includes(status)) throw stateConflict(status);
  const givenMinor = amount === undefined ? undefined : parseMoney(amount, sourceCurrency);
  if (givenMinor !== undefined) return { event, amountMinor: givenMinor };
  return { event, amountMinor: collectsMoney(event) ? usualAmount(settlement, event, underWayMinor) : 0n };
}

/** The rules that an amount breaks in every settlement: all source currencies have two minor digits. */
export function amountFaults({ event, amount }: Asked): FieldFault[] {
  if (amount === undefined) return [];
  const fault = (rule: string): FieldFault[] => [{ field: 'amount', rule }];
  if (!collectsMoney(event) && event !== 'dispute_opened')
    return fault('is allowed only with collection_succeeded, collection_partial and dispute_opened');
  const amountMinor = parseMoney(amount, 'USD') ?? 0n;
  return amountMinor > 0n && amountMinor <= AMOUNT_MINOR_MAX
    ? []
    : fault(`must be an amount from 0.01 to ${formatMoney(AMOUNT_MINOR_MAX, 'USD')}`);
}

/** What is missing, or half of it for a partial collection. If nothing is missing, the whole amount again. */
function usualAmount(settlement: Settlement, event: SandboxEvent, underWayMinor: bigint): bigint {
  const { amountMinor, amountReceivedMinor } = settlement;
  const sentMinor = amountReceivedMinor + underWayMinor;
  const missingMinor = sentMinor < amountMinor ? amountMinor - sentMinor : amountMinor;
  return event === 'collection_partial' && missingMinor > 1n ? missingMinor / 2n : missingMinor;
}
