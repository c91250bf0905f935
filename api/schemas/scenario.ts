/** The sandbox inputs and what they lead to (contract §6). */
import { z } from 'zod';
import { RESOLUTION_OUTCOMES } from '../../domain/review.ts';
import { closedEnum, constant, corridor, money, outputText, outputTextOrNull, paymentMethod, rail } from './common.ts';
import { exceptionType, settlementStatus } from './settlement.ts';
import { sandboxEvent } from './test-helper.ts';
import { verificationDecision } from './verification.ts';

const ReviewOutcome = closedEnum(
  'ReviewOutcome',
  RESOLUTION_OUTCOMES,
  'What an operator has found out about a payout.',
);

const moment = {
  when: settlementStatus('Do it when the settlement has this status.'),
  received: money('And when it has received this amount.').optional(),
};

/** When a step is due. Only for the document, which has it once. */
export const StepMoment = z.object(moment).meta({ id: 'StepMoment', description: 'When a step is due.' });

const step = <const Name extends string, Shape extends z.ZodRawShape>(
  id: string,
  name: Name,
  description: string,
  shape: Shape,
) =>
  z
    .object({
      ...moment,
      do: constant(name, 'What to do.'),
      ...shape,
    })
    .meta({ id, description });

const ScenarioStep = z
  .discriminatedUnion('do', [
    step('SendEventStep', 'send_event', 'Let the simulator send an event.', {
      event: sandboxEvent(),
      amount: money('The amount of the event.').optional(),
    }),
    step('AdvanceClockStep', 'advance_clock', "Move the settlement's clock.", {
      by: outputText('An ISO 8601 duration; without it, to the end of the current wait.', 'P3D').optional(),
    }),
    step('CancelStep', 'cancel', 'Cancel the settlement.', {}),
    step('DecideVerificationStep', 'decide_verification', "Decide the recipient's verification.", {
      decision: verificationDecision('The decision.'),
    }),
    step('ResolveReviewStep', 'resolve_review', 'Say as an operator how the payout ended.', {
      outcome: ReviewOutcome.meta({ description: 'How the payout ended.' }),
    }),
    step('PostBankledgerEventStep', 'post_bankledger_event', "Send a signed event as the bank ledger's.", {
      event: constant('reconciled', 'The type of the event.'),
      amount_reconciled: z.int().meta({ description: 'In minor units.', example: 25_000 }),
      currency: outputText('The currency of the event.', 'USD'),
    }),
  ])
  .meta({
    id: 'ScenarioStep',
    description:
      'What to do when the settlement has the status `when` and, if `received` is given, has received this amount.',
  });

const ScenarioInput = z
  .object({
    recipient_name: outputText('The name of the recipient. Some names lead to a refusal.', 'Marcia Campbell'),
    corridor: corridor(),
    amount: money('What the payer pays, in the source currency.'),
    payment_method: paymentMethod(),
    payout_rail: rail(),
    card_token: outputText('Pays with a card.', 'tok_visa').optional(),
    public_token: outputText('Exchanged for the account that pays by ACH.', 'public-sandbox-checking').optional(),
  })
  .meta({ id: 'ScenarioInput', description: 'The settlement and its recipient.' });

/** One sandbox input and the statuses that it leads to. */
export const Scenario = z
  .object({
    name: outputText('The name of the scenario.', 'card'),
    summary: outputText('What happens.', 'A card pays, the payout is made, the settlement is certified.'),
    given: ScenarioInput.meta({ description: 'The settlement and its recipient.' }),
    steps: z.array(ScenarioStep).readonly().meta({ description: 'What to do, in this order.' }),
    path: z
      .array(settlementStatus())
      .readonly()
      .meta({ description: 'The statuses that the settlement has, in order.' }),
    exceptions: z
      .array(exceptionType('What is wrong.'))
      .readonly()
      .meta({ description: 'The exceptions that are recorded, in order.' }),
    failure_code: outputTextOrNull('The `code` of the failure; null if it does not fail.', null),
  })
  .meta({ id: 'Scenario', description: 'A sandbox input and what it leads to.' });
