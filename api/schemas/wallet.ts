/** Simulated wallets (contract §13). */
import { z } from 'zod';
import { WALLET_LIMITS, WALLET_NETWORKS } from '../../domain/wallet.ts';
import { id, list, nullAsAbsent, objectId, pattern, text, timestamp } from './common.ts';
import { ADDRESS_PATTERN, hasValidChecksum, isZeroAddress } from './wallet-address.ts';

const ADDRESS_LENGTH = 42;
const EXAMPLE = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

const address = () =>
  pattern(ADDRESS_PATTERN, ADDRESS_LENGTH, ADDRESS_LENGTH)
    .refine((value) => !isZeroAddress(value), { error: 'must not be the zero address', abort: true })
    .refine(hasValidChecksum, { error: 'must have a valid EIP-55 checksum, or letters of one case only' })
    .meta({ example: EXAMPLE });

const Signer = z.strictObject({
  address: address(),
  label: nullAsAbsent(text(1, WALLET_LIMITS.labelLengthMax)).meta({ example: 'Treasury' }),
});

export const CreateWalletRequest = z
  .strictObject({
    name: text(1, WALLET_LIMITS.nameLengthMax).meta({ example: 'Payout treasury' }),
    signers: list(1, WALLET_LIMITS.signersMax, Signer).meta({ description: 'Distinct addresses.' }),
    threshold: z
      .int()
      .min(1)
      .max(WALLET_LIMITS.signersMax)
      .meta({ description: 'How many signers must agree; at most their number.', example: 1 }),
    network: nullAsAbsent(z.enum(WALLET_NETWORKS)).meta({ description: 'By default `ethereum`.' }),
  })
  .superRefine(({ signers, threshold }, context) => {
    const seen = new Set<string>();
    for (const [place, signer] of signers.entries()) {
      const key = signer.address.toLowerCase();
      if (seen.has(key))
        context.addIssue({
          code: 'custom',
          path: ['signers', place, 'address'],
          message: 'must differ from the other signers of this wallet',
        });
      seen.add(key);
    }
    if (threshold > signers.length)
      context.addIssue({ code: 'custom', path: ['threshold'], message: 'must be at most the number of signers' });
  })
  .meta({ id: 'CreateWalletRequest' });

export const WalletResponse = z
  .object({
    wallet_id: objectId(),
    org_id: objectId(),
    name: z.string().meta({ example: 'Payout treasury' }),
    network: z.enum(WALLET_NETWORKS),
    address: z.string().meta({
      description: 'Determined by organization, signers, threshold, network and name. Nothing is deployed there.',
      example: EXAMPLE,
    }),
    signers: z.array(z.object({ address: z.string(), label: z.string().nullable() })),
    threshold: z.int().meta({ example: 1 }),
    type: z.literal('multisig'),
    simulated: z.literal(true),
    deployed: z.literal(false),
    created_at: timestamp(),
  })
  .meta({ id: 'WalletResponse' });

export const WalletPath = z.object({ wallet_id: id() });
