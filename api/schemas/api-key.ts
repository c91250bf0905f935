/** API keys (contract §3). Only the answers of creation and rotation show the raw key. */
import { z } from 'zod';
import { ALLOWED_CIDRS_MAX, API_KEY_NAME_LENGTH_MAX, API_KEY_STATUSES } from '../../domain/api-key.ts';
import { blockText, parseBlock } from '../../domain/network-address.ts';
import { SCOPES } from '../../domain/scope.ts';
import {
  closedEnum,
  createdAt,
  EXAMPLE_ID,
  environment,
  id,
  nullAsAbsent,
  objectId,
  openEnum,
  queryFlag,
  text,
  timestampOrNull,
  visibleText,
} from './common.ts';
import { moment } from './page.ts';

const Scope = closedEnum(
  'ApiKeyScope',
  SCOPES,
  'What a key may do. `read`: every read but the list of keys, and estimates. `recipients`, `compliance` and `settle`: their writes, and ' +
    '`read`. `full`: everything.',
);
export const scope = (description = 'What the key may do.') => Scope.meta({ description, example: 'settle' });

const ApiKeyStatus = openEnum('ApiKeyStatus', API_KEY_STATUSES, 'Only an `active` key is valid.');

/** The longest text of an IPv6 address with an IPv4 tail, and of its prefix. */
const BLOCK_LENGTH_MAX = 49;

/** Blocks of addresses in one form, in the places of the request: a later fault names its place. */
const allowedCidrs = () =>
  z
    .array(
      text(1, BLOCK_LENGTH_MAX)
        .transform((value, context) => {
          const block = parseBlock(value);
          if (block) return blockText(block);
          context.addIssue({
            code: 'custom',
            message: 'must be an address or a CIDR block that has not every address',
          });
          return z.NEVER;
        })
        .meta({ example: '203.0.113.0/24' }),
    )
    .min(1)
    .max(ALLOWED_CIDRS_MAX);

export const CreateApiKeyRequest = z
  .strictObject({
    name: visibleText(1, API_KEY_NAME_LENGTH_MAX).meta({
      description: 'For your own lists: what uses the key.',
      example: 'Payout service',
    }),
    scope: scope('What the new key may do; at most what your key may do.'),
    expires_at: nullAsAbsent(moment()).meta({
      description:
        'RFC 3339, in the future. At this time the key becomes invalid. At most the expiry of your key, which is the default.',
      example: '2027-11-21T08:00:00.000Z',
    }),
    allowed_cidrs: nullAsAbsent(allowedCidrs()).meta({
      description:
        'IPv4 and IPv6 addresses and blocks from which alone the key is valid. From others it gets the 401 of an unknown ' +
        'key. Each lies within a block of your key, if that has any; its blocks are the default.',
      example: ['203.0.113.0/24', '2001:db8:4::/48'],
    }),
  })
  .meta({ id: 'CreateApiKeyRequest' });

export const createApiKeyRules = (now: () => Date) =>
  CreateApiKeyRequest.extend({
    expires_at: CreateApiKeyRequest.shape.expires_at.refine((at) => at === undefined || at > now(), {
      error: 'must be in the future',
    }),
  });

const apiKey = {
  key_id: objectId('The id of the key.'),
  org_id: objectId('The organization that the key belongs to.'),
  name: z.string().meta({ description: 'As it was given at creation.', example: 'Payout service' }),
  scope: scope(),
  status: ApiKeyStatus.meta({ description: 'Whether the key is valid.' }),
  environment: environment('The only environment in which the key is valid.'),
  prefix: z.string().meta({ description: 'The first 12 characters of the raw key.', example: 'sk_local_4fQ' }),
  created_at: createdAt(),
  last_used_at: timestampOrNull('May be up to one minute old. Null until the first use.'),
  last_used_from: z.string().nullable().meta({
    description: 'The network of the address that used it last: the first 24 bits of IPv4, 48 of IPv6.',
    example: '203.0.113.0',
  }),
  allowed_cidrs: z
    .array(z.string())
    .nullable()
    .meta({ description: 'Where the key is valid from. Null: from everywhere.', example: ['203.0.113.0/24'] }),
  expires_at: timestampOrNull('When the key becomes invalid; null for never.'),
  revoked_at: timestampOrNull('When it was revoked; null otherwise.'),
  rotated_to: z.string().nullable().meta({ description: 'The `key_id` of the key that replaced it.', example: null }),
  created_by: z.string().nullable().meta({
    description:
      'The `key_id` of the key that made it, by creation or rotation. Null for the first key of an organization.',
    example: EXAMPLE_ID,
  }),
};

const rawKey = () =>
  z.string().meta({
    description:
      'The raw key. Only the answer that made it shows it, and its replay by the same `Idempotency-Key` for 24 hours. Keep it on ' +
      'a server.',
    example: '<API_KEY>',
  });

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

export const ApiKeyRevokedResponse = z
  .object({
    ...apiKey,
    revoked_descendants: z.array(z.string()).meta({
      description: 'The `key_id` of each key that was revoked with it, by this request.',
      example: [],
    }),
  })
  .meta({ id: 'ApiKeyRevokedResponse' });

export const RevokeApiKeyQuery = z.strictObject({
  descendants: queryFlag('Whether the valid keys that it made are revoked too.'),
});

export const ApiKeyPath = z.object({ key_id: id('The key.') });
