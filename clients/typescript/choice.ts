/** Whether a text, such as a cell of a CSV file, is a value that this client knows. A later service knows more. */
import { type components, corridorIds, currencies, paymentMethods, payoutRails } from './generated/openapi.ts';

type Schemas = components['schemas'];

export const isCorridor = (text: string): text is Schemas['CorridorId'] => isOneOf(corridorIds, text);
export const isCurrency = (text: string): text is Schemas['Currency'] => isOneOf(currencies, text);
export const isPaymentMethod = (text: string): text is Schemas['PaymentMethod'] => isOneOf(paymentMethods, text);
export const isPayoutRail = (text: string): text is Schemas['PayoutRail'] => isOneOf(payoutRails, text);

const isOneOf = (values: readonly string[], text: string): boolean => values.includes(text);
