/**
 * Events of the identity provider (contract §9), as Sumsub sends them. Providers add fields, so these objects are open.
 */
import { z } from 'zod';
import { EXAMPLE_ID, text } from './common.ts';

const ID_LENGTH_MAX = 255;
const WORD_LENGTH_MAX = 100;
const providerId = () => text(1, ID_LENGTH_MAX);

export const IdverifyEvent = z
  .looseObject({
    type: text(1, WORD_LENGTH_MAX).meta({ example: 'applicantReviewed' }),
    applicantId: providerId().nullish(),
    externalUserId: providerId().nullish().meta({ description: 'The `verification_id`.' }),
    correlationId: providerId().meta({ description: 'The id of the event.' }),
    sandboxMode: z.boolean().nullish(),
    reviewResult: z
      .looseObject({
        reviewAnswer: z.string().nullish().meta({ example: 'GREEN' }),
        rejectLabels: z.array(z.string()).nullish(),
      })
      .nullish(),
  })
  .meta({
    id: 'IdverifyEvent',
    example: {
      type: 'applicantReviewed',
      applicantId: '65c1f0a7d2b94e1f3c8a7b60',
      externalUserId: EXAMPLE_ID,
      correlationId: 'req-7d9f1c2a',
      sandboxMode: true,
      reviewResult: { reviewAnswer: 'GREEN' },
    },
  });
export type IdverifyEvent = z.infer<typeof IdverifyEvent>;
