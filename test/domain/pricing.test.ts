import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CORRIDOR_IDS, CORRIDORS, DELIVERY_MINUTES, RAILS } from '../../domain/corridor.ts';
import { feesOf } from '../../domain/fee.ts';
import { formatMoney } from '../../domain/money.ts';
import { METHOD_RULES, PAYMENT_METHODS } from '../../domain/payment-method.ts';
import { type Pricing, type PricingInput, price } from '../../domain/pricing.ts';
import { estimateResource } from '../../domain/resource/estimate.ts';
import { property } from '../support/property.ts';

const command: PricingInput = { corridor: 'US-JM', amount: '250.00', paymentMethod: 'card' };

const faultsOf = (input: PricingInput) => {
  const result = price(input);
  return 'faults' in result ? result.faults : [];
};

function priced(input: PricingInput): Pricing {
  const result = price(input);
  if ('faults' in result) throw new Error(JSON.stringify(result.faults));
  return result.pricing;
}

describe('a price is refused', () => {
  test.each([
    ['a rail that the corridor does not have', { corridor: 'GB-JM', payoutRail: 'cash_pickup' }, ['payout_rail']],
    ['ach in another currency than USD', { corridor: 'CA-JM', paymentMethod: 'ach' }, ['payment_method']],
    ['less than one', { amount: '0.99' }, ['amount']],
    ['nothing', { amount: '0' }, ['amount']],
    ['more than a card takes', { amount: '10000.01' }, ['amount']],
    ['more than ach takes', { amount: '25000.01', paymentMethod: 'ach' }, ['amount']],
    ['more than a wire takes', { amount: '50000.01', paymentMethod: 'wire' }, ['amount']],
    ['more decimals than the currency has', { amount: '250.005' }, ['amount']],
    ['an amount equal to the fees', { amount: '15.50', paymentMethod: 'wire' }, ['amount']],
    ['an amount of which nothing is left', { corridor: 'US-KY', amount: '15.51', paymentMethod: 'wire' }, ['amount']],
    ['an amount below the fees', { amount: '1.00', paymentMethod: 'wire' }, ['amount']],
    [
      'several faults, all reported',
      { corridor: 'GB-BB', paymentMethod: 'ach', payoutRail: 'mobile_money', amount: '0.10' },
      ['payout_rail', 'payment_method', 'amount'],
    ],
    [
      'an amount below the fees together with a wrong rail',
      { corridor: 'GB-BB', paymentMethod: 'wire', payoutRail: 'mobile_money', amount: '2' },
      ['payout_rail', 'amount'],
    ],
  ] satisfies [string, Partial<PricingInput>, string[]][])('%s', (_name, change, fields) => {
    const faults = faultsOf({ ...command, ...change });
    expect(faults.map((fault) => fault.field)).toEqual(fields);
  });

  test('an amount out of bounds: the text has the bounds, and not the submitted amount', () => {
    const [fault] = faultsOf({ ...command, amount: '98765.43' });
    expect(fault?.rule).toContain('from 1.00 to 10000.00');
    expect(fault?.rule).not.toContain('98765');
  });
});

describe('a price', () => {
  test('is exact for 250.00 by card from the United States to Jamaica', () => {
    expect(priced(command)).toEqual({
      corridor: 'US-JM',
      paymentMethod: 'card',
      payoutRail: 'bank_transfer',
      amountMinor: 25_000n,
      sourceCurrency: 'USD',
      destinationAmountMinor: 3_782_963n,
      destinationCurrency: 'JMD',
      rateMillionths: 157_250_000n,
      inputFeeMinor: 755n,
      platformFeeMinor: 188n,
      totalFeesMinor: 943n,
    });
  });

  test('takes the first rail of the corridor when none is named', () => {
    expect(CORRIDOR_IDS.map((corridor) => priced({ ...command, corridor }).payoutRail)).toEqual(
      CORRIDOR_IDS.map((id) => CORRIDORS[id].rails[0]),
    );
  });

  test.each(PAYMENT_METHODS)('exists at both bounds of %s, unless the fees are higher', (paymentMethod) => {
    const { minimumMinor, maximumMinor } = METHOD_RULES[paymentMethod];
    const isPriced = (amountMinor: bigint) =>
      faultsOf({ ...command, paymentMethod, amount: formatMoney(amountMinor, 'USD') }).length === 0;
    expect([minimumMinor - 1n, minimumMinor, maximumMinor, maximumMinor + 1n].map(isPriced)).toEqual([
      false,
      paymentMethod !== 'wire',
      true,
      false,
    ]);
  });

  const anyCommand = fc.record({
    corridor: fc.constantFrom(...CORRIDOR_IDS),
    paymentMethod: fc.constantFrom(...PAYMENT_METHODS),
    payoutRail: fc.option(fc.constantFrom(...RAILS), { nil: undefined }),
    amountMinor: fc.oneof(fc.bigInt({ min: 0n, max: 3_000n }), fc.bigInt({ min: 0n, max: 6_000_000n })),
  });

  property([anyCommand])(
    'exists exactly for the commands that the rules allow, and its parts add up',
    ({ amountMinor, ...rest }) => {
      const corridor = CORRIDORS[rest.corridor];
      const rule = METHOD_RULES[rest.paymentMethod];
      const { totalFeesMinor } = feesOf(amountMinor, rest.paymentMethod);
      const allowed =
        (rest.payoutRail === undefined || corridor.rails.includes(rest.payoutRail)) &&
        rule.sourceCurrencies.includes(corridor.sourceCurrency) &&
        amountMinor >= rule.minimumMinor &&
        amountMinor <= rule.maximumMinor &&
        totalFeesMinor < amountMinor;
      const result = price({ ...rest, amount: formatMoney(amountMinor, corridor.sourceCurrency) });
      expect('pricing' in result).toBe(allowed);
      if (!('pricing' in result)) return;
      const exactTimesMillion = (amountMinor - totalFeesMinor) * corridor.rateMillionths;
      const { destinationAmountMinor } = result.pricing;
      expect(result.pricing.inputFeeMinor + result.pricing.platformFeeMinor).toBe(totalFeesMinor);
      expect(
        destinationAmountMinor * 1_000_000n <= exactTimesMillion &&
          exactTimesMillion < (destinationAmountMinor + 1n) * 1_000_000n,
      ).toBe(true);
    },
  );
});

describe('the resource of a price', () => {
  const at = new Date('2026-11-21T08:00:00.000Z');

  test.each(CORRIDORS['US-JM'].rails)('has, for an estimate by %s, that rail and its delivery times', (payoutRail) => {
    const { min, max } = DELIVERY_MINUTES[payoutRail];
    expect(estimateResource(priced({ ...command, payoutRail }), at)).toMatchObject({
      payout_rail: payoutRail,
      delivery_estimate: { min_minutes: min, max_minutes: max },
    });
  });
});
