/** Payment methods (contract §5). Whether a method is implemented and whether value may move are separate fields. */
import { z } from 'zod';
import { CAPABILITY_STATES, IMPLEMENTATION_STATES } from '../../domain/capability-state.ts';
import {
  closedEnum,
  constant,
  currency,
  environment,
  money,
  openEnum,
  outputText,
  outputTextOrNull,
} from './common.ts';
import { FeeRuleEntry } from './fee.ts';

const ImplementationState = closedEnum('ImplementationState', IMPLEMENTATION_STATES, 'How much of it is written.');
export const CapabilityState = openEnum(
  'CapabilityState',
  CAPABILITY_STATES,
  'Whether value may move through it. Written code does not mean that value may move.',
);
const PaymentMethodId = openEnum(
  'PaymentMethodId',
  ['card', 'ach', 'wire', 'stablecoin'],
  'The payment methods of the catalog, with those that no settlement can use yet.',
);
const PaymentTiming = closedEnum(
  'PaymentTiming',
  ['synchronous', 'asynchronous'],
  'Whether the outcome of a payment is known at once, or later.',
);

export const implementationState = () => ImplementationState.meta({ description: 'How much of it is written.' });
export const capabilityState = () => CapabilityState.meta({ description: 'Whether value may move through it.' });

/** Bounds on an amount, in the source currency. */
const limits = {
  minimum: money('The smallest amount, in the source currency.').meta({ example: '1.00' }),
  maximum: money('The largest amount, in the source currency.').meta({ example: '10000.00' }),
};
const AmountLimits = z.object(limits).meta({ id: 'AmountLimits', description: 'Bounds on the amount.' });
export const limitsOf = <Shape extends z.ZodRawShape>(id: string, shape: Shape) =>
  z.object({ ...limits, ...shape }).meta({ id, description: 'Bounds on the amount.' });

const PaymentMethodEntry = z
  .object({
    id: PaymentMethodId.meta({ description: 'The value of `payment_method`.' }),
    name: outputText('For people.', 'Card'),
    provider: outputTextOrNull('Who collects the money; null if nobody does yet.', 'cardproc'),
    implementation_state: implementationState(),
    admission_state: capabilityState(),
    timing: PaymentTiming.meta({ description: 'When the outcome of a payment is known.' }),
    source_currencies: z.array(currency('A currency that can be paid.')).meta({
      description: 'The currencies that can be paid with this method.',
    }),
    limits: AmountLimits.nullable().meta({ description: 'Bounds on the amount; null if nothing can be paid.' }),
    fees: z.array(FeeRuleEntry).meta({ description: 'The fees of a settlement with this method.' }),
    required_fields: z.array(z.string()).meta({
      description: 'The fields that a settlement with this method needs beside those of every settlement.',
      example: ['card_token'],
    }),
  })
  .meta({ id: 'PaymentMethodEntry', description: 'An entry of the catalog of payment methods.' });

export const PaymentMethodsResponse = z
  .object({
    environment: environment(),
    readiness_attested: constant(false, 'The catalog does not say that a method is ready for real money.'),
    methods: z.array(PaymentMethodEntry).meta({ description: 'Every known method, also those that cannot be used.' }),
  })
  .meta({ id: 'PaymentMethodsResponse' });
