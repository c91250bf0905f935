/** Settlements (contract §6): the accepted settlement, the settlement as read, and the lists of them. */
import { z } from 'zod';
import { EXCEPTION_TYPES, EXCEPTIONS_SHOWN_MAX } from '../../domain/settlement/evidence.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import {
  Conditions,
  constant,
  corridor,
  createdAt,
  currency,
  EXAMPLE_ID,
  EXAMPLE_SETTLEMENT_ID,
  environment,
  fxRate,
  headerText,
  ID_LENGTH_MAX,
  metadataFilter,
  money,
  objectId,
  openEnum,
  outputText,
  outputTextOrNull,
  rail,
  settlementId,
  settlementPaymentMethod,
  shownMetadata,
  shownSettlementId,
  simulation,
  timestamp,
  timestampOrNull,
  updatedAt,
} from './common.ts';
import { createdFrom, createdTo, PageQuery, repeatable, selectedId } from './page.ts';
import { Purpose, REFERENCE, reference } from './settlement-command.ts';

const SettlementStatus = openEnum(
  'SettlementStatus',
  SETTLEMENT_STATUSES,
  'The state of a settlement. `settled`, `rejected`, `expired`, `failed` and `canceled` are final.',
  'settled',
);
export const settlementStatus = (description?: string) =>
  description === undefined ? SettlementStatus : SettlementStatus.meta({ description });

const answer = {
  settlement_id: shownSettlementId('The id of the settlement. The same idempotency key always names the same one.'),
  status: settlementStatus(),
  corridor: corridor(),
  amount: money('What the payer pays, in the source currency.'),
  source_currency: currency('What the payer pays in.'),
  destination_amount: money('What the recipient is paid, in the destination currency.', '37829.63'),
  destination_currency: currency('What the recipient is paid in.', 'JMD'),
  fx_rate: fxRate(),
  input_fee: money('For collecting the money, in the source currency.', '7.55'),
  platform_fee: money('For the service, in the source currency.', '1.88'),
  total_fees: money('The sum of the fees, in the source currency.', '9.43'),
  recipient_id: objectId('Who is paid.'),
  payment_method: settlementPaymentMethod(),
  payout_rail: rail(),
  purpose: Purpose.nullable().meta({ description: 'What the money is for.' }),
  reference: outputTextOrNull(REFERENCE, 'Invoice INV-1042'),
  metadata: shownMetadata(),
  environment: environment('The environment in which the settlement exists.'),
  simulation: simulation(),
  executable: constant(false, 'Nothing is executed: this is a simulation.'),
  created_at: createdAt(),
  updated_at: updatedAt(),
};

/** Without the bound of `money`: events of providers may add up to any amount, and a list shows it all the same. */
const statedMoney = (description: string) => outputText(description, '250.00');

const received = {
  amount_received: statedMoney(
    "What came in, less what the payer's bank took back before it was paid out or given back, in the source currency.",
  ),
  amount_refund_due: statedMoney(
    'What of it is owed back: too much, too late, or for a settlement that is not paid out. It falls as it is given back.',
  ),
  amount_refunded: statedMoney('What was given back to the payer, outside of this service.'),
};

export const SettleResponseV2 = z.object(answer).meta({ id: 'SettleResponseV2' });
/** What settlements and consumers' transfers have in common. */
export const SettlementFields = SettleResponseV2.omit({ metadata: true }).meta({ id: 'SettlementFields' });
export const CaribbeanOfframpResponse = z.object(answer).meta({ id: 'CaribbeanOfframpResponse' });

const TimelineEntry = z
  .object({
    status: settlementStatus('The state that was reached.'),
    at: timestamp('When it was reached.'),
    reason: outputText('Why, where there is more to say than the state.', 'amount_requires_verification').optional(),
    evidence_id: objectId('The evidence that led to it.').optional(),
  })
  .meta({ id: 'TimelineEntry', description: 'A state that a settlement has reached.' });

const Payee = z
  .object({
    name: outputTextOrNull('The name that is paid; null once the recipient was erased.', 'Marcia Brown'),
    country: outputText('Where the payee is paid (ISO 3166-1 alpha-2).', 'JM'),
    rail: rail('How the payee is paid.'),
    account_last4: outputTextOrNull(
      'The last four characters of the account or phone number; null for cash, and once the recipient was erased.',
      '6789',
    ),
  })
  .meta({ id: 'Payee', description: 'Who is paid, as the recipient was when the settlement was accepted.' });

const Failure = z
  .object({
    code: outputText('The reason, as one word. Further words may be added.', 'card_declined'),
    message: outputText('The reason, for people.', 'The card was declined.'),
    doc_url: outputText(
      'Where the code is explained: what it means, whether the same order may be tried again, and what to tell the ' +
        'payer. Relative to the address of the service.',
      '/docs/failures#card_declined',
    ),
  })
  .meta({ id: 'Failure', description: 'Why a settlement did not succeed.' });

const ExceptionType = openEnum(
  'ExceptionType',
  EXCEPTION_TYPES,
  'What is wrong with evidence that was not applied as a payment.',
);
export const exceptionType = (description: string) => ExceptionType.meta({ description });

const SettlementException = z
  .object({
    type: exceptionType('What is wrong.'),
    at: timestamp('When it was recorded.'),
    evidence_id: outputTextOrNull('The evidence that it is about.', EXAMPLE_ID),
    amount: statedMoney(
      'The amount of the evidence, in its currency; of `overpaid` the surplus. A return or a dispute that names none has ' +
        'what it took back. Of `late_evidence` it is money that came.',
    ).optional(),
    currency: outputText(
      'The currency of the evidence. It may be one that the service does not know.',
      'USD',
    ).optional(),
    reason: outputText("The provider's code, where it gave one.", 'R01').optional(),
  })
  .meta({
    id: 'SettlementException',
    description:
      'Evidence that needs attention. Only `returned` and `disputed` change the state, and only before the payout: the ' +
      'settlement then fails.',
  });

const PaymentInstructions = z
  .object({
    beneficiary: outputText('Who receives the wire.', 'Settlement Sandbox (simulation)'),
    bank_name: outputText('The bank that receives the wire.', 'Sandbox Bank (simulation)'),
    account_number: outputText('The account that receives the wire.', '000123456789'),
    routing_number: outputText('The routing number of the bank.', '021000021'),
    reference: shownSettlementId('The wire must name it.'),
    amount: money('What must be sent.'),
    currency: currency('The currency that must be sent.'),
    simulation: simulation(),
  })
  .meta({ id: 'PaymentInstructions', description: 'Where a wire is sent. No such account exists.' });

/** A settlement as read: its timeline, what it waits for, and its outcome. */
export const SettlementResponse = z
  .object({
    ...answer,
    timeline: z.array(TimelineEntry).meta({ description: 'The states that it has reached, in their order.' }),
    ...received,
    payee: Payee,
    failure: Failure.nullable().meta({
      description: 'Why it did not succeed; null unless it is `failed`, `rejected` or `expired`.',
      example: null,
    }),
    exceptions: z
      .array(SettlementException)
      .max(EXCEPTIONS_SHOWN_MAX)
      .meta({ description: 'Evidence that needs attention, in its order: the latest 100.' }),
    payment_instructions: PaymentInstructions.nullable().meta({
      description: 'With payment_method wire, while the money is waited for.',
      example: null,
    }),
    certificate_id: outputTextOrNull(
      'The evidence certificate; null until it is settled.',
      'CERT-9F86D081884C7D659A2FEAA0C55AD015',
    ),
    workflow_id: outputText('For support: its name in Temporal.', `settlement:${EXAMPLE_SETTLEMENT_ID}`),
    expires_at: timestampOrNull('When the current wait ends; null if there is none.'),
  })
  .meta({ id: 'SettlementResponse' });

/** The data of a settlement's events: what a read answers, but for the timeline and the payee, who is a person. */
export const SettlementEventData = SettlementResponse.omit({ timeline: true, payee: true }).meta({
  id: 'SettlementEventData',
  description: 'The settlement as a read would have answered at this change, without `timeline` and `payee`.',
});

export const SettlementExceptionEventData = SettlementEventData.extend({
  exception: SettlementException.meta({ description: 'The evidence that needs attention.' }),
}).meta({
  id: 'SettlementExceptionEventData',
  description: 'The settlement, with the evidence that needs attention.',
});

/** An invalid preference is ignored (RFC 7240). */
export const SettlementPreferences = Conditions.extend({
  prefer: headerText(
    '`wait=N`: the answer waits until the status changes, for at most N seconds. N is at most 30. With the `ETag` of the ' +
      'last answer in `If-None-Match` it waits until the answer differs from that one, and is 304 when it does not. ' +
      '`Preference-Applied` says that it waited: an organization has a limited number of waiting reads.',
    'wait=10',
  ).optional(),
});

export const SettlementPath = z.object({ settlement_id: settlementId() });

export const SettlementQuery = PageQuery.safeExtend({
  status: repeatable(SettlementStatus, 'Only settlements in this status. It can be given several times.'),
  corridor: corridor().optional().meta({ description: 'Only settlements of this corridor.' }),
  payment_method: settlementPaymentMethod().optional().meta({ description: 'Only settlements paid like this.' }),
  recipient_id: selectedId(ID_LENGTH_MAX, 'Only settlements for this recipient.'),
  reference: reference().optional().meta({ description: 'Exactly this reference.' }),
  created_from: createdFrom(),
  created_to: createdTo(),
  metadata: metadataFilter('Only settlements with exactly these entries: `metadata[invoice]=INV-1042`.'),
});
