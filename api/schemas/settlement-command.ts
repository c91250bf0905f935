/** The bodies that begin a settlement (contract §6). */
import { z } from 'zod';
import type { CorridorId, Rail } from '../../domain/corridor.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { type PricingInput, price } from '../../domain/pricing.ts';
import { PURPOSES } from '../../domain/settlement/state.ts';
import {
  closedEnum,
  corridor,
  EXAMPLE_ID,
  id,
  metadata,
  money,
  nullAsAbsent,
  paymentMethod,
  rail,
  text,
  visibleText,
} from './common.ts';
import { priced } from './estimate.ts';
import { laterRule, rule } from './rule.ts';

export const Purpose = closedEnum('Purpose', PURPOSES, 'What the money is for.');

const TOKEN_LENGTH_MAX = 1024;
export const paymentToken = () => text(1, TOKEN_LENGTH_MAX);

const REFERENCE_LENGTH_MAX = 140;
export const REFERENCE = 'Your own reference. The service only stores it.';
export const reference = () => visibleText(1, REFERENCE_LENGTH_MAX);

/** The fields that both settlement routes accept. */
const command = {
  corridor: corridor(),
  amount: money('What the payer pays, in the source currency.'),
  recipient_id: id('Who is paid.'),
  payout_rail: rail(),
  purpose: nullAsAbsent(Purpose).meta({ description: 'What the money is for.' }),
  reference: nullAsAbsent(reference()).meta({ description: REFERENCE, example: 'Invoice INV-1042' }),
  metadata: nullAsAbsent(metadata()).meta({ description: 'Your own keys and values.' }),
};

/** The payment method of each token. A token is required with its method and refused with others. */
const TOKENS = { card_token: 'card', banklink_account_token: 'ach' } as const;

export function checkPaymentTokens(
  body: { payment_method: string; card_token?: string | undefined; banklink_account_token?: string | undefined },
  context: z.RefinementCtx,
): void {
  for (const [field, method] of Object.entries(TOKENS) as ['card_token' | 'banklink_account_token', string][]) {
    const wanted = body.payment_method === method;
    if (wanted && body[field] === undefined)
      context.addIssue({ code: 'custom', path: [field], message: 'Field required', params: { type: 'missing' } });
    if (!wanted && body[field] !== undefined)
      context.addIssue({ code: 'custom', path: [field], message: `is allowed only when payment_method is ${method}` });
  }
}

type Priceable = { corridor: CorridorId; amount: string; payout_rail?: Rail | undefined };

export const pricingInput = <Method extends PaymentMethod>(
  body: Priceable,
  paymentMethod: Method,
): PricingInput<Method> => ({
  corridor: body.corridor,
  amount: body.amount,
  paymentMethod,
  payoutRail: body.payout_rail,
});

const { corridor: route, amount, payout_rail } = command;

const payment = {
  payment_method: paymentMethod(),
  card_token: nullAsAbsent(paymentToken()).meta({
    example: 'tok_visa',
    description: 'Required with payment_method card, refused otherwise.',
  }),
  banklink_account_token: nullAsAbsent(paymentToken()).meta({
    description: 'Required with payment_method ach, refused otherwise. From /v2/banklink/exchange.',
  }),
};

/** The handler judges the price, because it answers a bound idempotency key first (contract §6). */
const priceRule = laterRule(
  z.object({ corridor: route, amount, payout_rail, payment_method: payment.payment_method }),
  (body, context) => {
    priced(pricingInput(body, body.payment_method), context);
  },
);

const SettleForm = z
  .strictObject({ ...command, ...payment })
  .check(rule(z.object(payment), checkPaymentTokens), priceRule)
  .meta({
    id: 'SettleRequestV2',
    example: {
      corridor: 'US-JM',
      amount: '250.00',
      recipient_id: EXAMPLE_ID,
      payment_method: 'card',
      card_token: 'tok_visa',
      payout_rail: 'bank_transfer',
      purpose: 'payroll',
      reference: 'Invoice INV-1042',
    },
  });

export const SettleRequestV2 = SettleForm.transform((body) => ({
  ...body,
  priced: price(pricingInput(body, body.payment_method)),
}));

const CaribbeanForm = z
  .strictObject(command)
  .check(
    laterRule(z.object({ corridor: route, amount, payout_rail }), (body, context) => {
      priced(pricingInput(body, 'internal'), context);
    }),
  )
  .meta({
    id: 'CaribbeanOfframpRequest',
    example: {
      corridor: 'US-JM',
      amount: '250.00',
      recipient_id: EXAMPLE_ID,
      payout_rail: 'bank_transfer',
      reference: 'Invoice INV-1042',
    },
  });

export const CaribbeanOfframpRequest = CaribbeanForm.transform((body) => ({
  ...body,
  priced: price(pricingInput(body, 'internal')),
}));
