/**
 * Every input of the local sandbox, with the path of states that it leads to (contract §6). The API serves this list as
 * it is, so it has the API's field names. An end-to-end test runs each scenario.
 */
import type { CorridorId, Rail } from '../corridor.ts';
import type { InputMethod } from '../payment-method.ts';
import type { RESOLUTION_OUTCOMES } from '../review.ts';
import type { ExceptionType } from '../settlement/evidence.ts';
import type { SettlementStatus } from '../settlement/state.ts';
import type { SandboxEvent } from './event.ts';
import { SANDBOX_NAMES } from './input.ts';

/** What to do once the settlement has this status and, where given, has received this much. */
export type ScenarioStep = { readonly when: SettlementStatus; readonly received?: string } & (
  | { readonly do: 'send_event'; readonly event: SandboxEvent; readonly amount?: string }
  | { readonly do: 'advance_clock'; readonly by?: string }
  | { readonly do: 'cancel' }
  | { readonly do: 'decide_verification'; readonly decision: 'verified' | 'rejected' }
  | { readonly do: 'resolve_review'; readonly outcome: (typeof RESOLUTION_OUTCOMES)[number] }
  /** A signed event in the bank ledger's own form, for what the simulated ledger never sends. */
  | {
      readonly do: 'post_bankledger_event';
      readonly event: 'reconciled';
      readonly amount_reconciled: number;
      readonly currency: string;
    }
);

export type Scenario = {
  readonly name: string;
  readonly summary: string;
  readonly given: {
    readonly recipient_name: string;
    readonly corridor: CorridorId;
    readonly amount: string;
    readonly payment_method: InputMethod;
    readonly payout_rail: Rail;
    readonly card_token?: string;
    /** Exchanged for the `banklink_account_token`. */
    readonly public_token?: string;
  };
  readonly steps: readonly ScenarioStep[];
  readonly path: readonly SettlementStatus[];
  readonly exceptions: readonly ExceptionType[];
  readonly failure_code: string | null;
};

const WAITING = ['accepted', 'awaiting_funds'] as const;
const PAYING_OUT = [...WAITING, 'funded', 'paying_out'] as const;
const SETTLED = [...PAYING_OUT, 'settled'] as const;
const REVIEWED = [...PAYING_OUT, 'needs_review'] as const;

type Given = Partial<Scenario['given']>;
const by = (method: Given): Scenario['given'] => ({
  recipient_name: 'Marcia Brown',
  corridor: 'US-JM',
  amount: '250.00',
  payment_method: 'card',
  payout_rail: 'bank_transfer',
  ...method,
});
const card = (token: string, given: Given = {}) => by({ card_token: token, ...given });
const ach = (publicToken: string, given: Given = {}) =>
  by({ payment_method: 'ach', public_token: publicToken, ...given });
const wire = (given: Given = {}) => by({ payment_method: 'wire', ...given });
const paidTo = (name: string) => card('tok_visa', { recipient_name: name });

/** A scenario that settles, unless `rest` has another path. */
const scenario = (
  name: string,
  summary: string,
  given: Scenario['given'],
  rest: Partial<Pick<Scenario, 'steps' | 'path' | 'exceptions'>> & { readonly failure?: string } = {},
): Scenario => ({
  name,
  summary,
  given,
  steps: rest.steps ?? [],
  path: rest.path ?? SETTLED,
  exceptions: rest.exceptions ?? [],
  failure_code: rest.failure ?? null,
});

const send = (
  when: SettlementStatus,
  event: SandboxEvent,
  more: { readonly amount?: string; readonly received?: string } = {},
): ScenarioStep => ({
  when,
  do: 'send_event',
  event,
  ...more,
});
const toEndOfWait = (when: SettlementStatus): ScenarioStep => ({ when, do: 'advance_clock' });
const EXPIRED = { path: [...WAITING, 'expired'], failure: 'funding_timeout' } as const;

const CARD_SCENARIOS: readonly Scenario[] = [
  scenario('card-pays', 'tok_visa pays the whole amount.', card('tok_visa')),
  scenario('card-declined', 'tok_declined is declined.', card('tok_declined'), {
    path: [...WAITING, 'failed'],
    failure: 'card_declined',
  }),
  scenario('card-pays-in-parts', 'tok_partial pays half, then the rest.', card('tok_partial')),
  scenario('card-disputed', 'tok_dispute pays and is disputed; the dispute changes no state.', card('tok_dispute'), {
    exceptions: ['disputed'],
  }),
  scenario('card-waits-then-pays', 'tok_manual does nothing until an event is sent.', card('tok_manual'), {
    steps: [send('awaiting_funds', 'collection_succeeded')],
  }),
  scenario('card-waits-then-fails', 'tok_manual, and the processor says that the payment failed.', card('tok_manual'), {
    steps: [send('awaiting_funds', 'collection_failed')],
    path: [...WAITING, 'failed'],
    failure: 'card_declined',
  }),
  scenario('card-overpaid', 'More than the amount funds the settlement; the rest is due back.', card('tok_manual'), {
    steps: [send('awaiting_funds', 'collection_succeeded', { amount: '260.00' })],
    exceptions: ['overpaid'],
  }),
  scenario('card-disputed-later', 'A dispute after the settlement settled.', card('tok_visa'), {
    steps: [send('settled', 'dispute_opened')],
    exceptions: ['disputed'],
  }),
  scenario('card-expires', 'No money within 30 minutes.', card('tok_manual'), {
    steps: [toEndOfWait('awaiting_funds')],
    ...EXPIRED,
  }),
  scenario('card-expires-half-paid', 'Half of the money within 30 minutes; it is due back.', card('tok_manual'), {
    steps: [send('awaiting_funds', 'collection_partial'), { ...toEndOfWait('awaiting_funds'), received: '125.00' }],
    ...EXPIRED,
  }),
  scenario('card-pays-too-late', 'The money comes after the settlement expired; it is due back.', card('tok_manual'), {
    steps: [toEndOfWait('awaiting_funds'), send('expired', 'collection_succeeded')],
    exceptions: ['late_evidence'],
    ...EXPIRED,
  }),
  scenario('card-canceled', 'The partner cancels while the money is awaited.', card('tok_manual'), {
    steps: [{ when: 'awaiting_funds', do: 'cancel' }],
    path: [...WAITING, 'canceled'],
  }),
];

const BANK_SCENARIOS: readonly Scenario[] = [
  scenario('ach-pays', 'An ordinary account pays after a short delay.', ach('public-sandbox-checking')),
  scenario('ach-returned', "public-sandbox-return's debit is returned.", ach('public-sandbox-return'), {
    path: [...WAITING, 'failed'],
    failure: 'R01',
  }),
  scenario('ach-waits-then-pays', 'public-sandbox-manual waits until an event is sent.', ach('public-sandbox-manual'), {
    steps: [send('awaiting_funds', 'collection_succeeded')],
  }),
  scenario(
    'ach-returned-after-funding',
    'The bank takes its money back after the settlement settled; the return changes no state.',
    ach('public-sandbox-manual'),
    {
      steps: [send('awaiting_funds', 'collection_succeeded'), send('settled', 'collection_failed')],
      exceptions: ['returned'],
    },
  ),
  scenario('ach-expires', 'No money within 5 days.', ach('public-sandbox-manual'), {
    steps: [toEndOfWait('awaiting_funds')],
    ...EXPIRED,
  }),
  scenario('wire-pays', 'A wire waits until it arrives.', wire(), {
    steps: [send('awaiting_funds', 'collection_succeeded')],
  }),
  scenario('wire-pays-in-parts', 'Two wires add up.', wire({ corridor: 'GB-JM' }), {
    steps: [
      send('awaiting_funds', 'collection_partial', { amount: '100.00' }),
      send('awaiting_funds', 'collection_succeeded', { received: '100.00' }),
    ],
  }),
  scenario('wire-overpaid', 'A wire of too much.', wire(), {
    steps: [send('awaiting_funds', 'collection_succeeded', { amount: '300.00' })],
    exceptions: ['overpaid'],
  }),
  scenario(
    'wire-in-another-currency',
    'A wire in another currency is recorded and not applied; the right one funds.',
    wire(),
    {
      steps: [
        {
          when: 'awaiting_funds',
          do: 'post_bankledger_event',
          event: 'reconciled',
          amount_reconciled: 25_000,
          currency: 'CAD',
        },
        send('awaiting_funds', 'collection_succeeded'),
      ],
      exceptions: ['currency_mismatch'],
    },
  ),
  scenario('wire-returned', 'The bank returns the wire before it was applied.', wire(), {
    steps: [send('awaiting_funds', 'collection_failed')],
    path: [...WAITING, 'failed'],
    failure: 'payment_returned',
  }),
  scenario('wire-expires', 'No money within 10 days.', wire(), {
    steps: [{ when: 'awaiting_funds', do: 'advance_clock', by: 'P10D' }],
    ...EXPIRED,
  }),
];

const PAYOUT_SCENARIOS: readonly Scenario[] = [
  scenario(
    'recipient-sanctioned',
    "The recipient's name is a screening hit.",
    paidTo(`${SANDBOX_NAMES.screeningHit} Person`),
    {
      path: ['accepted', 'rejected'],
      failure: 'screening_hit',
    },
  ),
  scenario(
    'payout-refused',
    "The recipient's name has the payout refused; what was collected is due back.",
    paidTo(SANDBOX_NAMES.payoutRefused),
    {
      path: [...PAYING_OUT, 'failed'],
      failure: 'payout_refused',
    },
  ),
  scenario(
    'payout-confirmed-later',
    "The recipient's name has the rail give no answer; it confirms later.",
    paidTo(SANDBOX_NAMES.payoutPending),
    {
      steps: [send('paying_out', 'payout_confirmed')],
    },
  ),
  scenario(
    'payout-refused-later',
    'The rail gives no answer at first, then refuses.',
    paidTo(SANDBOX_NAMES.payoutPending),
    {
      steps: [send('paying_out', 'payout_refused')],
      path: [...PAYING_OUT, 'failed'],
      failure: 'payout_refused',
    },
  ),
  scenario(
    'payout-unknown',
    'No answer in 3 days: unknown is not failed, an operator looks into it.',
    paidTo(SANDBOX_NAMES.payoutPending),
    {
      steps: [toEndOfWait('paying_out')],
      path: REVIEWED,
    },
  ),
  scenario(
    'payout-unknown-then-paid',
    'An operator finds that the payout arrived.',
    paidTo(SANDBOX_NAMES.payoutPending),
    {
      steps: [toEndOfWait('paying_out'), { when: 'needs_review', do: 'resolve_review', outcome: 'paid' }],
      path: [...REVIEWED, 'settled'],
    },
  ),
  scenario(
    'payout-unknown-then-refused',
    'An operator finds that the payout never arrived.',
    paidTo(SANDBOX_NAMES.payoutPending),
    {
      steps: [toEndOfWait('paying_out'), { when: 'needs_review', do: 'resolve_review', outcome: 'refused' }],
      path: [...REVIEWED, 'failed'],
      failure: 'payout_refused',
    },
  ),
  scenario(
    'payout-confirmed-in-review',
    "The rail's answer comes when the settlement is in review: it decides.",
    paidTo(SANDBOX_NAMES.payoutPending),
    {
      steps: [toEndOfWait('paying_out'), send('needs_review', 'payout_confirmed')],
      path: [...REVIEWED, 'settled'],
    },
  ),
];

const HELD = ['accepted', 'compliance_hold'] as const;
const held = card('tok_visa', { amount: '1000.00' });

/** The payer takes the money back before the recipient is verified, and so before the payout. */
const takenBack = (event: SandboxEvent): ScenarioStep[] => [
  send('compliance_hold', 'collection_succeeded'),
  send('compliance_hold', event, { received: '1000.00' }),
  { when: 'compliance_hold', received: '0.00', do: 'decide_verification', decision: 'verified' },
];

const COMPLIANCE_SCENARIOS: readonly Scenario[] = [
  scenario('compliance-hold', '1 000.00 or more wait until the recipient is verified.', held, {
    steps: [{ when: 'compliance_hold', do: 'decide_verification', decision: 'verified' }],
    path: [...HELD, 'awaiting_funds', 'funded', 'paying_out', 'settled'],
  }),
  scenario('held-and-rejected', "The recipient's verification is rejected.", held, {
    steps: [{ when: 'compliance_hold', do: 'decide_verification', decision: 'rejected' }],
    path: [...HELD, 'rejected'],
    failure: 'verification_rejected',
  }),
  scenario('held-and-expired', 'No decision within 7 days.', held, {
    steps: [toEndOfWait('compliance_hold')],
    path: [...HELD, 'expired'],
    failure: 'verification_timeout',
  }),
  scenario('held-and-returned', 'The bank takes a wire back before the payout.', wire({ amount: '1000.00' }), {
    steps: takenBack('collection_failed'),
    path: [...HELD, 'awaiting_funds', 'failed'],
    exceptions: ['returned'],
    failure: 'payment_returned',
  }),
  scenario(
    'held-and-disputed',
    'The payer disputes a card payment before the payout.',
    card('tok_manual', { amount: '1000.00' }),
    {
      steps: takenBack('dispute_opened'),
      path: [...HELD, 'awaiting_funds', 'failed'],
      exceptions: ['disputed'],
      failure: 'payment_disputed',
    },
  ),
  scenario('held-and-canceled', 'The partner cancels while the recipient is verified.', held, {
    steps: [{ when: 'compliance_hold', do: 'cancel' }],
    path: [...HELD, 'canceled'],
  }),
];

export const SCENARIOS: readonly Scenario[] = [
  ...CARD_SCENARIOS,
  ...BANK_SCENARIOS,
  ...PAYOUT_SCENARIOS,
  ...COMPLIANCE_SCENARIOS,
];
