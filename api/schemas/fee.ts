/** The fee schedule and fee estimates (contract §5). Fees are in the source currency. */
import { z } from 'zod';
import { PAYMENT_METHODS } from '../../domain/payment-method.ts';
import { corridor, currency, environment, money } from './common.ts';
import { paymentMethod, priced } from './estimate.ts';

const feeType = () => z.enum(['input_fee', 'platform_fee']);

/** One rule of the schedule. `null` means no such bound, or every payment method. */
export const FeeRuleEntry = z
  .object({
    type: feeType(),
    payment_method: z.enum(PAYMENT_METHODS).nullable(),
    percent: z.string().meta({ description: 'Percent of the amount.', example: '2.90' }),
    fixed: money().meta({ example: '0.30' }),
    minimum: money().nullable().meta({ example: null }),
    maximum: money().nullable().meta({ example: null }),
  })
  .meta({ id: 'FeeRule' });

const FeeEstimateForm = z
  .strictObject({ corridor: corridor(), amount: money(), payment_method: paymentMethod() })
  .meta({ id: 'FeeEstimateRequest' });

export const FeeEstimateRequest = FeeEstimateForm.transform(({ payment_method, ...command }, context) =>
  priced({ ...command, paymentMethod: payment_method }, context),
);

export const FeeEstimateResponse = z
  .object({
    fees: z.array(z.object({ type: feeType(), amount: money(), currency: currency() })),
    total_fees: money(),
    executable: z.literal(false),
    environment: environment(),
  })
  .meta({ id: 'FeeEstimateResponse' });
