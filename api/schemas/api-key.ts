/** API keys (contract §3). Only the answers of creation and rotation show the raw key. */
import { z } from 'zod';
import { API_KEY_NAME_LENGTH_MAX, API_KEY_STATUSES } from '../../domain/api-key.ts';
import { SCOPES } from '../../domain/scope.ts';
import { EXAMPLE_ID, environment, id, nullAsAbsent, objectId, text, timestamp } from './common.ts';

const scope = () =>
  z.enum(SCOPES).meta({ description: '`full` covers all scopes, and every scope covers `read`.', example: 'settle' });

export const CreateApiKeyRequest = z
  .strictObject({
    name: text(1, API_KEY_NAME_LENGTH_MAX).meta({ example: 'Payout service' }),
    scope: scope(),
    expires_at: nullAsAbsent(z.iso.datetime({ offset: true })).meta({
      description: 'RFC 3339, in the future. At this time the key becomes invalid.',
      example: '2027-11-21T08:00:00.000Z',
    }),
  })
  .meta({ id: 'CreateApiKeyRequest' });

const apiKey = {
  key_id: objectId(),
  org_id: objectId(),
  name: z.string().meta({ example: 'Payout service' }),
  scope: scope(),
  status: z.enum(API_KEY_STATUSES),
  environment: environment(),
  prefix: z.string().meta({ description: 'The first 12 characters of the raw key.', example: 'sk_local_4fQ' }),
  created_at: timestamp(),
  last_used_at: timestamp().nullable().meta({ description: 'May be up to one minute old.' }),
  expires_at: timestamp().nullable(),
  revoked_at: timestamp().nullable(),
  rotated_to: z.string().nullable().meta({ description: 'The `key_id` of the key that replaced it.', example: null }),
};

const rawKey = () =>
  z.string().meta({ description: 'The raw key. It is shown only once; keep it on a server.', example: '<API_KEY>' });

export const ApiKeyResponse = z.object(apiKey).meta({ id: 'ApiKeyResponse' });
export const ApiKeyCreatedResponse = z.object({ ...apiKey, api_key: rawKey() }).meta({ id: 'ApiKeyCreatedResponse' });
export const ApiKeyRotatedResponse = z
  .object({
    ...apiKey,
    api_key: rawKey(),
    rotated_from: z
      .string()
      .meta({ description: 'The `key_id` of the replaced key, which is invalid now.', example: EXAMPLE_ID }),
  })
  .meta({ id: 'ApiKeyRotatedResponse' });

export const ApiKeyPath = z.object({ key_id: id() });
