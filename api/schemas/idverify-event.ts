/** The identity provider's events (contract §9), Sumsub-shaped. Providers add fields at will, so these objects are open. */
import { z } from 'zod';
import { text } from './common.ts';

const ID_LENGTH_MAX = 255;
const WORD_LENGTH_MAX = 100;
const providerId = () => text(1, ID_LENGTH_MAX);

export const IdverifyEvent = z
  .looseObject({
    type: text(1, WORD_LENGTH_MAX).meta({ example: 'applicantReviewed' }),
    applicantId: providerId().nullish(),
    externalUserId: providerId().nullish().meta({ description: 'The `verification_id`.' }),
    correlationId: providerId().meta({ description: "The event's id." }),
    sandboxMode: z.boolean().nullish(),
    reviewResult: z.looseObject({ reviewAnswer: z.string().nullish().meta({ example: 'GREEN' }), rejectLabels: z.array(z.string()).nullish() }).nullish(),
  })
  .meta({ id: 'IdverifyEvent' });
export type IdverifyEvent = z.infer<typeof IdverifyEvent>;
