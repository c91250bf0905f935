/** The modeled corridors (contract §5). They are synthetic fixtures and assert no readiness. */
import { z } from 'zod';
import { CORRIDOR_SCHEMA_VERSION } from '../../domain/corridor.ts';
import { PAYMENT_METHODS } from '../../domain/payment-method.ts';
import { corridor, country, currency, rail } from './common.ts';
import { FeeRuleEntry } from './fee.ts';
import { capabilityState, implementationState, Limits } from './payment-method.ts';

const CorridorEntry = z
  .object({
    corridor: corridor(),
    source_country: country(),
    source_currency: currency(),
    destination_country: country(),
    destination_currency: currency(),
    fx_rate: z.string().meta({ description: 'Six decimals.', example: '157.250000' }),
    fees: z.array(FeeRuleEntry),
    rails: z.array(
      z.object({
        rail: rail(),
        implementation_state: implementationState(),
        delivery_minutes: z.object({ min: z.int(), max: z.int() }),
      }),
    ),
    state: capabilityState(),
    limits: z.array(Limits.extend({ payment_method: z.enum(PAYMENT_METHODS) })),
  })
  .meta({ id: 'Corridor' });

export const CorridorsResponse = z
  .object({
    schema_version: z.string().meta({ example: CORRIDOR_SCHEMA_VERSION }),
    rate_source: z.literal('static_fixture'),
    readiness_asserted: z.literal(false),
    corridors: z.array(CorridorEntry),
  })
  .meta({ id: 'CorridorsResponse' });
