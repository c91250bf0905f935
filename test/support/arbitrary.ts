/** Generated prices and paths through the states, for properties that must hold for all of them. */
import fc from 'fast-check';
import { CORRIDOR_IDS, CORRIDORS } from '../../domain/corridor.ts';
import { formatMoney } from '../../domain/money.ts';
import { METHOD_RULES, methodsFor } from '../../domain/payment-method.ts';
import { type Pricing, price } from '../../domain/pricing.ts';
import { type SettlementStatus, TRANSITIONS } from '../../domain/settlement/state.ts';

/** The price of any command that pricing accepts. */
export const pricing: fc.Arbitrary<Pricing> = fc
  .constantFrom(...CORRIDOR_IDS)
  .chain((corridor) =>
    fc.record({
      corridor: fc.constant(corridor),
      paymentMethod: fc.constantFrom(...methodsFor(CORRIDORS[corridor].sourceCurrency)),
    }),
  )
  .chain(({ corridor, paymentMethod }) => {
    const { minimumMinor, maximumMinor } = METHOD_RULES[paymentMethod];
    return fc
      .oneof(fc.bigInt({ min: minimumMinor, max: maximumMinor }), fc.bigInt({ min: minimumMinor, max: 2_000n }))
      .map((amountMinor) => {
        const result = price({
          corridor,
          paymentMethod,
          amount: formatMoney(amountMinor, CORRIDORS[corridor].sourceCurrency),
        });
        return 'pricing' in result ? result.pricing : undefined;
      });
  })
  .filter((priced) => priced !== undefined);

/** Every path that the table of transitions allows, from acceptance to a terminal state. */
export function allLives(from: SettlementStatus = 'accepted'): SettlementStatus[][] {
  const next = TRANSITIONS.filter((transition) => transition.from === from);
  return next.length === 0 ? [[from]] : next.flatMap(({ to }) => allLives(to).map((rest) => [from, ...rest]));
}

/** An amount split into one to `partsMax` positive parts of any size. */
export const partsOf = (amountMinor: bigint, partsMax: number): fc.Arbitrary<bigint[]> =>
  fc
    .uniqueArray(fc.bigInt({ min: 1n, max: amountMinor > 1n ? amountMinor - 1n : 1n }), {
      maxLength: amountMinor > 1n ? partsMax - 1 : 0,
    })
    .map((cuts) => {
      const edges = [0n, ...cuts.sort((a, b) => (a < b ? -1 : 1)), amountMinor];
      return edges.slice(1).map((edge, index) => edge - (edges[index] ?? 0n));
    });
