/**
 * Estimates (contract §5). Rules across fields are part of the schema: a request that breaks one is 422 even if a gate
 * is closed (contract §2).
 */
import { z } from 'zod';
import { INPUT_METHODS, type PaymentMethod } from '../../domain/payment-method.ts';
import { type Pricing, type PricingInput, price, RATE_LOCK_SECONDS } from '../../domain/pricing.ts';
import { corridor, currency, environment, id, money, nullAsAbsent, rail, timestamp } from './common.ts';

export const paymentMethod = () => z.enum(INPUT_METHODS).meta({ example: 'card' });

/** Prices a valid form. A fault of the pricing becomes a validation fault of the request. */
export function priced<Method extends PaymentMethod>(
  input: PricingInput<Method>,
  context: z.core.$RefinementCtx,
): Pricing<Method> {
  const result = price(input);
  if ('pricing' in result) return result.pricing;
  for (const { field, rule } of result.faults)
    context.addIssue({ code: 'custom', path: field === null ? [] : field.split('.'), message: rule });
  return z.NEVER;
}

const estimateForm = {
  corridor: corridor(),
  amount: money(),
  payment_method: paymentMethod(),
  payout_rail: nullAsAbsent(rail()),
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
  .strictObject({ corridor: corridor(), amount: money(), payout_rail: nullAsAbsent(rail()) })
  .meta({ id: 'OfframpEstimateRequest' });

/** The off-ramp is funded internally, without an input fee. */
export const OfframpEstimateRequest = OfframpEstimateForm.transform(({ payout_rail, ...command }, context) =>
  priced({ ...command, paymentMethod: 'internal', payoutRail: payout_rail }, context),
);

/** The fields that `estimateResource` returns. */
const estimateFields = {
  corridor: corridor(),
  amount: money(),
  source_currency: currency(),
  destination_amount: money(),
  destination_currency: currency(),
  payout_rail: rail(),
  input_fee: money(),
  platform_fee: money(),
  total_fees: money(),
  fx_rate: z.string().meta({ description: 'Six decimals.', example: '157.250000' }),
  rate_source: z.literal('static_fixture'),
  rate_lock_seconds: z.literal(RATE_LOCK_SECONDS).meta({ override: { type: 'integer' } }),
  rate_locked_until: timestamp(),
  delivery_estimate: z.object({ min_minutes: z.int(), max_minutes: z.int() }),
  executable: z.literal(false),
  display_only: z.literal(true),
};

const estimateId = () => id().meta({ description: 'For your logs. No operation accepts it.' });

export const EstimateResponseV2 = z
  .object({ estimate_id: estimateId(), payment_method: paymentMethod(), ...estimateFields, environment: environment() })
  .meta({ id: 'EstimateResponseV2' });

export const OfframpEstimateResponse = z
  .object({ estimate_id: estimateId(), ...estimateFields, environment: environment() })
  .meta({ id: 'OfframpEstimateResponse' });
