/**
 * The points at which the torture suite ends a process: around every transaction, every dispatch and every request to
 * another system. A process reaches them only with `CRASH_AT` (config/), which the local sandbox alone accepts.
 * Everywhere else `deps.crash` is undefined.
 */
import { OUTBOX_KINDS, type OutboxKind, type OutboxMessage } from './outbox.ts';

/** Every transaction that changes something, as `<noun>.<what is done>`. */
export const TRANSACTIONS = [
  'api_key.create',
  'api_key.reissue',
  'api_key.rotate',
  'api_key.revoke',
  'api_key.revoke_as_operator',
  'delivery.redeliver',
  'delivery.redeliver_as_operator',
  'gate.record',
  'gate.approve',
  'gate.revoke',
  'keys.record',
  'keys.reseal',
  'lane.exchange',
  'lost_runs.restart',
  'open_objects.redispatch',
  'operator.add',
  'operator.revoke',
  'organization.create',
  'organization.resume',
  'organization.set_limits',
  'organization.suspend',
  'otp.request',
  'provider_event.receive',
  'recipient.change',
  'recipient.create',
  'recipient.deactivate',
  'recipient.erase',
  'recipient.export',
  'sandbox_event.request',
  'session.open',
  'settlement.accept',
  'settlement.admit',
  'settlement.advance_clock',
  'settlement.answer_payout',
  'settlement.begin_payout',
  'settlement.cancel',
  'settlement.cancel_as_operator',
  'settlement.cancel_on_request',
  'settlement.record_payout',
  'settlement.record_refund',
  'settlement.redispatch',
  'settlement.request_resolution',
  'settlement.resolve_review',
  'settlement.review',
  'subscription.claim',
  'subscription.end_deliveries',
  'subscription.hand_over',
  'subscription.look',
  'subscription.record',
  'subscription.release',
  'subscription.replay',
  'verification.answer_applicant',
  'verification.decide',
  'verification.expire',
  'verification.open_manual',
  'verification.open_provider',
  'verification.store_applicant',
  'wallet.create',
  'webhook.create',
  'webhook.change',
  'webhook.delete',
  'webhook.disable_as_operator',
  'webhook.enable_as_operator',
  'webhook.test',
  'webhook.replay',
  'webhook.rotate_secret',
] as const;
export type Transaction = (typeof TRANSACTIONS)[number];

/** The kinds of outbox rows that can carry a signal. */
const SIGNALED_KINDS = ['settlement', 'verification', 'webhook_subscription'] as const satisfies readonly OutboxKind[];

const DISPATCHES = [
  // Every row of a subscription carries a signal.
  ...OUTBOX_KINDS.filter((kind) => kind !== 'webhook_subscription').map((kind) => `dispatch.${kind}` as const),
  ...SIGNALED_KINDS.map((kind) => `signal.${kind}` as const),
] as const;
type Dispatch = (typeof DISPATCHES)[number];
type DispatchMoment = 'after_claim' | 'after_call' | 'after_delete';

/** Requests to another system. */
const REQUESTS = ['mail', 'signed_post', 'webhook_post'] as const;

export type CrashPoint =
  | `${Transaction}:${'before_commit' | 'after_commit'}`
  | `${Dispatch}:${DispatchMoment}`
  | `${(typeof REQUESTS)[number]}:${'before' | 'after'}`;

export const CRASH_POINTS: readonly CrashPoint[] = [
  ...TRANSACTIONS.flatMap((name) => [`${name}:before_commit`, `${name}:after_commit`] as const),
  ...DISPATCHES.flatMap((name) => [`${name}:after_claim`, `${name}:after_call`, `${name}:after_delete`] as const),
  ...REQUESTS.flatMap((name) => [`${name}:before`, `${name}:after`] as const),
];

/** Does not return when the process is to end at this point. */
export type Crash = (point: CrashPoint) => void;

/** A row with a signal has points of its own: it may reach a workflow that runs. */
export function dispatchPoint(message: OutboxMessage, moment: DispatchMoment): CrashPoint {
  const { kind, signal } = message;
  return signal === null && kind !== 'webhook_subscription' ? `dispatch.${kind}:${moment}` : `signal.${kind}:${moment}`;
}
