/** Transfers of consumers (contract §12). */
import { z } from 'zod';
import type { CorridorId, Rail } from '../../domain/corridor.ts';
import type { InputMethod } from '../../domain/payment-method.ts';
import { price } from '../../domain/pricing.ts';
import { corridor, EXAMPLE_ID, id, money, nullAsAbsent, objectId, paymentMethod, rail, visibleText } from './common.ts';
import { priced } from './estimate.ts';
import { RequiredIdempotencyKey } from './idempotency.ts';
import { inAnyForm, isGiven, laterRule, rule } from './rule.ts';
import { SessionHeader } from './session.ts';
import { SettlementResponse } from './settlement.ts';
import { checkPaymentTokens, paymentToken, pricingInput } from './settlement-command.ts';

export const TransferHeaders = RequiredIdempotencyKey.extend(SessionHeader.shape);

const REFERENCE_LENGTH_MAX = 140;
const QUOTED_FIELDS = ['corridor', 'amount', 'payment_method', 'payout_rail'] as const;
const NEEDED_FIELDS = ['corridor', 'amount', 'payment_method'] as const;

type OwnInput = {
  readonly corridor?: CorridorId | undefined;
  readonly amount?: string | undefined;
  readonly payment_method?: InputMethod | undefined;
  readonly payout_rail?: Rail | undefined;
};

/** What the price follows from, if the body has all of it: a quote stands for it otherwise. */
const ownInput = ({ corridor, amount, payment_method, payout_rail }: OwnInput) =>
  corridor === undefined || amount === undefined || payment_method === undefined
    ? undefined
    : pricingInput({ corridor, amount, payout_rail }, payment_method);

const inputs = {
  quote_id: nullAsAbsent(id('')).meta({
    description: 'Copies the inputs of a quote, even of an expired one.',
  }),
  corridor: nullAsAbsent(corridor()).meta({ description: 'The corridor. Only without `quote_id`.' }),
  amount: nullAsAbsent(money('')).meta({
    description: 'What the payer pays, in the source currency. Only without `quote_id`.',
  }),
  payment_method: nullAsAbsent(paymentMethod()).meta({ description: 'How you pay. Only without `quote_id`.' }),
  payout_rail: nullAsAbsent(rail()).meta({
    description: 'How the recipient is paid; by default the first rail of the corridor. Only without `quote_id`.',
  }),
};
const tokens = {
  card_token: nullAsAbsent(paymentToken()).meta({
    example: 'tok_visa',
    description: 'Required with payment method card, refused otherwise.',
  }),
  banklink_account_token: nullAsAbsent(paymentToken()).meta({
    description: 'Required with payment method ach, refused otherwise.',
  }),
};

const NeededInputs = z.object({
  quote_id: inAnyForm(),
  corridor: inAnyForm(),
  amount: inAnyForm(),
  payment_method: inAnyForm(),
});
const missingRule = rule(NeededInputs, (body, context) => {
  if (isGiven(body.quote_id)) return;
  for (const field of NEEDED_FIELDS.filter((name) => !isGiven(body[name])))
    context.addIssue({ code: 'custom', path: [field], message: 'Field required', params: { type: 'missing' } });
});
const quotedRule = rule(z.object(inputs), (body, context) => {
  if (body.quote_id === undefined) return;
  for (const field of QUOTED_FIELDS.filter((name) => body[name] !== undefined))
    context.addIssue({ code: 'custom', path: [field], message: 'is allowed only without quote_id' });
});

const { quote_id, payment_method } = inputs;
const tokenRule = rule(z.object({ quote_id, payment_method, ...tokens }), (body, context) => {
  if (body.quote_id === undefined && body.payment_method !== undefined)
    checkPaymentTokens({ ...body, payment_method: body.payment_method }, context);
});

const priceRule = laterRule(z.object(inputs), (body, context) => {
  const input = body.quote_id === undefined ? ownInput(body) : undefined;
  if (input) priced(input, context);
});

const TransferForm = z
  .strictObject({
    ...inputs,
    recipient_id: id('Who is paid.'),
    ...tokens,
    reference: nullAsAbsent(visibleText(1, REFERENCE_LENGTH_MAX)).meta({
      description: 'Your own reference. The service only stores it.',
      example: 'For school',
    }),
  })
  .check(missingRule, quotedRule, tokenRule, priceRule)
  .meta({
    id: 'TransferBody',
    description: 'Either `quote_id`, or `corridor`, `amount` and `payment_method`.',
    example: { quote_id: EXAMPLE_ID, recipient_id: EXAMPLE_ID, card_token: 'tok_visa', reference: 'For school' },
  });

/** A quote is looked up and priced by the handler; then there is no price here. */
export const TransferBody = TransferForm.transform((body) => {
  const input = ownInput(body);
  return { ...body, ...(input && { priced: price(input) }) };
});

/** Checks the payer's token against the payment method of the quote. */
export const QuotedPayment = z
  .object({
    payment_method: z.string(),
    card_token: z.string().optional(),
    banklink_account_token: z.string().optional(),
  })
  .superRefine(checkPaymentTokens);

export const TransferResponse = SettlementResponse.omit({ metadata: true })
  .extend({
    transfer_id: objectId('The id of the transfer.'),
  })
  .meta({ id: 'TransferResponse' });

export const TransferPath = z.object({ transfer_id: id('The transfer.') });
