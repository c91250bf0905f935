/** Fees and the fee schedule as the API shows them (contract §5). */
import { type FeeRule, INPUT_FEE_RULES, PLATFORM_FEE_RULE } from '../fee.ts';
import { type Currency, formatMoney } from '../money.ts';
import type { PaymentMethod } from '../payment-method.ts';
import type { Pricing } from '../pricing.ts';

/** The fees of a priced command, line by line. */
export function feeResource(pricing: Pricing) {
  const currency = pricing.sourceCurrency;
  const line = (type: 'input_fee' | 'platform_fee', amountMinor: bigint) => ({
    type,
    amount: formatMoney(amountMinor, currency),
    currency,
  });
  return {
    fees: [line('input_fee', pricing.inputFeeMinor), line('platform_fee', pricing.platformFeeMinor)],
    total_fees: formatMoney(pricing.totalFeesMinor, currency),
  };
}

/** Basis points as a percentage with two decimals, `290n` as `"2.90"`. */
const formatPercent = (basisPoints: bigint): string =>
  `${basisPoints / 100n}.${(basisPoints % 100n).toString().padStart(2, '0')}`;

/** The fields of a rule. A bound is null when the rule has none. */
const feeRuleResource = (fee: FeeRule, currency: Currency) => ({
  percent: formatPercent(fee.basisPoints),
  fixed: formatMoney(fee.fixedMinor, currency),
  minimum: fee.minimumMinor === 0n ? null : formatMoney(fee.minimumMinor, currency),
  maximum: fee.maximumMinor === undefined ? null : formatMoney(fee.maximumMinor, currency),
});

/** The fee rules of these methods in this source currency, and the platform's. */
export const feeScheduleResource = (methods: readonly PaymentMethod[], currency: Currency) => [
  ...methods.map((method) => ({
    type: 'input_fee' as const,
    payment_method: method,
    ...feeRuleResource(INPUT_FEE_RULES[method], currency),
  })),
  { type: 'platform_fee' as const, payment_method: null, ...feeRuleResource(PLATFORM_FEE_RULE, currency) },
];
