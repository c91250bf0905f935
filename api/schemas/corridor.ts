/** The modeled corridors (contract §5). They are synthetic fixtures and assert no readiness. */
import { z } from 'zod';
import { CORRIDOR_SCHEMA_VERSION } from '../../domain/corridor.ts';
import { constant, corridor, currency, fxRate, outputText, rail, settlementPaymentMethod } from './common.ts';
import { FeeRuleEntry } from './fee.ts';
import { capabilityState, implementationState, limitsOf } from './payment-method.ts';

const DeliveryMinutes = z
  .object({
    min: z.int().meta({ description: 'The shortest time, in minutes.', example: 60 }),
    max: z.int().meta({ description: 'The longest time, in minutes.', example: 1440 }),
  })
  .meta({ id: 'DeliveryMinutes', description: 'How long a payout takes.' });

const RailRequirement = z
  .object({
    field: outputText("The field of the recipient, as in a request's body.", 'bank_details.account_number'),
    rule: outputText('What it must be.', '4 to 34 capital letters and digits.'),
  })
  .meta({ id: 'RailRequirement', description: 'What a recipient must have for a rail.' });

const CorridorRail = z
  .object({
    rail: rail(),
    implementation_state: implementationState(),
    delivery_minutes: DeliveryMinutes.meta({ description: 'How long a payout takes.' }),
    requirements: z.array(RailRequirement).meta({ description: 'What the recipient must have for this rail.' }),
  })
  .meta({ id: 'CorridorRail', description: 'A way to pay out in a corridor.' });

const CorridorLimits = limitsOf('CorridorLimits', {
  payment_method: settlementPaymentMethod('The method with these bounds.'),
});

const CorridorEntry = z
  .object({
    corridor: corridor(),
    source_country: outputText('Where the money comes from (ISO 3166-1 alpha-2).', 'US'),
    source_currency: currency('What the payer pays in.'),
    destination_country: outputText('Where the recipient is paid (ISO 3166-1 alpha-2).', 'JM'),
    destination_currency: currency('What the recipient is paid in.'),
    fx_rate: fxRate(),
    fees: z.array(FeeRuleEntry).meta({ description: 'The fee schedule.' }),
    rails: z.array(CorridorRail).meta({ description: 'The ways to pay out in this corridor.' }),
    state: capabilityState(),
    limits: z.array(CorridorLimits).meta({ description: 'Bounds on the amount, for each payment method.' }),
  })
  .meta({ id: 'CorridorEntry', description: 'A modeled corridor.' });

export const CorridorsResponse = z
  .object({
    schema_version: outputText('The version of this form.', CORRIDOR_SCHEMA_VERSION),
    rate_source: constant('static_fixture', 'The rates are fixed test data.'),
    readiness_asserted: constant(false, 'The list does not say that a corridor is ready for real money.'),
    corridors: z.array(CorridorEntry).meta({ description: 'Every modeled corridor.' }),
  })
  .meta({ id: 'CorridorsResponse' });
