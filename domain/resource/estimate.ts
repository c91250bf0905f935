/** An estimate as the API shows it (contract §5). It is for display only: nothing executes an estimate. */
import { DELIVERY_MINUTES } from '../corridor.ts';
import { formatMoney, formatRate } from '../money.ts';
import { type Pricing, RATE_LOCK_SECONDS } from '../pricing.ts';

/** @param at the time of the answer */
export function estimateResource(pricing: Pricing, at: Date) {
  const source = (amountMinor: bigint) => formatMoney(amountMinor, pricing.sourceCurrency);
  const minutes = DELIVERY_MINUTES[pricing.payoutRail];
  return {
    corridor: pricing.corridor,
    amount: source(pricing.amountMinor),
    source_currency: pricing.sourceCurrency,
    destination_amount: formatMoney(pricing.destinationAmountMinor, pricing.destinationCurrency),
    destination_currency: pricing.destinationCurrency,
    payout_rail: pricing.payoutRail,
    input_fee: source(pricing.inputFeeMinor),
    platform_fee: source(pricing.platformFeeMinor),
    total_fees: source(pricing.totalFeesMinor),
    fx_rate: formatRate(pricing.rateMillionths),
    rate_source: 'static_fixture' as const,
    rate_lock_seconds: RATE_LOCK_SECONDS,
    rate_locked_until: new Date(at.getTime() + RATE_LOCK_SECONDS * 1_000).toISOString(),
    delivery_estimate: { min_minutes: minutes.min, max_minutes: minutes.max },
    executable: false as const,
    display_only: true as const,
  };
}
