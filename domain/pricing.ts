/**
 * Pricing (contract §5): the same arithmetic prices an estimate, which is never executable, and a settlement,
 * whose rate and fees are those of acceptance.
 */
import { CORRIDORS, type CorridorId, type Rail } from './corridor.ts';
import type { FieldFault } from './error.ts';
import { feesOf } from './fee.ts';
import { type Currency, convertDown, formatMoney, parseMoney } from './money.ts';
import { METHOD_RULES, type PaymentMethod } from './payment-method.ts';

/** How long an estimate's rate may be shown (specification, Limits). */
export const RATE_LOCK_SECONDS = 30 as const;

/** Amounts in minor units, the rate in millionths. */
export type Pricing<Method extends PaymentMethod = PaymentMethod> = {
  readonly corridor: CorridorId;
  readonly paymentMethod: Method;
  readonly payoutRail: Rail;
  readonly amountMinor: bigint;
  readonly sourceCurrency: Currency;
  readonly destinationAmountMinor: bigint;
  readonly destinationCurrency: Currency;
  readonly rateMillionths: bigint;
  readonly inputFeeMinor: bigint;
  readonly platformFeeMinor: bigint;
  readonly totalFeesMinor: bigint;
};

export type PricingInput<Method extends PaymentMethod = PaymentMethod> = {
  readonly corridor: CorridorId;
  /** Decimal text in major units of the corridor's source currency. */
  readonly amount: string;
  readonly paymentMethod: Method;
  /** The corridor's first rail when not given. */
  readonly payoutRail?: Rail | undefined;
};

/** The pricing, or every rule that the request breaks, as faults of its fields. */
export type Priced<Method extends PaymentMethod = PaymentMethod> =
  | { readonly pricing: Pricing<Method> }
  | { readonly faults: readonly FieldFault[] };

/** Prices a request. */
export function price<Method extends PaymentMethod>(input: PricingInput<Method>): Priced<Method> {
  const corridor = CORRIDORS[input.corridor];
  const payoutRail = input.payoutRail ?? corridor.rails[0];
  const rule = METHOD_RULES[input.paymentMethod];
  const faults: FieldFault[] = [];
  if (!corridor.rails.includes(payoutRail))
    faults.push({ field: 'payout_rail', rule: `must be one of the corridor's rails: ${corridor.rails.join(', ')}` });
  if (!rule.sourceCurrencies.includes(corridor.sourceCurrency)) {
    faults.push({
      field: 'payment_method',
      rule: `takes ${rule.sourceCurrencies.join(', ')} only; the corridor's source currency is ${corridor.sourceCurrency}`,
    });
  }
  const amountMinor = parseMoney(input.amount, corridor.sourceCurrency);
  if (amountMinor === undefined || amountMinor < rule.minimumMinor || amountMinor > rule.maximumMinor) {
    const [low, high] = [rule.minimumMinor, rule.maximumMinor].map((bound) =>
      formatMoney(bound, corridor.sourceCurrency),
    );
    return {
      faults: [
        ...faults,
        { field: 'amount', rule: `must be an amount in ${corridor.sourceCurrency} from ${low} to ${high}` },
      ],
    };
  }
  const fees = feesOf(amountMinor, input.paymentMethod);
  const netMinor = amountMinor - fees.totalFeesMinor;
  if (netMinor <= 0n) faults.push({ field: 'amount', rule: 'must be more than the fees' });
  if (faults.length > 0) return { faults };
  return {
    pricing: {
      corridor: corridor.id,
      paymentMethod: input.paymentMethod,
      payoutRail,
      amountMinor,
      sourceCurrency: corridor.sourceCurrency,
      destinationAmountMinor: convertDown(
        netMinor,
        corridor.sourceCurrency,
        corridor.destinationCurrency,
        corridor.rateMillionths,
      ),
      destinationCurrency: corridor.destinationCurrency,
      rateMillionths: corridor.rateMillionths,
      ...fees,
    },
  };
}
