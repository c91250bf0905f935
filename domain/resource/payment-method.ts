/** A payment method's limits as the API shows them (contract §5). */
import { type Currency, formatMoney } from '../money.ts';
import { METHOD_RULES, type PaymentMethod } from '../payment-method.ts';

/** The bounds of an amount by this method. */
export const limitsResource = (method: PaymentMethod, currency: Currency) => ({
  minimum: formatMoney(METHOD_RULES[method].minimumMinor, currency),
  maximum: formatMoney(METHOD_RULES[method].maximumMinor, currency),
});
