/** The fee schedule and fee estimates (contract §5). Fees are in the source currency. */
import { z } from 'zod';
import {
  constant,
  corridor,
  currency,
  environment,
  money,
  moneyOrNull,
  openEnum,
  outputText,
  paymentMethod,
  settlementPaymentMethod,
} from './common.ts';
import { priced } from './estimate.ts';

const FeeType = openEnum(
  'FeeType',
  ['input_fee', 'platform_fee'],
  '`input_fee`: for collecting the money. `platform_fee`: for the service.',
);
const feeType = () => FeeType.meta({ description: 'What the fee is for.' });

/** One rule of the schedule. `null` means no such bound, or every payment method. */
export const FeeRuleEntry = z
  .object({
    type: feeType(),
    payment_method: settlementPaymentMethod()
      .nullable()
      .meta({ description: 'The method that the rule is for; null for every method.' }),
    percent: outputText('Percent of the amount.', '2.90'),
    fixed: money('Added to the percentage, in the source currency.').meta({ example: '0.30' }),
    minimum: moneyOrNull('The fee is at least this; null for no bound.'),
    maximum: moneyOrNull('The fee is at most this; null for no bound.'),
  })
  .meta({ id: 'FeeRule', description: 'A rule of the fee schedule.' });

const FeeEstimateForm = z
  .strictObject({
    corridor: corridor(),
    amount: money('What the payer pays, in the source currency.'),
    payment_method: paymentMethod(),
  })
  .meta({ id: 'FeeEstimateRequest' });

export const FeeEstimateRequest = FeeEstimateForm.transform(({ payment_method, ...command }, context) =>
  priced({ ...command, paymentMethod: payment_method }, context),
);

const FeeLine = z
  .object({ type: feeType(), amount: money('The fee.'), currency: currency('The currency of the fee.') })
  .meta({ id: 'FeeLine', description: 'One fee of an estimate.' });

export const FeeEstimateResponse = z
  .object({
    fees: z.array(FeeLine).meta({ description: 'Every fee.' }),
    total_fees: money('The sum of the fees.', '9.43'),
    executable: constant(false, 'An estimate cannot be executed.'),
    environment: environment(),
  })
  .meta({ id: 'FeeEstimateResponse' });
