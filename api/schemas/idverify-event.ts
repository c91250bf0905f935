/**
 * Events of the identity provider (contract §9), as Sumsub sends them. Only the envelope is required; the rest is
 * validated for the types that the service knows. Providers add fields, so these objects are open.
 */
import { z } from 'zod';
import { EXAMPLE_ID, headerText, nullAsAbsent } from './common.ts';
import { EXAMPLE_DIGEST, eventId, eventType, ifReadable, signatureHeader } from './provider-event.ts';

/** The types that the service knows. */
export const IDVERIFY_TYPES = ['applicantPending', 'applicantReviewed'] as const;

/** How the provider signs. */
export const DIGEST_ALGORITHM = 'HMAC_SHA256_HEX';

export const IdverifySignature = signatureHeader(
  'x-payload-digest',
  'The hex HMAC-SHA256 of the body.',
  EXAMPLE_DIGEST,
).extend({
  'x-payload-digest-alg': headerText('How the digest is made.', DIGEST_ALGORITHM),
});

/** Any event of the identity provider. */
export const IdverifyEvent = z
  .looseObject({
    type: eventType().meta({ example: 'applicantReviewed' }),
    correlationId: eventId(),
  })
  .meta({
    id: 'IdverifyEvent',
    description:
      'Only `type` and `correlationId` are required. Of the types ' +
      `${IDVERIFY_TYPES.map((type) => `\`${type}\``).join(' and ')}, these are validated: \`externalUserId\` (the ` +
      '`verification_id`), `applicantId`, `sandboxMode`, `reviewResult.reviewAnswer`, `reviewResult.reviewRejectType`. ' +
      'Of `reviewResult.rejectLabels` those count that can be read. An event for another applicant than that of the ' +
      'verification is stored and not applied.',
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

/** An event of one of the known types. */
export const KnownIdverifyEvent = z.looseObject({
  type: z.enum(IDVERIFY_TYPES),
  /** Any text: an event may name a verification that does not exist. */
  externalUserId: nullAsAbsent(z.string()),
  applicantId: nullAsAbsent(z.string()),
  sandboxMode: nullAsAbsent(z.boolean()),
  reviewResult: nullAsAbsent(
    z.looseObject({
      reviewAnswer: nullAsAbsent(z.string()),
      reviewRejectType: nullAsAbsent(z.string()),
      rejectLabels: ifReadable(z.array(z.string().catch(''))),
    }),
  ),
});
export type KnownIdverifyEvent = z.infer<typeof KnownIdverifyEvent>;
