/** A consumer's quote as the API shows it (contract §12). */
import type { InputMethod } from '../payment-method.ts';
import type { Pricing } from '../pricing.ts';
import type { Quote } from '../quote.ts';
import type { EnvironmentName } from '../runtime.ts';
import { estimateResource } from './estimate.ts';

/** The fields of QuoteResponse. */
export const quoteResource = (quote: Quote, pricing: Pricing<InputMethod>, environment: EnvironmentName) => ({
  quote_id: quote.quoteId,
  payment_method: quote.paymentMethod,
  ...estimateResource(pricing, quote.createdAt),
  expires_at: quote.expiresAt.toISOString(),
  environment,
});
