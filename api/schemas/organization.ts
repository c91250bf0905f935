/** Organizations (contract §3). */
import { z } from 'zod';
import { ORGANIZATION_STATUSES } from '../../domain/organization.ts';
import { createdAt, environment, id, objectId, openEnum, outputText, visibleText } from './common.ts';
import { country, email } from './contact.ts';

const NAME_LENGTH_MAX = 120;

export const CreateOrganizationRequest = z
  .strictObject({
    name: visibleText(1, NAME_LENGTH_MAX).meta({ description: "The organization's name.", example: 'Acme Remit Ltd' }),
    country: country('Where the organization is (ISO 3166-1 alpha-2).'),
    contact_email: email('Where the operator of the service can reach you.'),
  })
  .meta({ id: 'CreateOrganizationRequest' });

const organization = {
  org_id: objectId('The id of the organization.'),
  name: outputText('As it was given at sign-up.', 'Acme Remit Ltd'),
  country: outputText('Where the organization is (ISO 3166-1 alpha-2).', 'JM'),
  contact_email: outputText('Where the operator of the service can reach you.', 'ops@acme.example'),
  status: openEnum(
    'OrganizationStatus',
    ORGANIZATION_STATUSES,
    '`suspended`: by the operator of the service. Reads are answered, and everything else is refused.',
  ),
  environment: environment('The environment in which the organization exists.'),
  created_at: createdAt(),
};

export const OrganizationResponse = z.object(organization).meta({ id: 'OrganizationResponse' });

/** The only answer with the organization's first key. */
export const OrganizationCreatedResponse = z
  .object({
    ...organization,
    key_id: objectId('The id of the first key.'),
    api_key: z.string().meta({
      description: 'The raw key, scope `full`. No other answer shows it: keep it on a server.',
      example: '<API_KEY>',
    }),
  })
  .meta({ id: 'OrganizationCreatedResponse' });

export const OrganizationPath = z.object({ org_id: id('The organization of your key.') });
