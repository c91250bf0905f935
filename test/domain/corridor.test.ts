import countries from 'i18n-iso-countries';
import { describe, expect, test } from 'vitest';
import { CORRIDOR_IDS, CORRIDORS } from '../../domain/corridor.ts';
import { MINOR_DIGITS } from '../../domain/money.ts';
import { METHOD_RULES, PAYMENT_METHODS } from '../../domain/payment-method.ts';

describe('the corridors', () => {
  test.each(CORRIDOR_IDS)('%s leads from one ISO 3166-1 country to another, as its name says', (id) => {
    const { id: named, sourceCountry, destinationCountry } = CORRIDORS[id];
    expect(named).toBe(id);
    expect(`${sourceCountry}-${destinationCountry}`).toBe(id);
    expect(Object.keys(countries.getAlpha2Codes())).toEqual(
      expect.arrayContaining([sourceCountry, destinationCountry]),
    );
  });
});

describe('the bounds of an amount', () => {
  test.each(PAYMENT_METHODS)(
    'hold for %s in every currency that it takes, because all have two minor digits',
    (method) => {
      expect(METHOD_RULES[method].sourceCurrencies.map((currency) => MINOR_DIGITS[currency])).toEqual(
        METHOD_RULES[method].sourceCurrencies.map(() => 2),
      );
    },
  );
});
