/** The fee schedule (contract §5): in the source currency, each fee rounded half up to the minor unit. */
import { type Currency, divideHalfUp, formatMoney } from './money.ts';
import type { PaymentMethod } from './payment-method.ts';

/** Basis points of the amount plus a fixed part, bounded below and above. Amounts in minor units. */
export type FeeRule = {
  readonly basisPoints: bigint;
  readonly fixedMinor: bigint;
  readonly minimumMinor: bigint;
  readonly maximumMinor: bigint | undefined;
};

const rule = (basisPoints: bigint, fixedMinor: bigint, minimumMinor = 0n, maximumMinor?: bigint): FeeRule => ({
  basisPoints,
  fixedMinor,
  minimumMinor,
  maximumMinor,
});

export const INPUT_FEE_RULES: Record<PaymentMethod, FeeRule> = {
  card: rule(290n, 30n),
  ach: rule(80n, 0n, 25n, 500n),
  wire: rule(0n, 1500n),
  internal: rule(0n, 0n),
};

export const PLATFORM_FEE_RULE: FeeRule = rule(75n, 0n, 50n);

export type Fees = {
  readonly inputFeeMinor: bigint;
  readonly platformFeeMinor: bigint;
  readonly totalFeesMinor: bigint;
};

/** Basis points as a percentage with two decimals, `290n` as `"2.90"`. */
const formatPercent = (basisPoints: bigint): string =>
  `${basisPoints / 100n}.${(basisPoints % 100n).toString().padStart(2, '0')}`;

/** What `amountMinor` costs by this method, in the same currency. */
export function feesOf(amountMinor: bigint, method: PaymentMethod): Fees {
  const inputFeeMinor = applyRule(INPUT_FEE_RULES[method], amountMinor);
  const platformFeeMinor = applyRule(PLATFORM_FEE_RULE, amountMinor);
  return { inputFeeMinor, platformFeeMinor, totalFeesMinor: inputFeeMinor + platformFeeMinor };
}

function applyRule(fee: FeeRule, amountMinor: bigint): bigint {
  const raw = divideHalfUp(amountMinor * fee.basisPoints, 10_000n) + fee.fixedMinor;
  const floored = raw < fee.minimumMinor ? fee.minimumMinor : raw;
  return fee.maximumMinor !== undefined && floored > fee.maximumMinor ? fee.maximumMinor : floored;
}

/** A rule as partners see it; null where there is no such bound. */
const feeRuleResource = (fee: FeeRule, currency: Currency) => ({
  percent: formatPercent(fee.basisPoints),
  fixed: formatMoney(fee.fixedMinor, currency),
  minimum: fee.minimumMinor === 0n ? null : formatMoney(fee.minimumMinor, currency),
  maximum: fee.maximumMinor === undefined ? null : formatMoney(fee.maximumMinor, currency),
});

/** The rules that these methods' settlements pay in this source currency, as partners see them. */
export const feeScheduleResource = (methods: readonly PaymentMethod[], currency: Currency) => [
  ...methods.map((method) => ({
    type: 'input_fee' as const,
    payment_method: method,
    ...feeRuleResource(INPUT_FEE_RULES[method], currency),
  })),
  { type: 'platform_fee' as const, payment_method: null, ...feeRuleResource(PLATFORM_FEE_RULE, currency) },
];
