/**
 * How money comes in (contract §5). `implementationState` says how much of an adapter is written, `localAdmissionState`
 * whether value may move through it. Neither says that a method is ready for production.
 */
import type { CapabilityState, ImplementationState } from './capability-state.ts';
import type { Currency } from './money.ts';

/** Methods a partner may name. */
export const INPUT_METHODS = ['ach', 'card', 'wire'] as const;
export type InputMethod = (typeof INPUT_METHODS)[number];

/** `internal` is the legacy Caribbean route's own funding: no input, no input fee. */
export const PAYMENT_METHODS = [...INPUT_METHODS, 'internal'] as const;
export type PaymentMethod = (typeof PAYMENT_METHODS)[number];

/** The providers that collect money, and say so in signed events. */
export const COLLECTORS = ['cardproc', 'bankledger'] as const;
export type Collector = (typeof COLLECTORS)[number];

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

type MethodRule = {
  /** Bounds on the amount, in minor units. They hold for every source currency, because all have two minor digits. */
  readonly minimumMinor: bigint;
  readonly maximumMinor: bigint;
  readonly sourceCurrencies: readonly [Currency, ...Currency[]];
  /** How long a settlement waits for its money (contract §6). */
  readonly fundingWindowMs: number;
};

export const METHOD_RULES: Record<PaymentMethod, MethodRule> = {
  card: {
    minimumMinor: 100n,
    maximumMinor: 1_000_000n,
    sourceCurrencies: ['USD', 'CAD', 'GBP'],
    fundingWindowMs: 30 * MINUTE_MS,
  },
  ach: { minimumMinor: 100n, maximumMinor: 2_500_000n, sourceCurrencies: ['USD'], fundingWindowMs: 5 * DAY_MS },
  wire: {
    minimumMinor: 100n,
    maximumMinor: 5_000_000n,
    sourceCurrencies: ['USD', 'CAD', 'GBP'],
    fundingWindowMs: 10 * DAY_MS,
  },
  internal: {
    minimumMinor: 100n,
    maximumMinor: 5_000_000n,
    sourceCurrencies: ['USD', 'CAD', 'GBP'],
    fundingWindowMs: 30 * MINUTE_MS,
  },
};

/** The methods that take this source currency. */
export const methodsFor = (sourceCurrency: Currency): PaymentMethod[] =>
  PAYMENT_METHODS.filter((method) => METHOD_RULES[method].sourceCurrencies.includes(sourceCurrency));

/** One entry of `/v2/payment-methods`. */
export type PaymentMethodPosture = {
  readonly id: InputMethod | 'stablecoin';
  readonly name: string;
  readonly provider: Collector | null;
  readonly implementationState: ImplementationState;
  /** In the local sandbox; remotely every method is `gated`. */
  readonly localAdmissionState: CapabilityState;
  readonly timing: 'synchronous' | 'asynchronous';
  readonly requiredFields: readonly string[];
};

export const PAYMENT_METHOD_POSTURES: readonly PaymentMethodPosture[] = [
  {
    id: 'card',
    name: 'Card',
    provider: 'cardproc',
    implementationState: 'implemented',
    localAdmissionState: 'local sandbox',
    timing: 'synchronous',
    requiredFields: ['card_token'],
  },
  {
    id: 'ach',
    name: 'ACH debit',
    provider: 'bankledger',
    implementationState: 'implemented',
    localAdmissionState: 'local sandbox',
    timing: 'asynchronous',
    requiredFields: ['banklink_account_token'],
  },
  {
    id: 'wire',
    name: 'Wire',
    provider: 'bankledger',
    implementationState: 'implemented',
    localAdmissionState: 'local sandbox',
    timing: 'asynchronous',
    requiredFields: [],
  },
  {
    id: 'stablecoin',
    name: 'Stablecoin',
    provider: null,
    implementationState: 'not_implemented',
    localAdmissionState: 'gated',
    timing: 'asynchronous',
    requiredFields: [],
  },
];
