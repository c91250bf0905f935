import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { feesOf } from '../../domain/fee.ts';
import { PAYMENT_METHODS, type PaymentMethod } from '../../domain/payment-method.ts';
import { feeScheduleResource } from '../../domain/resource/fee.ts';
import { property } from '../support/property.ts';

/** The schedule of the contract (§5): a fraction of the amount, a fixed part, a least and a greatest fee. */
type Line = {
  readonly per: readonly [bigint, bigint];
  readonly fixed?: bigint;
  readonly least?: bigint;
  readonly most?: bigint;
};
const CONTRACT: Record<PaymentMethod | 'platform', Line> = {
  card: { per: [29n, 1_000n], fixed: 30n },
  ach: { per: [8n, 1_000n], least: 25n, most: 500n },
  wire: { per: [0n, 1n], fixed: 1_500n },
  internal: { per: [0n, 1n] },
  platform: { per: [75n, 10_000n], least: 50n },
};

/** By the definition of half up: the quotient, and one more when the remainder is at least half. */
function expected(line: Line, amountMinor: bigint): bigint {
  const [numerator, denominator] = line.per;
  const quotient = (amountMinor * numerator) / denominator;
  const remainder = (amountMinor * numerator) % denominator;
  const fee = quotient + (remainder * 2n >= denominator ? 1n : 0n) + (line.fixed ?? 0n);
  if (line.least !== undefined && fee < line.least) return line.least;
  return line.most !== undefined && fee > line.most ? line.most : fee;
}

const method = fc.constantFrom(...PAYMENT_METHODS);
const amount = fc.bigInt({ min: 1n, max: 10n ** 12n });

describe('the fees of an amount', () => {
  test.each([
    ['card', 25_000n, 755n, 188n],
    ['card', 500n, 45n, 50n],
    ['card', 499n, 44n, 50n],
    ['ach', 3_000n, 25n, 50n],
    ['ach', 3_125n, 25n, 50n],
    ['ach', 10_000n, 80n, 75n],
    ['ach', 62_500n, 500n, 469n],
    ['ach', 2_500_000n, 500n, 18_750n],
    ['wire', 100n, 1_500n, 50n],
    ['wire', 5_000_000n, 1_500n, 37_500n],
    ['internal', 6_600n, 0n, 50n],
    ['internal', 6_667n, 0n, 50n],
    ['internal', 6_734n, 0n, 51n],
  ] as const)('%s of %s minor units costs %s and %s', (by, amountMinor, inputFeeMinor, platformFeeMinor) => {
    expect(feesOf(amountMinor, by)).toEqual({
      inputFeeMinor,
      platformFeeMinor,
      totalFeesMinor: inputFeeMinor + platformFeeMinor,
    });
  });

  property([method, amount])('are those of the contract, each rounded half up separately', (by, amountMinor) => {
    const inputFeeMinor = expected(CONTRACT[by], amountMinor);
    const platformFeeMinor = expected(CONTRACT.platform, amountMinor);
    expect(feesOf(amountMinor, by)).toEqual({
      inputFeeMinor,
      platformFeeMinor,
      totalFeesMinor: inputFeeMinor + platformFeeMinor,
    });
  });
});

describe('the resource of the schedule', () => {
  test('has every rule, with null for a bound that it does not have', () => {
    expect(feeScheduleResource(PAYMENT_METHODS, 'USD')).toEqual([
      { type: 'input_fee', payment_method: 'ach', percent: '0.80', fixed: '0.00', minimum: '0.25', maximum: '5.00' },
      { type: 'input_fee', payment_method: 'card', percent: '2.90', fixed: '0.30', minimum: null, maximum: null },
      { type: 'input_fee', payment_method: 'wire', percent: '0.00', fixed: '15.00', minimum: null, maximum: null },
      { type: 'input_fee', payment_method: 'internal', percent: '0.00', fixed: '0.00', minimum: null, maximum: null },
      { type: 'platform_fee', payment_method: null, percent: '0.75', fixed: '0.00', minimum: '0.50', maximum: null },
    ]);
  });
});
