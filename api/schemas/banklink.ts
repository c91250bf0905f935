/** Bank linking (contract §10). */
import { z } from 'zod';
import { PUBLIC_TOKEN_PATTERN } from '../../domain/banklink.ts';
import { environment, nullAsAbsent, pattern, text, timestamp } from './common.ts';

const PUBLIC_TOKEN_LENGTH_MAX = 79;
const USER_REFERENCE_LENGTH_MAX = 128;
const publicToken = () =>
  pattern(PUBLIC_TOKEN_PATTERN, 1, PUBLIC_TOKEN_LENGTH_MAX).meta({ example: 'public-sandbox-checking' });

/** The body is optional. */
export const LinkTokenRequest = nullAsAbsent(
  z
    .strictObject({
      user_reference: nullAsAbsent(text(1, USER_REFERENCE_LENGTH_MAX)).meta({
        description: "The caller's own reference for the payer. It must not contain personal data.",
        example: 'payer-7',
      }),
    })
    .meta({ id: 'LinkTokenRequest' }),
);

export const LinkTokenResponse = z
  .object({
    link_token: z.string().meta({ example: 'link-sandbox-5d1f7c30-2f0e-4b53-9f7b-9d7d3c1b7a10' }),
    sandbox_public_token: z.string().meta({
      description: 'The token that a linking widget would return. It can be exchanged once.',
      example: 'public-sandbox-checking',
    }),
    expires_at: timestamp(),
    environment: environment(),
    simulation: z.literal(true),
  })
  .meta({ id: 'LinkTokenResponse' });

export const ExchangeRequest = z.strictObject({ public_token: publicToken() }).meta({ id: 'ExchangeRequest' });

export const ExchangeResponse = z
  .object({
    access_token: z.string().meta({
      description: 'Encrypted for this organization. Use it as `banklink_account_token`.',
      example: '<banklink_account_token>',
    }),
    account: z.object({
      mask: z.string().meta({ example: '0412' }),
      type: z.literal('checking'),
      name: z.string().meta({ example: 'Sandbox Checking' }),
    }),
    simulation: z.literal(true),
  })
  .meta({ id: 'ExchangeResponse' });
