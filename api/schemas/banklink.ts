/** Bank linking (contract §10). */
import { z } from 'zod';
import { PUBLIC_TOKEN_PATTERN } from '../../domain/banklink.ts';
import {
  constant,
  environment,
  nullAsAbsent,
  outputText,
  pattern,
  simulation,
  timestamp,
  visibleText,
} from './common.ts';

const PUBLIC_TOKEN_LENGTH_MAX = 79;
const USER_REFERENCE_LENGTH_MAX = 128;
const publicToken = () =>
  pattern(PUBLIC_TOKEN_PATTERN, [1, PUBLIC_TOKEN_LENGTH_MAX], 'a token such as public-sandbox-checking').meta({
    description: 'What a linking widget returned: the `sandbox_public_token`, or a name of a test account.',
    example: 'public-sandbox-checking',
  });

/** The body is optional. */
export const LinkTokenRequest = nullAsAbsent(
  z
    .strictObject({
      user_reference: nullAsAbsent(visibleText(1, USER_REFERENCE_LENGTH_MAX)).meta({
        description: "The caller's own reference for the payer. It is not stored.",
        example: 'payer-7',
      }),
    })
    .meta({ id: 'LinkTokenRequest' }),
);

export const LinkTokenResponse = z
  .object({
    link_token: outputText('Opens a linking widget.', 'link-sandbox-5d1f7c30-2f0e-4b53-9f7b-9d7d3c1b7a10'),
    sandbox_public_token: outputText(
      'The token that a linking widget would return. It can be exchanged once.',
      'public-sandbox-link-c95ad447-74ed-46e2-9475-9a79f8276fff',
    ),
    expires_at: timestamp('Until this time the public token can be exchanged.'),
    environment: environment(),
    simulation: simulation(),
  })
  .meta({ id: 'LinkTokenResponse' });

export const ExchangeRequest = z.strictObject({ public_token: publicToken() }).meta({ id: 'ExchangeRequest' });

const LinkedAccount = z
  .object({
    mask: outputText('The last four digits of the account number.', '0412'),
    type: constant('checking', 'The kind of account.'),
    name: outputText('As the bank calls the account.', 'Sandbox Checking'),
  })
  .meta({ id: 'LinkedAccount', description: 'A linked bank account.' });

export const ExchangeResponse = z
  .object({
    access_token: outputText(
      'Encrypted for this organization. Use it as `banklink_account_token`.',
      '<banklink_account_token>',
    ),
    account: LinkedAccount.meta({ description: 'The account that the token stands for.' }),
    simulation: simulation(),
  })
  .meta({ id: 'ExchangeResponse' });
