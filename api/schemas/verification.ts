/** Verifications of recipients (contract §8). */
import { z } from 'zod';
import { RECIPIENT_VERIFICATION_STATUSES } from '../../domain/recipient.ts';
import {
  DOCUMENT_TYPES,
  VERIFICATION_DECISIONS,
  VERIFICATION_PROVIDERS,
  VERIFICATION_STATUSES,
  VERIFICATION_TYPES,
} from '../../domain/verification.ts';
import { country, EXAMPLE_ID, email, id, nullAsAbsent, objectId, phone, text, timestamp } from './common.ts';

const NAME_LENGTH_MAX = 140;
const REASON_LENGTH_MAX = 500;
const LEVEL_LENGTH_MAX = 100;

const subject = { recipient_id: id(), org_id: id() };

export const StartVerificationRequest = z
  .strictObject({
    ...subject,
    verification_type: nullAsAbsent(z.enum(VERIFICATION_TYPES)).meta({
      description: 'By default `kyc` for an individual and `kyb` for a business.',
    }),
    document_type: nullAsAbsent(z.enum(DOCUMENT_TYPES)),
    document_country: nullAsAbsent(country()),
  })
  .meta({ id: 'StartVerificationRequest' });

export const CompleteVerificationRequest = z
  .strictObject({
    status: z.enum(VERIFICATION_DECISIONS).meta({ example: 'verified' }),
    verified_name: nullAsAbsent(text(1, NAME_LENGTH_MAX)).meta({
      description: 'Allowed only with `verified`.',
      example: 'Marcia Campbell',
    }),
    rejection_reason: nullAsAbsent(text(1, REASON_LENGTH_MAX)).meta({
      description: 'Required with `rejected`, refused with `verified`.',
      example: 'The document has expired.',
    }),
  })
  .superRefine((body, context) => {
    const fault = (field: string, message: string, type?: string) =>
      context.addIssue({ code: 'custom', path: [field], message, ...(type === undefined ? {} : { params: { type } }) });
    if (body.status === 'rejected' && body.rejection_reason === undefined)
      fault('rejection_reason', 'Field required', 'missing');
    if (body.status === 'verified' && body.rejection_reason !== undefined)
      fault('rejection_reason', 'is allowed only when status is rejected');
    if (body.status === 'rejected' && body.verified_name !== undefined)
      fault('verified_name', 'is allowed only when status is verified');
  })
  .meta({ id: 'CompleteVerificationRequest', example: { status: 'verified', verified_name: 'Marcia Campbell' } });

const COMPATIBILITY = 'Kept for compatibility and never used. The contact data of the recipient is used.';

export const CreateIdverifyApplicantRequest = z
  .strictObject({
    ...subject,
    level_name: nullAsAbsent(text(1, LEVEL_LENGTH_MAX)).meta({
      description: "The provider's name for the set of checks: a default one, or one that the operator allows.",
      example: 'basic-kyc-level',
    }),
    email: nullAsAbsent(email()).meta({ description: COMPATIBILITY }),
    phone: nullAsAbsent(phone()).meta({ description: COMPATIBILITY }),
    country: nullAsAbsent(country()).meta({ description: COMPATIBILITY }),
  })
  .meta({ id: 'CreateIdverifyApplicantRequest' });

export const VerificationResponse = z
  .object({
    verification_id: objectId(),
    recipient_id: objectId(),
    org_id: objectId(),
    verification_type: z.enum(VERIFICATION_TYPES),
    document_type: z.enum(DOCUMENT_TYPES).nullable(),
    document_country: z.string().nullable().meta({ example: 'JM' }),
    status: z.enum(VERIFICATION_STATUSES),
    provider: z.enum(VERIFICATION_PROVIDERS),
    applicant_id: z.string().nullable().meta({ example: null }),
    verified_name: z.string().nullable().meta({ example: 'Marcia Campbell' }),
    rejection_reason: z.string().nullable().meta({ example: null }),
    created_at: timestamp(),
    decided_at: timestamp().nullable(),
    expires_at: timestamp(),
    workflow_id: z.string().meta({ example: `verification:${EXAMPLE_ID}` }),
  })
  .meta({ id: 'VerificationResponse' });

export const VerificationStatusResponse = z
  .object({
    recipient_id: objectId(),
    verification_status: z.enum(RECIPIENT_VERIFICATION_STATUSES),
    latest: VerificationResponse.nullable(),
    verifications: z.array(VerificationResponse).meta({ description: 'The latest 100, newest first.' }),
  })
  .meta({ id: 'VerificationStatusResponse' });

export const IdverifyApplicantResponse = z
  .object({
    verification_id: objectId(),
    applicant_id: z.string().meta({ example: '65c1f0a7d2b94e1f3c8a7b60' }),
    sdk_access_token: z.string().meta({
      description: "For the provider's widget. It is not stored; repeat the request for a new one.",
      example: '<sdk_access_token>',
    }),
    sdk_access_token_expires_at: timestamp(),
    provider: z.literal('idverify'),
    simulation: z.boolean(),
  })
  .meta({ id: 'IdverifyApplicantResponse' });

export const VerificationPath = z.object({ verification_id: id() });
export const VerificationRecipientPath = z.object({ recipient_id: id() });
