/**
 * The frozen payee of a settlement at rest: sealed by the recipient's own key, with a digest that certificates name
 * (contract §4, §7). Erasing the recipient makes it unreadable; the digest stays.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Payee } from '../domain/payee.ts';
import type { Settlement } from '../domain/settlement/state.ts';
import type { Sealer } from './seal.ts';

/** Without it the digest could be found by trying names and account numbers. */
const SALT_BYTES = 16;

/** What a sealed payee is bound to; it opens for no other settlement. */
const payeeBinding = (settlementId: string): string => `settlement.payee:${settlementId}`;

/**
 * Seals a payee for one settlement. The digest is of the sealed bytes in clear, in lower-case hex.
 *
 * @param dataKey the recipient's
 */
export function sealPayee(
  dataKey: Sealer,
  settlementId: string,
  payee: Payee,
): Pick<Settlement, 'payeeSealed' | 'payeeSha256'> {
  const bytes = Buffer.from(JSON.stringify({ ...payee, salt: randomBytes(SALT_BYTES).toString('base64url') }));
  return {
    payeeSealed: dataKey.seal(bytes, payeeBinding(settlementId)),
    payeeSha256: createHash('sha256').update(bytes).digest('hex'),
  };
}

/**
 * Opens the payee of a settlement.
 *
 * @param dataKey the recipient's
 * @throws SealError when the key does not open it: nothing may be decided without the payee
 */
export function openPayee(
  dataKey: Sealer,
  { settlementId, payeeSealed }: Pick<Settlement, 'settlementId' | 'payeeSealed'>,
): Payee {
  const opened = dataKey.open(payeeSealed, payeeBinding(settlementId));
  const { salt: _salt, ...payee } = JSON.parse(opened.toString()) as Payee & { readonly salt: string };
  return payee;
}
