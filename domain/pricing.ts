/**
 * The price of a command (contract §5). Estimates and settlements are priced by the same arithmetic. An estimate is
 * never executable: the rate and the fees of a settlement are those of its acceptance.
 */
import { CORRIDORS, type Corridor, type CorridorId, type Rail } from './corridor.ts';
import type { FieldFault } from './error.ts';
import { feesOf } from './fee.ts';
import { type Currency, convertDown, formatMoney, parseMoney } from './money.ts';
import { METHOD_RULES, type PaymentMethod } from './payment-method.ts';

/** How long the rate of an estimate may be shown (contract §5). */
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
  /** By default the corridor's first rail. */
  readonly payoutRail?: Rail | undefined;
};

/** The price of a command, or every rule that the command breaks. */
export type Priced<Method extends PaymentMethod = PaymentMethod> =
  | { readonly pricing: Pricing<Method> }
  | { readonly faults: readonly FieldFault[] };

export function price<Method extends PaymentMethod>(input: PricingInput<Method>): Priced<Method> {
  const corridor = CORRIDORS[input.corridor];
  const { sourceCurrency, destinationCurrency, rateMillionths } = corridor;
  const payoutRail = input.payoutRail ?? corridor.rails[0];
  const amountMinor = parseMoney(input.amount, sourceCurrency);
  const fees = feesOf(amountMinor ?? 0n, input.paymentMethod);
  const faults = [
    ...routeFaults(corridor, payoutRail, input.paymentMethod),
    ...amountFaults(amountMinor, fees.totalFeesMinor, sourceCurrency, input.paymentMethod),
  ];
  if (amountMinor === undefined || faults.length > 0) return { faults };
  const netMinor = amountMinor - fees.totalFeesMinor;
  const destinationAmountMinor = convertDown(netMinor, sourceCurrency, destinationCurrency, rateMillionths);
  if (destinationAmountMinor === 0n)
    return { faults: [{ field: 'amount', rule: 'must be enough that the recipient is paid something' }] };
  return {
    pricing: {
      corridor: corridor.id,
      paymentMethod: input.paymentMethod,
      payoutRail,
      amountMinor,
      sourceCurrency,
      destinationAmountMinor,
      destinationCurrency,
      rateMillionths,
      ...fees,
    },
  };
}

/** The rules that a rail and a payment method break in this corridor. */
function routeFaults({ rails, sourceCurrency }: Corridor, payoutRail: Rail, method: PaymentMethod): FieldFault[] {
  const faults: FieldFault[] = [];
  if (!rails.includes(payoutRail))
    faults.push({ field: 'payout_rail', rule: `must be one of the corridor's rails: ${rails.join(', ')}` });
  const { sourceCurrencies } = METHOD_RULES[method];
  if (!sourceCurrencies.includes(sourceCurrency)) {
    const currencies = sourceCurrencies.join(', ');
    faults.push({
      field: 'payment_method',
      rule: `takes ${currencies} only; the corridor's source currency is ${sourceCurrency}`,
    });
  }
  return faults;
}

/** @param amountMinor undefined when the text is not a valid amount */
function amountFaults(
  amountMinor: bigint | undefined,
  totalFeesMinor: bigint,
  currency: Currency,
  method: PaymentMethod,
): FieldFault[] {
  const { minimumMinor, maximumMinor } = METHOD_RULES[method];
  if (amountMinor === undefined || amountMinor < minimumMinor || amountMinor > maximumMinor) {
    const bounds = `from ${formatMoney(minimumMinor, currency)} to ${formatMoney(maximumMinor, currency)}`;
    return [{ field: 'amount', rule: `must be an amount in ${currency} ${bounds}` }];
  }
  return amountMinor <= totalFeesMinor ? [{ field: 'amount', rule: 'must be more than the fees' }] : [];
}
