/** A settlement that was just accepted, with a run that has done nothing yet. */
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { price } from '../../domain/pricing.ts';
import { acceptedSettlement } from '../../domain/settlement/state.ts';
import { recipientOf } from '../support/recipient.ts';
import type { Check, Situation } from './situation.ts';

export const STARTED_AT = new Date('2026-01-01T00:00:00.000Z');
const ORG_ID = 'organization';
const RECIPIENT_ID = 'recipient';

/** What all settlements of the exploration have in common. */
export const STARTED_SETTLEMENT = {
  corridor: 'US-JM',
  origin: 'v2',
  purpose: null,
  reference: null,
  metadata: {},
  environment: 'local sandbox',
  requestId: 'request',
} as const;

export type Start = {
  /** In major units. From 1000 on the recipient must be verified. */
  readonly amount: string;
  readonly method: PaymentMethod;
  /** What verification says at first about both names. */
  readonly checked: Check;
  /** How many more verifications may be opened. */
  readonly checksLeft: number;
};

const CLEAN = {
  exceptions: [],
  evidence: [],
  refunds: [],
  balances: new Map(),
  steps: [],
  isGateClosed: false,
  run: 'waiting',
  attempts: [],
  bank: {
    payments: [],
    balanceMinor: 0n,
    isTakenBeforePayout: false,
    isFailureReported: false,
  },
  rail: { hasPayout: false, outcome: undefined },
  resolution: undefined,
} as const satisfies Partial<Situation>;

export function start({ amount, method, checked, checksLeft }: Start, at = STARTED_AT): Situation {
  const { corridor } = STARTED_SETTLEMENT;
  const priced = price({ corridor, amount, paymentMethod: method });
  if ('faults' in priced) throw new Error(`the start has no price: ${JSON.stringify(priced.faults)}`);
  const settlement = acceptedSettlement({
    ...STARTED_SETTLEMENT,
    ...priced.pricing,
    settlementId: 'settlement',
    orgId: ORG_ID,
    recipientId: RECIPIENT_ID,
    payeeSealed: 'sealed',
    payeeSha256: '00'.repeat(32),
    createdAt: at,
  });
  const now = at.getTime();
  return { ...CLEAN, settlement, latestAt: now, now, identity: identityOf(checked, checksLeft, at) };
}

const identityOf = (checked: Check, checksLeft: number, at: Date): Situation['identity'] => ({
  recipient: recipientOf({
    recipientId: RECIPIENT_ID,
    orgId: ORG_ID,
    name: 'payee',
    verificationStatus: checked === 'open' ? 'pending' : checked,
    createdAt: at,
    updatedAt: at,
  }),
  checks: { payee: checked, other: checked },
  openedAt: {},
  decisions: checked === 'open' ? {} : { payee: { to: checked, at } },
  checksLeft,
});
