/** The fee schedule (contract §5): in the source currency, each fee rounded half up to the minor unit. */
import { divideHalfUp } from './money.ts';
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

/** The fees of an amount by this method, in the same currency. */
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
