/** Settlements (contract §6): the commands, the accepted settlement and the settlement as read. */
import { z } from 'zod';
import type { CorridorId, Rail } from '../../domain/corridor.ts';
import { EXCEPTION_TYPES } from '../../domain/evidence.ts';
import { INPUT_METHODS, PAYMENT_METHODS, type PaymentMethod } from '../../domain/payment-method.ts';
import { type PricingInput, price } from '../../domain/pricing.ts';
import { PURPOSES, SETTLEMENT_STATUSES } from '../../domain/settlement.ts';
import {
  corridor,
  createdFrom,
  createdTo,
  currency,
  EXAMPLE_ID,
  EXAMPLE_SETTLEMENT_ID,
  environment,
  id,
  metadata,
  money,
  nullAsAbsent,
  objectId,
  PageQuery,
  rail,
  repeatable,
  settlementId,
  text,
  timestamp,
} from './common.ts';
import { priced } from './estimate.ts';

const TOKEN_LENGTH_MAX = 1024;
export const paymentToken = () => text(1, TOKEN_LENGTH_MAX);

const REFERENCE_LENGTH_MAX = 140;
const reference = () => text(1, REFERENCE_LENGTH_MAX);

/** The fields that both settlement routes accept. */
const command = {
  corridor: corridor(),
  amount: money(),
  recipient_id: id(),
  payout_rail: rail(),
  purpose: nullAsAbsent(z.enum(PURPOSES)),
  reference: nullAsAbsent(reference()).meta({ example: 'Invoice INV-1042' }),
  metadata: nullAsAbsent(metadata()),
};

/** The parts of a command that are not its price. */
export const settlementFields = (body: z.output<z.ZodObject<typeof command>>) => ({
  recipientId: body.recipient_id,
  purpose: body.purpose ?? null,
  reference: body.reference ?? null,
  metadata: body.metadata ?? {},
});

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

const pricingInput = <Method extends PaymentMethod>(body: Priceable, paymentMethod: Method): PricingInput<Method> => ({
  corridor: body.corridor,
  amount: body.amount,
  paymentMethod,
  payoutRail: body.payout_rail,
});

/**
 * A transformation adds the price to a valid form. Its faults are the handler's: a bound idempotency key is answered
 * before they are (contract §6). When the form has other faults, this refinement lists those of the price beside them.
 */
function refinePricing(input: PricingInput, context: z.RefinementCtx): void {
  if (context.issues.length > 0) priced(input, context);
}

const SettleForm = z
  .strictObject({
    ...command,
    payment_method: z.enum(INPUT_METHODS).meta({ example: 'card' }),
    card_token: nullAsAbsent(paymentToken()).meta({
      example: 'tok_visa',
      description: 'Required with payment_method card, refused otherwise.',
    }),
    banklink_account_token: nullAsAbsent(paymentToken()).meta({
      description: 'Required with payment_method ach, refused otherwise. From /v2/banklink/exchange.',
    }),
  })
  .superRefine((body, context) => {
    checkPaymentTokens(body, context);
    refinePricing(pricingInput(body, body.payment_method), context);
  })
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
  .superRefine((body, context) => refinePricing(pricingInput(body, 'internal'), context))
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

const answer = {
  settlement_id: z.string().meta({ example: EXAMPLE_SETTLEMENT_ID }),
  status: z.enum(SETTLEMENT_STATUSES),
  corridor: corridor(),
  amount: money(),
  source_currency: currency(),
  destination_amount: money(),
  destination_currency: currency(),
  fx_rate: z.string().meta({ example: '157.250000' }),
  input_fee: money(),
  platform_fee: money(),
  total_fees: money(),
  recipient_id: objectId(),
  payment_method: z.enum(PAYMENT_METHODS),
  payout_rail: rail(),
  purpose: z.enum(PURPOSES).nullable(),
  reference: z.string().nullable().meta({ example: 'Invoice INV-1042' }),
  metadata: z.record(z.string(), z.string()),
  environment: environment(),
  simulation: z.literal(true),
  executable: z.literal(false),
  created_at: timestamp(),
  updated_at: timestamp(),
};

export const SettleResponseV2 = z.object(answer).meta({ id: 'SettleResponseV2' });
export const CaribbeanOfframpResponse = z.object(answer).meta({ id: 'CaribbeanOfframpResponse' });

/** A settlement as read: its timeline, what it waits for, and its outcome. */
export const SettlementResponse = z
  .object({
    ...answer,
    timeline: z.array(
      z.object({
        status: z.enum(SETTLEMENT_STATUSES),
        at: timestamp(),
        reason: z.string().optional(),
        evidence_id: z.string().optional(),
      }),
    ),
    amount_received: money().meta({ description: 'Everything that came in, in the source currency.' }),
    amount_refund_due: money().meta({
      description: 'What came in and is owed back: too much, too late, or for a settlement that is not paid out.',
    }),
    payee: z
      .object({
        name: z.string().meta({ example: 'Marcia Brown' }),
        country: z.string().meta({ example: 'JM' }),
        rail: rail(),
        account_last4: z.string().nullable().meta({ example: '6789' }),
      })
      .nullable()
      .meta({
        description:
          'Who is paid, as the recipient was when the settlement was accepted. Null for a settlement of before payees were frozen.',
      }),
    failure: z.object({ code: z.string(), message: z.string() }).nullable().meta({ example: null }),
    exceptions: z.array(
      z.object({
        type: z.enum(EXCEPTION_TYPES),
        at: timestamp(),
        evidence_id: z.string().nullable(),
        amount: money().optional(),
        currency: z.string().optional().meta({ example: 'USD' }),
        reason: z.string().optional().meta({ description: "The provider's code, where it gave one.", example: 'R01' }),
      }),
    ),
    payment_instructions: z
      .object({
        beneficiary: z.string(),
        bank_name: z.string(),
        account_number: z.string(),
        routing_number: z.string(),
        reference: z.string(),
        amount: money(),
        currency: currency(),
        simulation: z.literal(true),
      })
      .nullable()
      .meta({ description: 'With payment_method wire, while the money is waited for.', example: null }),
    certificate_id: z.string().nullable().meta({ example: 'CERT-9F86D081884C7D659A2FEAA0C55AD015' }),
    workflow_id: z.string().meta({ example: `settlement:${EXAMPLE_SETTLEMENT_ID}` }),
    expires_at: timestamp().nullable(),
  })
  .meta({ id: 'SettlementResponse' });

/** A loose object, because every request has other headers too. An invalid preference is ignored (RFC 7240). */
export const SettlementPreferences = z.looseObject({
  prefer: z.string().optional().meta({
    description: '`wait=N`: the answer waits until the status changes, for at most N seconds. N is at most 30.',
    example: 'wait=10',
  }),
});

export const SettlementPath = z.object({ settlement_id: settlementId() });

export const SettlementQuery = PageQuery.safeExtend({
  status: repeatable(SETTLEMENT_STATUSES, 'Only settlements in this status. It can be given several times.'),
  corridor: corridor().optional(),
  payment_method: z.enum(PAYMENT_METHODS).optional(),
  recipient_id: id().optional(),
  reference: reference().optional().meta({ description: 'Exactly this reference.' }),
  created_from: createdFrom(),
  created_to: createdTo(),
  metadata: metadata()
    .optional()
    .meta({ description: 'Only settlements with exactly these entries: `metadata[invoice]=INV-1042`.' }),
});
