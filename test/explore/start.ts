/** A settlement that was just accepted, with a run that has done nothing yet. */
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { price } from '../../domain/pricing.ts';
import { acceptedSettlement } from '../../domain/settlement/state.ts';
import type { Check, Situation } from './situation.ts';

const STARTED_AT = new Date('2026-01-01T00:00:00.000Z');
const ORG_ID = 'organization';
const RECIPIENT_ID = 'recipient';

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
  evidence: [],
  refunds: [],
  balances: new Map(),
  steps: [],
  isGateClosed: false,
  run: 'waiting',
  attempts: [],
  bank: {
    payments: [],
    keptMinor: 0n,
    atRiskMinor: 0n,
    isTakenBeforePayout: false,
    isFailureReported: false,
  },
  rail: { hasPayout: false, outcome: undefined },
  resolution: undefined,
} as const satisfies Partial<Situation>;

export function start({ amount, method, checked, checksLeft }: Start): Situation {
  const priced = price({ corridor: 'US-JM', amount, paymentMethod: method });
  if ('faults' in priced) throw new Error(`the start has no price: ${JSON.stringify(priced.faults)}`);
  const settlement = acceptedSettlement({
    ...priced.pricing,
    settlementId: 'settlement',
    orgId: ORG_ID,
    origin: 'v2',
    recipientId: RECIPIENT_ID,
    payeeSealed: 'sealed',
    payeeSha256: '00'.repeat(32),
    purpose: null,
    reference: null,
    metadata: {},
    environment: 'local sandbox',
    requestId: 'request',
    createdAt: STARTED_AT,
  });
  const now = STARTED_AT.getTime();
  return { ...CLEAN, settlement, latestAt: now, now, identity: identityOf(checked, checksLeft) };
}

const identityOf = (checked: Check, checksLeft: number): Situation['identity'] => ({
  recipient: {
    recipientId: RECIPIENT_ID,
    orgId: ORG_ID,
    kind: 'vendor',
    entityType: 'individual',
    name: 'payee',
    country: 'JM',
    email: null,
    phone: null,
    bankDetails: null,
    mobileDetails: null,
    metadata: {},
    isActive: true,
    verificationStatus: checked === 'open' ? 'pending' : checked,
    createdAt: STARTED_AT,
    updatedAt: STARTED_AT,
  },
  checks: { payee: checked, other: checked },
  decisions: checked === 'open' ? {} : { payee: { to: checked, at: STARTED_AT } },
  checksLeft,
});
