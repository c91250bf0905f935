/** Recipients of payouts (contract §4), and how their forms become a draft or a change. */
// Its codes alone: the package's main file reads the names of the countries in 80 languages too.
import countries from 'i18n-iso-countries/index.js';
import { z } from 'zod';
import {
  ACCOUNT_TYPES,
  ENTITY_TYPES,
  missingDetails,
  RECIPIENT_KINDS,
  RECIPIENT_VERIFICATION_STATUSES,
  type RecipientChange,
  type RecipientDraft,
  routingFaults,
} from '../../domain/recipient.ts';
import {
  addFaults,
  closedEnum,
  createdAt,
  currency,
  flag,
  id,
  metadata,
  metadataFilter,
  nullAsAbsent,
  objectId,
  openEnum,
  outputText,
  outputTextOrNull,
  ownOrganization,
  pattern,
  queryFlag,
  shownMetadata,
  text,
  timestampOrNull,
  updatedAt,
  visibleText,
} from './common.ts';
import { COUNTRY_CODES, country, email, phone } from './contact.ts';
import { PageQuery } from './page.ts';
import { rule } from './rule.ts';

const NAME_LENGTH_MAX = 140;
const BIC = /^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/;
const BIC_COUNTRY = [4, 6] as const;

const RecipientKind = closedEnum('RecipientKind', RECIPIENT_KINDS, 'What a recipient is to you.');
const EntityType = closedEnum('EntityType', ENTITY_TYPES, 'A person or a company.');
const BankAccountType = closedEnum('BankAccountType', ACCOUNT_TYPES, 'The kind of a bank account.');
export const RecipientVerificationStatus = openEnum(
  'RecipientVerificationStatus',
  RECIPIENT_VERIFICATION_STATUSES,
  'The verification of a recipient. Settlements of 1 000.00 and more need `verified`.',
);

const name = () =>
  visibleText(1, NAME_LENGTH_MAX).meta({
    description: 'The full name of the person or company.',
    example: 'Marcia Campbell',
  });

/** ISO 9362: party, country, location, and optionally branch. */
const bic = () =>
  pattern(BIC, [8, 11], 'a SWIFT code such as JNCBJMKX')
    .refine((value) => countries.isValid(value.slice(...BIC_COUNTRY)), {
      error: 'must name an ISO 3166-1 country in its fifth and sixth characters',
    })
    .meta({
      description: 'The SWIFT code of the bank (ISO 9362).',
      pattern: `^[A-Z0-9]{4}(${COUNTRY_CODES})[A-Z0-9]{2}([A-Z0-9]{3})?$`,
      example: 'JNCBJMKX',
    });

const bankName = visibleText(1, 100).meta({
  description: 'The name of the bank.',
  example: 'National Commercial Bank',
});
const accountNumber = pattern(/^[A-Z0-9]+$/, [4, 34], 'capital letters and digits').meta({
  description: 'Encrypted at rest. Answers show only the last four characters.',
  example: '404123456',
});
const ACCOUNT_TYPE = { description: 'The kind of account.', example: 'savings' } as const;
const branchCode = text(2, 11);
const BRANCH_CODE = { description: 'The branch of the bank.', example: '00404' };
const routingNumber = pattern(/^[A-Za-z0-9-]+$/, [2, 34], 'letters, digits and hyphens');
const ROUTING_NUMBER = {
  description: "An ABA routing number if the recipient's country is US.",
  example: '021000021',
};
const SWIFT_BIC = { description: 'The SWIFT code of the bank (ISO 9362).' };
const accountCurrency = currency('The currency of the account.');

export const BankDetailsRequest = z
  .strictObject({
    bank_name: bankName,
    account_number: accountNumber,
    account_type: nullAsAbsent(BankAccountType).meta(ACCOUNT_TYPE),
    branch_code: nullAsAbsent(branchCode).meta(BRANCH_CODE),
    routing_number: nullAsAbsent(routingNumber).meta(ROUTING_NUMBER),
    swift_bic: nullAsAbsent(bic()).meta(SWIFT_BIC),
    currency: accountCurrency,
  })
  .meta({ id: 'BankDetailsRequest', description: 'A bank account.' });

const walletProvider = text(1, 40).meta({ description: 'The provider of the wallet.', example: 'Lynk' });
const walletNumber = () => phone('The number of the wallet (E.164).');

export const MobileDetails = z
  .strictObject({ provider: walletProvider, phone_number: walletNumber() })
  .meta({ id: 'MobileDetails', description: 'A mobile-money wallet.' });

const MERGED = 'A field that is absent stays as it is, and `null` clears an optional one.';

const BankDetailsChange = z
  .strictObject({
    bank_name: bankName.optional(),
    account_number: accountNumber.optional(),
    account_type: BankAccountType.nullish().meta(ACCOUNT_TYPE),
    branch_code: branchCode.nullish().meta(BRANCH_CODE),
    routing_number: routingNumber.nullish().meta(ROUTING_NUMBER),
    swift_bic: bic().nullish().meta(SWIFT_BIC),
    currency: accountCurrency.optional(),
  })
  .meta({ id: 'BankDetailsChange', description: `Changes of a bank account. ${MERGED}` });

const MobileDetailsChange = z
  .strictObject({ provider: walletProvider.optional(), phone_number: walletNumber().optional() })
  .meta({ id: 'MobileDetailsChange', description: `Changes of a mobile-money wallet. ${MERGED}` });

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

const EMAIL = "The recipient's e-mail address.";
const PHONE = "The recipient's phone number (E.164).";
const BANK = 'Needed for `bank_transfer`.';
const MOBILE = 'Needed for `mobile_money`.';
const NEEDS_DETAILS = 'A recipient has `bank_details`, `mobile_details` or both.';

/** The fields that consumers give too. */
export const recipientForm = {
  entity_type: EntityType.meta({ description: 'A person or a company.', example: 'individual' }),
  name: name(),
  country: country('Where the recipient is paid (ISO 3166-1 alpha-2).'),
  email: nullAsAbsent(email(EMAIL)).meta({ description: EMAIL }),
  phone: nullAsAbsent(phone(PHONE)).meta({ description: PHONE }),
  bank_details: nullAsAbsent(BankDetailsRequest).meta({ description: BANK }),
  mobile_details: nullAsAbsent(MobileDetails).meta({ description: MOBILE }),
};

const { country: payoutCountry, bank_details, mobile_details } = recipientForm;

/** The rules about the details. There are two, because the first one needs no country. */
export const DETAILS_RULES = [
  rule(z.object({ bank_details, mobile_details }), (body, context) => {
    addFaults(missingDetails(detailsIn(body)), context);
  }),
  rule(z.object({ country: payoutCountry, bank_details }), ({ country: code, ...body }, context) => {
    addFaults(routingFaults(code, detailsIn(body)), context);
  }),
] as const;

const detailsIn = (body: {
  readonly bank_details?: z.output<typeof bank_details>;
  readonly mobile_details?: z.output<typeof mobile_details>;
}) => ({ bankDetails: body.bank_details ?? null, mobileDetails: body.mobile_details ?? null });

export const CreateRecipientRequest = z
  .strictObject({
    org_id: ownOrganization(),
    kind: RecipientKind.meta({ description: 'What the recipient is to you.', example: 'contractor' }),
    ...recipientForm,
    metadata: nullAsAbsent(metadata()).meta({ description: 'Your own keys and values.' }),
  })
  .check(...DETAILS_RULES)
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
    email: email(EMAIL).nullish().meta({ description: EMAIL }),
    phone: phone(PHONE).nullish().meta({ description: PHONE }),
    bank_details: BankDetailsChange.nullish().meta({ description: `${BANK} Merged with the stored ones.` }),
    mobile_details: MobileDetailsChange.nullish().meta({ description: `${MOBILE} Merged with the stored ones.` }),
    metadata: metadata().nullish().meta({ description: 'Your own keys and values; they replace all earlier ones.' }),
  })
  .meta({
    id: 'UpdateRecipientRequest',
    example: { phone: '+18765550123', bank_details: { branch_code: '00405' }, metadata: { contract: 'C-8' } },
    description: `${MERGED} ${NEEDS_DETAILS}`,
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
    bank_name: outputText('The name of the bank.', 'National Commercial Bank'),
    account_number_last4: outputText('The last four characters of the account number.', '3456'),
    account_type: BankAccountType.nullable().meta({ description: 'The kind of account.' }),
    branch_code: outputTextOrNull('The branch of the bank.', '00404'),
    routing_number: outputTextOrNull('The routing number of the bank.', null),
    swift_bic: outputTextOrNull('The SWIFT code of the bank (ISO 9362).', 'JNCBJMKX'),
    currency: outputText('The currency of the account.', 'JMD'),
  })
  .meta({ id: 'BankDetailsResponse', description: 'A bank account, without its number.' });

const MobileDetailsResponse = z
  .object({
    provider: outputText('The provider of the wallet.', 'Lynk'),
    phone_number: outputText('The number of the wallet (E.164).', '+18765550123'),
  })
  .meta({ id: 'MobileDetailsResponse', description: 'A mobile-money wallet.' });

export const RecipientResponse = z
  .object({
    recipient_id: objectId('The id of the recipient.'),
    org_id: objectId('The organization that the recipient belongs to.'),
    kind: RecipientKind.meta({ description: 'What the recipient is to you.' }),
    entity_type: EntityType.meta({ description: 'A person or a company.' }),
    name: outputTextOrNull('The full name of the person or company; null once it was erased.', 'Marcia Campbell'),
    country: outputText('Where the recipient is paid (ISO 3166-1 alpha-2).', 'JM'),
    email: outputTextOrNull(EMAIL, 'marcia@campbell.example'),
    phone: outputTextOrNull(PHONE, '+18765550123'),
    bank_details: BankDetailsResponse.nullable().meta({ description: 'The bank account; null if there is none.' }),
    mobile_details: MobileDetailsResponse.nullable().meta({
      description: 'The mobile-money wallet; null if there is none.',
      example: null,
    }),
    metadata: shownMetadata(),
    is_active: flag('False after it was deactivated. Then it takes no change and no new settlement.'),
    verification_status: RecipientVerificationStatus.meta({ description: 'The verification of the recipient.' }),
    erased_at: timestampOrNull('When its personal data was erased, permanently; null if it was not.'),
    created_at: createdAt(),
    updated_at: updatedAt(),
  })
  .meta({ id: 'RecipientResponse' });

/** The data of a recipient's events: what a read answers, but for personal data. */
export const RecipientEventData = RecipientResponse.omit({
  name: true,
  email: true,
  phone: true,
  bank_details: true,
  mobile_details: true,
}).meta({
  id: 'RecipientEventData',
  description: 'The recipient as a read would have answered at this change, without name, contacts and accounts.',
});

export const RecipientPath = z.object({ recipient_id: id('The recipient.') });
export const RecipientQuery = PageQuery.safeExtend({
  is_active: queryFlag('Only active recipients, or only deactivated ones.'),
  verification_status: RecipientVerificationStatus.optional().meta({
    description: 'Only recipients with this verification.',
  }),
  country: country('').optional().meta({ description: 'Only recipients who are paid in this country.' }),
  metadata: metadataFilter('Only recipients with exactly these entries: `metadata[contract]=C-7`.'),
});
