/** The consumer's own objects (contract §12): the partners' forms without the fields that consumers do not have. */
import { z } from 'zod';
import { createdAt, objectId, outputTextOrNull, timestamp } from './common.ts';
import { EstimateResponseV2, pricedForm } from './estimate.ts';
import { DETAILS_RULES, EXAMPLE_PERSON, RecipientResponse, recipientForm } from './recipient.ts';
import { VerificationResponse } from './verification.ts';

export const MeResponse = z
  .object({
    consumer_id: objectId('The id of the consumer.'),
    email: outputTextOrNull(
      'The address that the codes are sent to; null for a consumer with a phone.',
      'marcia@campbell.example',
    ),
    phone: outputTextOrNull('The number that the codes are sent to; null for a consumer with an e-mail address.', null),
    created_at: createdAt(),
    session_expires_at: timestamp('When this session ends.'),
  })
  .meta({ id: 'MeResponse' });

const NOT_A_CONSUMERS = { org_id: true, kind: true, metadata: true } as const;

export const RecipientBody = z
  .strictObject(recipientForm)
  .check(...DETAILS_RULES)
  .meta({
    id: 'RecipientBody',
    description: 'A recipient has `bank_details`, `mobile_details` or both.',
    example: { entity_type: 'individual', ...EXAMPLE_PERSON },
  });

export const ConsumerRecipientResponse = RecipientResponse.omit(NOT_A_CONSUMERS).meta({
  id: 'ConsumerRecipientResponse',
});

export const ConsumerVerificationResponse = VerificationResponse.omit({ org_id: true }).meta({
  id: 'ConsumerVerificationResponse',
});

export const QuoteBody = pricedForm('QuoteBody');

export const QuoteResponse = EstimateResponseV2.omit({ estimate_id: true })
  .extend({
    quote_id: objectId(
      'A transfer with this id copies the inputs of the quote. Its rate and fees are those of acceptance.',
    ),
    expires_at: timestamp('Until this time the figures may be shown.'),
  })
  .meta({ id: 'QuoteResponse' });
