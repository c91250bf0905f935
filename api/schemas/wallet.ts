/** Simulated wallets (contract §13). */
import { z } from 'zod';
import { WALLET_LIMITS, WALLET_NETWORKS } from '../../domain/wallet.ts';
import {
  closedEnum,
  constant,
  createdAt,
  id,
  list,
  nullAsAbsent,
  objectId,
  outputText,
  outputTextOrNull,
  pattern,
  visibleText,
} from './common.ts';
import { rule } from './rule.ts';
import { ADDRESS_PATTERN, hasValidChecksum, isZeroAddress } from './wallet-address.ts';

const ADDRESS_LENGTH = 42;
const EXAMPLE = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

const address = () =>
  pattern(ADDRESS_PATTERN, [ADDRESS_LENGTH, ADDRESS_LENGTH], '0x and 40 hexadecimal digits')
    .refine((value) => !isZeroAddress(value), { error: 'must not be the zero address', abort: true })
    .refine(hasValidChecksum, { error: 'must have a valid EIP-55 checksum, or letters of one case only' })
    .meta({ description: 'An Ethereum address; in mixed case its EIP-55 checksum is checked.', example: EXAMPLE });

const WalletNetwork = closedEnum('WalletNetwork', WALLET_NETWORKS, 'The network of a wallet.');
const LABEL = 'For your own lists: who signs.';

const Signer = z
  .strictObject({
    address: address(),
    label: nullAsAbsent(visibleText(1, WALLET_LIMITS.labelLengthMax)).meta({ description: LABEL, example: 'Treasury' }),
  })
  .meta({ id: 'WalletSignerRequest', description: 'Who signs.' });

const SignerResponse = z
  .object({ address: outputText('As it was given.', EXAMPLE), label: outputTextOrNull(LABEL, 'Treasury') })
  .meta({ id: 'WalletSigner', description: 'Who signs.' });

const signers = list(1, WALLET_LIMITS.signersMax, Signer).meta({ description: 'Distinct addresses.' });
const threshold = z
  .int()
  .min(1)
  .max(WALLET_LIMITS.signersMax)
  .meta({ description: 'How many signers must agree; at most their number.', example: 1 });

const areDistinct = rule(z.object({ signers }), (body, context) => {
  const seen = new Set<string>();
  for (const [place, signer] of body.signers.entries()) {
    const key = signer.address.toLowerCase();
    if (seen.has(key))
      context.addIssue({
        code: 'custom',
        path: ['signers', place, 'address'],
        message: 'must differ from the other signers of this wallet',
      });
    seen.add(key);
  }
});

const areEnough = rule(z.object({ signers, threshold }), (body, context) => {
  if (body.threshold > body.signers.length)
    context.addIssue({ code: 'custom', path: ['threshold'], message: 'must be at most the number of signers' });
});

export const CreateWalletRequest = z
  .strictObject({
    name: visibleText(1, WALLET_LIMITS.nameLengthMax).meta({
      description: 'For your own lists.',
      example: 'Payout treasury',
    }),
    signers,
    threshold,
    network: nullAsAbsent(WalletNetwork).meta({ description: 'The network; by default `ethereum`.' }),
  })
  .check(areDistinct, areEnough)
  .meta({ id: 'CreateWalletRequest' });

export const WalletResponse = z
  .object({
    wallet_id: objectId('The id of the wallet.'),
    org_id: objectId('The organization that the wallet belongs to.'),
    name: outputText('As it was given at creation.', 'Payout treasury'),
    network: WalletNetwork.meta({ description: 'The network.' }),
    address: outputText(
      'Determined by organization, signers, threshold, network and name. Nothing is deployed there.',
      EXAMPLE,
    ),
    signers: z.array(SignerResponse).meta({ description: 'Who signs, in the order of the request.' }),
    threshold: z.int().meta({ description: 'How many signers must agree.', example: 1 }),
    type: constant('multisig', 'The kind of wallet.'),
    simulated: constant(true, 'The wallet is a simulation.'),
    deployed: constant(false, 'Nothing is deployed on the network.'),
    created_at: createdAt(),
  })
  .meta({ id: 'WalletResponse' });

export const WalletPath = z.object({ wallet_id: id('The wallet.') });
