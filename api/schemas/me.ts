/** The caller's own organization, key and limits (contract §3). */
import { z } from 'zod';
import { QUOTA_KINDS } from '../../domain/quota.ts';
import { ApiKeyResponse } from './api-key.ts';
import { openEnum } from './common.ts';
import { OrganizationResponse } from './organization.ts';

const QuotaKind = openEnum('QuotaKind', QUOTA_KINDS, 'What is counted.');

const Quota = z
  .object({
    kind: QuotaKind.meta({ example: 'recipients' }),
    used: z.int().min(0).meta({
      description: 'Of `api_keys` and `webhooks`, those that are in use; of the others, all that were ever created.',
      example: 12,
    }),
    max: z.int().min(0).meta({ description: 'One more is 429 `quota_exceeded`.', example: 100_000 }),
  })
  .meta({ id: 'Quota' });

const Limits = z
  .object({
    requests_per_minute: z
      .int()
      .min(1)
      .meta({
        description:
          'What all requests may cost in a minute: one each, ten for a PDF or a read of usage, one more for each 64 KiB ' +
          'of an answer.',
        example: 1_200,
      }),
    quotas: z.array(Quota).meta({ description: 'One for each kind.' }),
  })
  .meta({ id: 'OrganizationLimits' });

export const CallerResponse = z
  .object({
    organization: OrganizationResponse.meta({ description: "The key's organization." }),
    key: ApiKeyResponse.meta({ description: 'The key of this request.' }),
    limits: Limits.meta({ description: 'How much the organization may do.' }),
  })
  .meta({ id: 'CallerResponse' });
