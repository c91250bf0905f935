/** Recipients of payouts (contract §4), and how their forms become a draft or a change. */
import countries from 'i18n-iso-countries';
import { z } from 'zod';
import {
  ACCOUNT_TYPES,
  ENTITY_TYPES,
  RECIPIENT_KINDS,
  RECIPIENT_VERIFICATION_STATUSES,
  type RecipientChange,
  type RecipientDraft,
} from '../../domain/recipient.ts';
import {
  country,
  currency,
  email,
  id,
  metadata,
  nullAsAbsent,
  objectId,
  PageQuery,
  pattern,
  phone,
  text,
  timestamp,
} from './common.ts';

const NAME_LENGTH_MAX = 140;
const BIC = /^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/;
const BIC_COUNTRY = [4, 6] as const;

const name = () => text(1, NAME_LENGTH_MAX).meta({ example: 'Marcia Campbell' });

/** ISO 9362: party, country, location, and optionally branch. */
const bic = () =>
  pattern(BIC, 8, 11)
    .refine((value) => countries.isValid(value.slice(...BIC_COUNTRY)), {
      error: 'must name an ISO 3166-1 country in its fifth and sixth characters',
    })
    .meta({ example: 'JNCBJMKX' });

export const BankDetailsRequest = z
  .strictObject({
    bank_name: text(1, 100).meta({ example: 'National Commercial Bank' }),
    account_number: pattern(/^[A-Z0-9]+$/, 4, 34).meta({
      description: 'Encrypted at rest. Answers show only the last four characters.',
      example: '404123456',
    }),
    account_type: nullAsAbsent(z.enum(ACCOUNT_TYPES)).meta({ example: 'savings' }),
    branch_code: nullAsAbsent(text(2, 11)).meta({ example: '00404' }),
    routing_number: nullAsAbsent(pattern(/^[A-Za-z0-9-]+$/, 2, 34)).meta({
      description: "An ABA routing number if the recipient's country is US.",
      example: '021000021',
    }),
    swift_bic: nullAsAbsent(bic()),
    currency: currency(),
  })
  .meta({ id: 'BankDetailsRequest' });

export const MobileDetails = z
  .strictObject({ provider: text(1, 40).meta({ example: 'Lynk' }), phone_number: phone() })
  .meta({ id: 'MobileDetails', description: 'A mobile-money wallet.' });

export const EXAMPLE_PERSON = {
  name: 'Marcia Campbell',
  country: 'JM',
  email: 'marcia@campbell.example',
  bank_details: {
    bank_name: 'National Commercial Bank',
    account_number: '404123456',
    account_type: 'savings',
    branch_code: '00404',
    currency: 'JMD',
  },
} as const;

const NEEDS_DETAILS = 'A recipient has `bank_details`, `mobile_details` or both.';

export const CreateRecipientRequest = z
  .strictObject({
    org_id: nullAsAbsent(id()).meta({ description: 'Redundant: the organization of the key, or absent.' }),
    kind: z.enum(RECIPIENT_KINDS).meta({ example: 'contractor' }),
    entity_type: z.enum(ENTITY_TYPES).meta({ example: 'individual' }),
    name: name(),
    country: country(),
    email: nullAsAbsent(email()),
    phone: nullAsAbsent(phone()),
    bank_details: nullAsAbsent(BankDetailsRequest),
    mobile_details: nullAsAbsent(MobileDetails),
    metadata: nullAsAbsent(metadata()),
  })
  .meta({
    id: 'CreateRecipientRequest',
    description: NEEDS_DETAILS,
    example: { kind: 'contractor', entity_type: 'individual', ...EXAMPLE_PERSON, metadata: { contract: 'C-7' } },
  });

export function recipientDraft(body: z.output<typeof CreateRecipientRequest>): RecipientDraft {
  return {
    kind: body.kind,
    entityType: body.entity_type,
    name: body.name,
    country: body.country,
    email: body.email ?? null,
    phone: body.phone ?? null,
    bankDetails: body.bank_details ?? null,
    mobileDetails: body.mobile_details ?? null,
    metadata: body.metadata ?? {},
  };
}

export const UpdateRecipientRequest = z
  .strictObject({
    name: name().optional(),
    email: email().nullish(),
    phone: phone().nullish(),
    bank_details: BankDetailsRequest.nullish(),
    mobile_details: MobileDetails.nullish(),
    metadata: metadata().nullish(),
  })
  .meta({
    id: 'UpdateRecipientRequest',
    example: { phone: '+18765550123', metadata: { contract: 'C-8' } },
    description: `A field that is present replaces the old value; \`null\` clears it. ${NEEDS_DETAILS}`,
  });

/** The fields that are present; null clears. */
export function recipientChange(body: z.output<typeof UpdateRecipientRequest>): RecipientChange {
  return {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.email === undefined ? {} : { email: body.email }),
    ...(body.phone === undefined ? {} : { phone: body.phone }),
    ...(body.bank_details === undefined ? {} : { bankDetails: body.bank_details }),
    ...(body.mobile_details === undefined ? {} : { mobileDetails: body.mobile_details }),
    ...(body.metadata === undefined ? {} : { metadata: body.metadata ?? {} }),
  };
}

export const BankDetailsResponse = z
  .object({
    bank_name: z.string().meta({ example: 'National Commercial Bank' }),
    account_number_last4: z.string().meta({ example: '3456' }),
    account_type: z.enum(ACCOUNT_TYPES).nullable(),
    branch_code: z.string().nullable().meta({ example: '00404' }),
    routing_number: z.string().nullable().meta({ example: null }),
    swift_bic: z.string().nullable().meta({ example: 'JNCBJMKX' }),
    currency: z.string().meta({ example: 'JMD' }),
  })
  .meta({ id: 'BankDetailsResponse' });

export const RecipientResponse = z
  .object({
    recipient_id: objectId(),
    org_id: objectId(),
    kind: z.enum(RECIPIENT_KINDS),
    entity_type: z.enum(ENTITY_TYPES),
    name: z.string().meta({ example: 'Marcia Campbell' }),
    country: z.string().meta({ example: 'JM' }),
    email: z.string().nullable().meta({ example: 'marcia@campbell.example' }),
    phone: z.string().nullable().meta({ example: '+18765550123' }),
    bank_details: BankDetailsResponse.nullable(),
    mobile_details: z.object({ provider: z.string(), phone_number: z.string() }).nullable().meta({ example: null }),
    metadata: z.record(z.string(), z.string()),
    is_active: z.boolean(),
    verification_status: z.enum(RECIPIENT_VERIFICATION_STATUSES),
    created_at: timestamp(),
    updated_at: timestamp(),
  })
  .meta({ id: 'RecipientResponse' });

export const RecipientPath = z.object({ recipient_id: id() });
export const RecipientQuery = PageQuery.safeExtend({
  is_active: z
    .enum(['true', 'false'])
    .transform((value) => value === 'true')
    .optional(),
  verification_status: z.enum(RECIPIENT_VERIFICATION_STATUSES).optional(),
  country: country().optional(),
});
