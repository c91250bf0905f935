/**
 * Estimates (contract §5). Rules across fields are part of the schema: a request that breaks one is 422 even if a gate
 * is closed (contract §2).
 */
import { z } from 'zod';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { type Pricing, type PricingInput, price, RATE_LOCK_SECONDS } from '../../domain/pricing.ts';
import {
  addFaults,
  constant,
  corridor,
  currency,
  environment,
  fxRate,
  money,
  nullAsAbsent,
  objectId,
  paymentMethod,
  rail,
  timestamp,
} from './common.ts';

/** Prices a valid form. A fault of the pricing becomes a validation fault of the request. */
export function priced<Method extends PaymentMethod>(
  input: PricingInput<Method>,
  context: z.core.$RefinementCtx,
): Pricing<Method> {
  const result = price(input);
  if ('pricing' in result) return result.pricing;
  addFaults(result.faults, context);
  return z.NEVER;
}

const amount = () => money('What the payer pays, in the source currency.');
const payoutRail = () =>
  nullAsAbsent(rail()).meta({ description: 'How the recipient is paid; by default the first rail of the corridor.' });

const estimateForm = {
  corridor: corridor(),
  amount: amount(),
  payment_method: paymentMethod(),
  payout_rail: payoutRail(),
};

/** The form of an estimate or of a quote, priced. @param name its name in the OpenAPI document */
export const pricedForm = (name: string) =>
  z
    .strictObject(estimateForm)
    .meta({ id: name })
    .transform(({ payment_method, payout_rail, ...command }, context) =>
      priced({ ...command, paymentMethod: payment_method, payoutRail: payout_rail }, context),
    );

export const EstimateRequestV2 = pricedForm('EstimateRequestV2');

const OfframpEstimateForm = z
  .strictObject({ corridor: corridor(), amount: amount(), payout_rail: payoutRail() })
  .meta({ id: 'OfframpEstimateRequest' });

/** The off-ramp is funded internally, without an input fee. */
export const OfframpEstimateRequest = OfframpEstimateForm.transform(({ payout_rail, ...command }, context) =>
  priced({ ...command, paymentMethod: 'internal', payoutRail: payout_rail }, context),
);

const DeliveryEstimate = z
  .object({
    min_minutes: z.int().meta({ description: 'The shortest time, in minutes.', example: 60 }),
    max_minutes: z.int().meta({ description: 'The longest time, in minutes.', example: 1440 }),
  })
  .meta({ id: 'DeliveryEstimate', description: 'How long the payout takes.' });

/** The fields that `estimateResource` returns. */
const estimateFields = {
  corridor: corridor(),
  amount: amount(),
  source_currency: currency('What the payer pays in.'),
  destination_amount: money('What the recipient would be paid, in the destination currency.', '37829.63'),
  destination_currency: currency('What the recipient is paid in.', 'JMD'),
  payout_rail: rail(),
  input_fee: money('For collecting the money, in the source currency.', '7.55'),
  platform_fee: money('For the service, in the source currency.', '1.88'),
  total_fees: money('The sum of the fees, in the source currency.', '9.43'),
  fx_rate: fxRate(),
  rate_source: constant('static_fixture', 'The rates are fixed test data.'),
  rate_lock_seconds: z.literal(RATE_LOCK_SECONDS).meta({
    description: 'How long the figures may be shown.',
    override: { type: 'integer' },
  }),
  rate_locked_until: timestamp('Until this time the figures may be shown.'),
  delivery_estimate: DeliveryEstimate.meta({ description: 'How long the payout takes.' }),
  executable: constant(false, 'An estimate cannot be executed.'),
  display_only: constant(true, 'The figures are for showing only.'),
};

export const EstimateFigures = z
  .object({ ...estimateFields, environment: environment() })
  .meta({ id: 'EstimateFigures', description: 'What an estimate or a quote says.' });

const estimateId = () => objectId('For your logs. No operation accepts it.');

export const EstimateResponseV2 = z
  .object({ estimate_id: estimateId(), payment_method: paymentMethod(), ...estimateFields, environment: environment() })
  .meta({ id: 'EstimateResponseV2' });

export const OfframpEstimateResponse = z
  .object({ estimate_id: estimateId(), ...estimateFields, environment: environment() })
  .meta({ id: 'OfframpEstimateResponse' });
