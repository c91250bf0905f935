/** The sandbox inputs and what they lead to (contract §6). */
import { z } from 'zod';
import { EXCEPTION_TYPES } from '../../domain/evidence.ts';
import { INPUT_METHODS } from '../../domain/payment-method.ts';
import { RESOLUTION_OUTCOMES } from '../../domain/review.ts';
import { SANDBOX_EVENTS } from '../../domain/sandbox/event.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement.ts';
import { corridor, money, rail } from './common.ts';

const status = () => z.enum(SETTLEMENT_STATUSES);

const step = <Name extends string, Shape extends z.ZodRawShape>(name: Name, shape: Shape) =>
  z.object({ when: status(), received: money().optional(), do: z.literal(name), ...shape });

const ScenarioStep = z
  .discriminatedUnion('do', [
    step('send_event', { event: z.enum(SANDBOX_EVENTS), amount: money().optional() }),
    step('advance_clock', { by: z.string().optional() }),
    step('cancel', {}),
    step('decide_verification', { decision: z.enum(['verified', 'rejected']) }),
    step('resolve_review', { outcome: z.enum(RESOLUTION_OUTCOMES) }),
    step('post_bankledger_event', { event: z.literal('reconciled'), amount_reconciled: z.int(), currency: z.string() }),
  ])
  .meta({
    id: 'ScenarioStep',
    description:
      'What to do when the settlement has the status `when` and, if `received` is given, has received this amount.',
  });

/** One sandbox input and the statuses that it leads to. */
export const Scenario = z
  .object({
    name: z.string().meta({ example: 'card' }),
    summary: z.string().meta({ example: 'A card pays, the payout is made, the settlement is certified.' }),
    given: z.object({
      recipient_name: z.string(),
      corridor: corridor(),
      amount: money(),
      payment_method: z.enum(INPUT_METHODS),
      payout_rail: rail(),
      card_token: z.string().optional(),
      public_token: z.string().optional(),
    }),
    steps: z.array(ScenarioStep).readonly(),
    path: z.array(status()).readonly(),
    exceptions: z.array(z.enum(EXCEPTION_TYPES)).readonly(),
    failure_code: z.string().nullable().meta({ example: null }),
  })
  .meta({ id: 'Scenario' });
