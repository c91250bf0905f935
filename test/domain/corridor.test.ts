import countries from 'i18n-iso-countries';
import { describe, expect, test } from 'vitest';
import { CORRIDOR_IDS, CORRIDORS, DELIVERY_MINUTES, RAIL_IMPLEMENTATION_STATE, RAILS } from '../../domain/corridor.ts';
import { formatRate, MINOR_DIGITS } from '../../domain/money.ts';
import { METHOD_RULES, methodsFor, PAYMENT_METHODS } from '../../domain/payment-method.ts';

/** The contract's table (§5). */
const CONTRACT = [
  'US-JM USD→JMD 157.250000 bank_transfer, mobile_money, cash_pickup',
  'CA-JM CAD→JMD 112.300000 bank_transfer, mobile_money',
  'GB-JM GBP→JMD 206.800000 bank_transfer',
  'US-TT USD→TTD 6.740000 bank_transfer',
  'CA-TT CAD→TTD 4.820000 bank_transfer',
  'US-BB USD→BBD 2.000000 bank_transfer',
  'GB-BB GBP→BBD 2.630000 bank_transfer',
  'US-BS USD→BSD 1.000000 bank_transfer, mobile_money',
  'US-DO USD→DOP 62.400000 bank_transfer, cash_pickup',
  'US-HT USD→HTG 131.000000 mobile_money, cash_pickup',
  'US-GY USD→GYD 209.000000 bank_transfer, mobile_money',
  'US-KY USD→KYD 0.820000 bank_transfer',
  'US-BZ USD→BZD 2.000000 bank_transfer',
  'US-LC USD→XCD 2.700000 bank_transfer',
];

describe('the corridors', () => {
  test('are those of the contract', () => {
    const table = CORRIDOR_IDS.map((id) => {
      const { sourceCurrency, destinationCurrency, rateMillionths, rails } = CORRIDORS[id];
      return `${id} ${sourceCurrency}→${destinationCurrency} ${formatRate(rateMillionths)} ${rails.join(', ')}`;
    });
    expect(table).toEqual(CONTRACT);
  });

  test.each(CORRIDOR_IDS)('%s leads from one ISO 3166-1 country to another, as its name says', (id) => {
    const { id: named, sourceCountry, destinationCountry } = CORRIDORS[id];
    expect(named).toBe(id);
    expect(`${sourceCountry}-${destinationCountry}`).toBe(id);
    expect(Object.keys(countries.getAlpha2Codes())).toEqual(
      expect.arrayContaining([sourceCountry, destinationCountry]),
    );
  });

  test('have rails with the delivery times of the contract', () => {
    expect(DELIVERY_MINUTES).toEqual({
      bank_transfer: { min: 60, max: 1440 },
      mobile_money: { min: 5, max: 60 },
      cash_pickup: { min: 15, max: 240 },
    });
    expect(Object.keys(DELIVERY_MINUTES)).toEqual(RAILS);
  });

  test('do not claim an implemented rail, because payouts are simulated', () => {
    expect(RAIL_IMPLEMENTATION_STATE).not.toBe('implemented');
  });
});

describe('the bounds of an amount', () => {
  test('are those of the contract, in minor units', () => {
    const bounds = PAYMENT_METHODS.map((method) => [
      method,
      METHOD_RULES[method].minimumMinor,
      METHOD_RULES[method].maximumMinor,
    ]);
    expect(bounds).toEqual([
      ['ach', 100n, 2_500_000n],
      ['card', 100n, 1_000_000n],
      ['wire', 100n, 5_000_000n],
      ['internal', 100n, 5_000_000n],
    ]);
  });

  test.each(PAYMENT_METHODS)(
    'hold for %s in every currency that it takes, because all have two minor digits',
    (method) => {
      expect(METHOD_RULES[method].sourceCurrencies.map((currency) => MINOR_DIGITS[currency])).toEqual(
        METHOD_RULES[method].sourceCurrencies.map(() => 2),
      );
    },
  );

  test('ach takes only USD', () => {
    expect(methodsFor('USD')).toEqual(['ach', 'card', 'wire', 'internal']);
    expect(methodsFor('CAD')).toEqual(['card', 'wire', 'internal']);
    expect(methodsFor('JMD')).toEqual([]);
  });

  test('every corridor can be funded', () => {
    for (const id of CORRIDOR_IDS) expect(methodsFor(CORRIDORS[id].sourceCurrency)).not.toEqual([]);
  });
});
