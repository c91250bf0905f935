import { z } from 'zod';
import { country, email, environment, id, text, timestamp } from './common.ts';

const NAME_LENGTH_MAX = 120;

export const CreateOrganizationRequest = z
  .strictObject({ name: text(1, NAME_LENGTH_MAX).meta({ example: 'Acme Remit Ltd' }), country: country(), contact_email: email() })
  .meta({ id: 'CreateOrganizationRequest' });

const organization = {
  org_id: z.string().meta({ example: '019ad3f0-5c1b-7d3e-9a6f-0d5a7c1e2b3f' }),
  name: z.string(),
  country: z.string(),
  contact_email: z.string(),
  status: z.literal('active'),
  environment: environment(),
  created_at: timestamp(),
};

export const OrganizationResponse = z.object(organization).meta({ id: 'OrganizationResponse' });

/** The only answer that carries the organization's first key. */
export const OrganizationCreatedResponse = z
  .object({
    ...organization,
    key_id: z.string(),
    api_key: z.string().meta({ description: 'The raw key, scope `full`. It is shown this once; keep it server-side.', example: '<API_KEY>' }),
  })
  .meta({ id: 'OrganizationCreatedResponse' });

export const OrganizationPath = z.object({ org_id: id() });
