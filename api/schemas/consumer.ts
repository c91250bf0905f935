/** The consumer's own objects (contract §12): the partner's forms, less what a consumer has no use for. */
import { z } from 'zod';
import { corridor, EXAMPLE_ID, money, nullAsAbsent, objectId, rail, timestamp } from './common.ts';
import { EstimateResponseV2, paymentMethod, priced } from './estimate.ts';
import { CreateRecipientRequest, EXAMPLE_PERSON, RecipientResponse } from './recipient.ts';

export const MeResponse = z
  .object({
    consumer_id: objectId(),
    email: z.string().nullable().meta({ example: 'marcia@campbell.example' }),
    phone: z.string().nullable().meta({ example: null }),
    created_at: timestamp(),
    session_expires_at: timestamp(),
  })
  .meta({ id: 'MeResponse' });

const NOT_A_CONSUMERS = { org_id: true, kind: true, metadata: true } as const;

export const RecipientBody = CreateRecipientRequest.omit(NOT_A_CONSUMERS).meta({
  id: 'RecipientBody',
  description: 'A recipient has `bank_details`, `mobile_details` or both.',
  example: { entity_type: 'individual', ...EXAMPLE_PERSON },
});

export const ConsumerRecipientResponse = RecipientResponse.omit(NOT_A_CONSUMERS).meta({
  id: 'ConsumerRecipientResponse',
});

const QuoteForm = z
  .strictObject({
    corridor: corridor(),
    amount: money(),
    payment_method: paymentMethod(),
    payout_rail: nullAsAbsent(rail()),
  })
  .meta({ id: 'QuoteBody' });

export const QuoteBody = QuoteForm.transform(({ payment_method, payout_rail, ...command }, context) =>
  priced({ ...command, paymentMethod: payment_method, payoutRail: payout_rail }, context),
);

export const QuoteResponse = EstimateResponseV2.omit({ estimate_id: true })
  .extend({
    quote_id: z.string().meta({
      description: 'A transfer that names it copies its inputs; rate and fees are those of acceptance.',
      example: EXAMPLE_ID,
    }),
    expires_at: timestamp().meta({ description: 'Until then its figures may be shown.' }),
  })
  .meta({ id: 'QuoteResponse' });
