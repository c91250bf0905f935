/** What the routes of the providers that collect money share (contract §9). */
import type { NewEvidence } from '../db/queries/evidence.ts';
import { InvalidRequestError, missingField } from './http/request-fault.ts';

/**
 * The money of an event that says that money moved. The provider's schema cannot require it, because other events have
 * none.
 *
 * @param amountField integer minor units
 * @param loc where `object` stands in the request
 * @throws InvalidRequestError naming each missing field
 */
export function movedMoney<Field extends string>(
  object: { readonly [Key in Field]?: number | undefined } & { readonly currency?: string | undefined },
  amountField: Field,
  loc: readonly string[],
): Pick<NewEvidence, 'amountMinor' | 'currency'> {
  const amount = object[amountField];
  const { currency } = object;
  if (amount === undefined || currency === undefined) {
    const missing = [amount === undefined ? [amountField] : [], currency === undefined ? ['currency'] : []].flat();
    throw new InvalidRequestError(missing.map((field) => missingField([...loc, field])));
  }
  return { amountMinor: BigInt(amount), currency: currency.toUpperCase() };
}
