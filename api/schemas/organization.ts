/** Organizations (contract §3). */
import { z } from 'zod';
import { country, email, environment, id, objectId, text, timestamp } from './common.ts';

const NAME_LENGTH_MAX = 120;

export const CreateOrganizationRequest = z
  .strictObject({
    name: text(1, NAME_LENGTH_MAX).meta({ example: 'Acme Remit Ltd' }),
    country: country(),
    contact_email: email(),
  })
  .meta({ id: 'CreateOrganizationRequest' });

const organization = {
  org_id: objectId(),
  name: z.string().meta({ example: 'Acme Remit Ltd' }),
  country: z.string().meta({ example: 'JM' }),
  contact_email: z.string().meta({ example: 'ops@acme.example' }),
  status: z.literal('active'),
  environment: environment(),
  created_at: timestamp(),
};

export const OrganizationResponse = z.object(organization).meta({ id: 'OrganizationResponse' });

/** The only answer with the organization's first key. */
export const OrganizationCreatedResponse = z
  .object({
    ...organization,
    key_id: objectId(),
    api_key: z.string().meta({
      description: 'The raw key, scope `full`. It is shown only once; keep it on a server.',
      example: '<API_KEY>',
    }),
  })
  .meta({ id: 'OrganizationCreatedResponse' });

export const OrganizationPath = z.object({ org_id: id() });
