/**
 * A consumer's quote (contract §12): the inputs of an estimate, stored under an id. A transfer that names a quote
 * copies only these inputs. Its rate and its fees are computed when it is accepted, so a quote is never executed.
 */
import { formatMoney } from './money.ts';
import type { InputMethod } from './payment-method.ts';
import { type Pricing, type PricingInput, RATE_LOCK_SECONDS } from './pricing.ts';

/** Amount in minor units of the corridor's source currency. */
export type Quote = Pick<
  Pricing<InputMethod>,
  'corridor' | 'amountMinor' | 'sourceCurrency' | 'paymentMethod' | 'payoutRail'
> & {
  readonly quoteId: string;
  readonly orgId: string;
  readonly createdAt: Date;
  /** Until then its figures may be shown. */
  readonly expiresAt: Date;
};

export const newQuote = (quoteId: string, orgId: string, pricing: Pricing<InputMethod>, createdAt: Date): Quote => ({
  quoteId,
  orgId,
  corridor: pricing.corridor,
  amountMinor: pricing.amountMinor,
  sourceCurrency: pricing.sourceCurrency,
  paymentMethod: pricing.paymentMethod,
  payoutRail: pricing.payoutRail,
  createdAt,
  expiresAt: new Date(createdAt.getTime() + RATE_LOCK_SECONDS * 1_000),
});

/** The inputs that a transfer copies. */
export const quoteInputs = (quote: Quote): PricingInput<InputMethod> => ({
  corridor: quote.corridor,
  amount: formatMoney(quote.amountMinor, quote.sourceCurrency),
  paymentMethod: quote.paymentMethod,
  payoutRail: quote.payoutRail,
});
