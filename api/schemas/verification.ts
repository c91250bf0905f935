/** Verifications of recipients (contract §8). */
import { z } from 'zod';
import {
  DOCUMENT_TYPES,
  VERIFICATION_DECISIONS,
  VERIFICATION_PROVIDERS,
  VERIFICATION_STATUSES,
  VERIFICATION_TYPES,
} from '../../domain/verification.ts';
import {
  closedEnum,
  constant,
  createdAt,
  EXAMPLE_ID,
  id,
  nullAsAbsent,
  objectId,
  openEnum,
  outputText,
  outputTextOrNull,
  ownOrganization,
  text,
  timestamp,
  timestampOrNull,
  visibleText,
} from './common.ts';
import { country } from './contact.ts';
import { RecipientVerificationStatus } from './recipient.ts';

const NAME_LENGTH_MAX = 140;
const REASON_LENGTH_MAX = 500;
const LEVEL_LENGTH_MAX = 100;
const COMPATIBILITY_LENGTH_MAX = 254;

const VerificationType = closedEnum('VerificationType', VERIFICATION_TYPES, '`kyc` for a person, `kyb` for a company.');
const DocumentType = closedEnum('DocumentType', DOCUMENT_TYPES, 'The document that proves an identity.');
const VerificationStatus = openEnum(
  'VerificationStatus',
  VERIFICATION_STATUSES,
  'The state of a verification. `verified`, `rejected` and `expired` are final.',
);
const VerificationProvider = openEnum('VerificationProvider', VERIFICATION_PROVIDERS, 'Who decides a verification.');
const VerificationDecision = closedEnum(
  'VerificationDecision',
  VERIFICATION_DECISIONS,
  'The decision of a verification.',
);
export const verificationDecision = (description: string) => VerificationDecision.meta({ description });

const subject = { recipient_id: id('Who is verified.'), org_id: ownOrganization() };

export const StartVerificationRequest = z
  .strictObject({
    ...subject,
    verification_type: nullAsAbsent(VerificationType).meta({
      description: 'By default `kyc` for an individual and `kyb` for a business.',
    }),
    document_type: nullAsAbsent(DocumentType).meta({ description: 'The document that proves the identity.' }),
    document_country: nullAsAbsent(country('')).meta({ description: 'Who issued the document (ISO 3166-1 alpha-2).' }),
  })
  .meta({ id: 'StartVerificationRequest' });

export const CompleteVerificationRequest = z
  .strictObject({
    org_id: ownOrganization(),
    status: VerificationDecision.meta({ description: 'The decision. It is final.', example: 'verified' }),
    verified_name: nullAsAbsent(visibleText(1, NAME_LENGTH_MAX)).meta({
      description: 'The name that was verified.',
      example: 'Marcia Campbell',
    }),
    rejection_reason: nullAsAbsent(text(1, REASON_LENGTH_MAX)).meta({
      description: 'Why it was decided so.',
      example: 'The document has expired.',
    }),
  })
  .meta({ id: 'CompleteVerificationRequest', example: { status: 'verified', verified_name: 'Marcia Campbell' } });

const compatibility = (example: string) =>
  nullAsAbsent(text(0, COMPATIBILITY_LENGTH_MAX)).meta({
    example,
    description:
      "Any text, kept for compatibility and never used: the recipient's own data is. Stored when the verification opens.",
  });

export const CreateIdverifyApplicantRequest = z
  .strictObject({
    ...subject,
    level_name: nullAsAbsent(text(1, LEVEL_LENGTH_MAX)).meta({
      description: "The provider's name for the set of checks: a default one, or one that the operator allows.",
      example: 'basic-kyc-level',
    }),
    email: compatibility('marcia@campbell.example'),
    phone: compatibility('+18765550142'),
    country: compatibility('JM'),
  })
  .meta({ id: 'CreateIdverifyApplicantRequest' });

/** @param levelNames those of this configuration */
export const createApplicantRules = (levelNames: ReadonlySet<string>) =>
  CreateIdverifyApplicantRequest.extend({
    level_name: CreateIdverifyApplicantRequest.shape.level_name.refine(
      (name) => name === undefined || levelNames.has(name),
      { error: 'must be a level that is configured here' },
    ),
  });

/** All fields but the verified name, as the events have them. */
const verification = {
  verification_id: objectId('The id of the verification.'),
  recipient_id: objectId('Who is verified.'),
  org_id: objectId('The organization that the recipient belongs to.'),
  verification_type: VerificationType.meta({ description: '`kyc` for a person, `kyb` for a company.' }),
  document_type: DocumentType.nullable().meta({ description: 'The document that proves the identity.' }),
  document_country: outputTextOrNull('Who issued the document (ISO 3166-1 alpha-2).', 'JM'),
  status: VerificationStatus.meta({ description: 'The state of the verification.' }),
  provider: VerificationProvider.meta({ description: 'Who decides.' }),
  applicant_id: outputTextOrNull("The provider's own id; null for a provider without one.", null),
  rejection_reason: outputTextOrNull('Why it was decided so, if a reason was given.', null),
  created_at: createdAt(),
  decided_at: timestampOrNull('When it was decided; null before.'),
  expires_at: timestamp('When it expires if it is not decided.'),
  workflow_id: outputText('For support: its name in Temporal.', `verification:${EXAMPLE_ID}`),
};

export const VerificationResponse = z
  .object({
    ...verification,
    verified_name: outputTextOrNull('The name that was verified, if the decision named it.', 'Marcia Campbell'),
  })
  .meta({ id: 'VerificationResponse' });

export const VerificationEventData = z.object(verification).meta({
  id: 'VerificationEventData',
  description: 'The verification as a read would have answered at this change, without `verified_name`.',
});

/** What every verification shows. Only for the document, which has it once. */
export const VerificationFields = VerificationEventData.omit({ org_id: true }).meta({
  id: 'VerificationFields',
  description: 'What every verification shows.',
});

export const VerificationStatusResponse = z
  .object({
    recipient_id: objectId('Who is verified.'),
    verification_status: RecipientVerificationStatus.meta({ description: 'The verification of the recipient.' }),
    latest: VerificationResponse.nullable().meta({ description: 'The newest verification; null if there is none.' }),
    verifications: z.array(VerificationResponse).meta({ description: 'The latest 100, newest first.' }),
  })
  .meta({ id: 'VerificationStatusResponse' });

export const IdverifyApplicantResponse = z
  .object({
    verification_id: objectId('The id of the verification.'),
    applicant_id: outputText("The provider's own id.", '65c1f0a7d2b94e1f3c8a7b60'),
    sdk_access_token: outputText(
      "For the provider's widget. The same `Idempotency-Key` shows it again for 24 hours; any other request gets a new " +
        'one.',
      '<sdk_access_token>',
    ),
    sdk_access_token_expires_at: timestamp('Until this time the token is valid.'),
    provider: constant('idverify', 'Who decides.'),
    simulation: z.boolean().meta({ description: 'True if the provider is simulated.' }),
  })
  .meta({ id: 'IdverifyApplicantResponse' });

export const VerificationPath = z.object({ verification_id: id('The verification.') });
export const VerificationRecipientPath = z.object({ recipient_id: id('The recipient.') });
