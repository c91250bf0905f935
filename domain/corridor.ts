/**
 * The corridors (contract §5): synthetic fixtures. A static rate is never an executable quote and no corridor
 * is live.
 */
import type { ImplementationState } from './capability-state.ts';
import { type Currency, parseRate } from './money.ts';

export const RAILS = ['bank_transfer', 'mobile_money', 'cash_pickup'] as const;
export type Rail = (typeof RAILS)[number];

export const CORRIDOR_IDS = [
  'US-JM',
  'CA-JM',
  'GB-JM',
  'US-TT',
  'CA-TT',
  'US-BB',
  'GB-BB',
  'US-BS',
  'US-DO',
  'US-HT',
  'US-GY',
  'US-KY',
  'US-BZ',
  'US-LC',
] as const;
export type CorridorId = (typeof CORRIDOR_IDS)[number];

export type Corridor = {
  readonly id: CorridorId;
  /** ISO 3166-1 alpha-2. */
  readonly sourceCountry: string;
  readonly destinationCountry: string;
  readonly sourceCurrency: Currency;
  readonly destinationCurrency: Currency;
  readonly rateMillionths: bigint;
  /** The first one is used when a request names none. */
  readonly rails: readonly [Rail, ...Rail[]];
};

/** Simulated delivery time of each rail, in minutes. */
export const DELIVERY_MINUTES: Record<Rail, { readonly min: number; readonly max: number }> = {
  bank_transfer: { min: 60, max: 1440 },
  mobile_money: { min: 5, max: 60 },
  cash_pickup: { min: 15, max: 240 },
};

/** What a recipient must have for a rail, by the field of a request, and why. */
export const RAIL_REQUIREMENTS: Record<Rail, readonly { readonly field: string; readonly rule: string }[]> = {
  bank_transfer: [
    { field: 'bank_details.bank_name', rule: 'The name of the bank.' },
    { field: 'bank_details.account_number', rule: '4 to 34 capital letters and digits.' },
    { field: 'bank_details.currency', rule: 'The currency of the account.' },
  ],
  mobile_money: [
    { field: 'mobile_details.provider', rule: 'The provider of the wallet.' },
    { field: 'mobile_details.phone_number', rule: 'The number of the wallet (E.164).' },
  ],
  // A recipient always has bank or mobile details. The simulated rail uses neither for cash.
  cash_pickup: [{ field: 'name', rule: 'As in the document that the recipient shows. Nothing else is used.' }],
};

/** Payouts are simulated end to end; there is no adapter to a real rail. */
export const RAIL_IMPLEMENTATION_STATE: ImplementationState = 'partial';

const corridor = (
  id: CorridorId,
  pair: readonly [Currency, Currency],
  rate: string,
  rails: readonly [Rail, ...Rail[]],
): Corridor => ({
  id,
  sourceCountry: id.slice(0, 2),
  destinationCountry: id.slice(3),
  sourceCurrency: pair[0],
  destinationCurrency: pair[1],
  rateMillionths: parseRate(rate),
  rails,
});

export const CORRIDORS: Record<CorridorId, Corridor> = {
  'US-JM': corridor('US-JM', ['USD', 'JMD'], '157.250000', ['bank_transfer', 'mobile_money', 'cash_pickup']),
  'CA-JM': corridor('CA-JM', ['CAD', 'JMD'], '112.300000', ['bank_transfer', 'mobile_money']),
  'GB-JM': corridor('GB-JM', ['GBP', 'JMD'], '206.800000', ['bank_transfer']),
  'US-TT': corridor('US-TT', ['USD', 'TTD'], '6.740000', ['bank_transfer']),
  'CA-TT': corridor('CA-TT', ['CAD', 'TTD'], '4.820000', ['bank_transfer']),
  'US-BB': corridor('US-BB', ['USD', 'BBD'], '2.000000', ['bank_transfer']),
  'GB-BB': corridor('GB-BB', ['GBP', 'BBD'], '2.630000', ['bank_transfer']),
  'US-BS': corridor('US-BS', ['USD', 'BSD'], '1.000000', ['bank_transfer', 'mobile_money']),
  'US-DO': corridor('US-DO', ['USD', 'DOP'], '62.400000', ['bank_transfer', 'cash_pickup']),
  'US-HT': corridor('US-HT', ['USD', 'HTG'], '131.000000', ['mobile_money', 'cash_pickup']),
  'US-GY': corridor('US-GY', ['USD', 'GYD'], '209.000000', ['bank_transfer', 'mobile_money']),
  'US-KY': corridor('US-KY', ['USD', 'KYD'], '0.820000', ['bank_transfer']),
  'US-BZ': corridor('US-BZ', ['USD', 'BZD'], '2.000000', ['bank_transfer']),
  'US-LC': corridor('US-LC', ['USD', 'XCD'], '2.700000', ['bank_transfer']),
};

/** Must change with every change of a corridor, a rate, a rail or a limit. */
export const CORRIDOR_SCHEMA_VERSION = '1';
