/** Payment methods (contract §5). Whether a method is implemented and whether value may move are separate fields. */
import { z } from 'zod';
import { CAPABILITY_STATES, IMPLEMENTATION_STATES } from '../../domain/capability-state.ts';
import { currency, environment, money } from './common.ts';
import { FeeRuleEntry } from './fee.ts';

export const implementationState = () => z.enum(IMPLEMENTATION_STATES);
export const capabilityState = () => z.enum(CAPABILITY_STATES);

/** Bounds on an amount, in the source currency. */
export const Limits = z.object({
  minimum: money().meta({ example: '1.00' }),
  maximum: money().meta({ example: '10000.00' }),
});

const PaymentMethodEntry = z
  .object({
    id: z.enum(['card', 'ach', 'wire', 'stablecoin']),
    name: z.string().meta({ example: 'Card' }),
    provider: z.string().nullable().meta({ example: 'cardproc' }),
    implementation_state: implementationState(),
    admission_state: capabilityState(),
    timing: z.enum(['synchronous', 'asynchronous']),
    source_currencies: z.array(currency()),
    limits: Limits.nullable(),
    fees: z.array(FeeRuleEntry),
    required_fields: z.array(z.string()),
  })
  .meta({ id: 'PaymentMethod' });

export const PaymentMethodsResponse = z
  .object({ environment: environment(), readiness_attested: z.literal(false), methods: z.array(PaymentMethodEntry) })
  .meta({ id: 'PaymentMethodsResponse' });
