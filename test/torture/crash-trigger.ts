/** For every crash point: which program passes it, and what makes it pass. */
import type { CrashPoint } from '../../domain/crash-point.ts';
import type { Program } from '../support/process-stack.ts';
import {
  changesRecipient,
  createsKey,
  createsOrganization,
  createsRecipient,
  createsWallet,
  createsWebhook,
  deactivatesRecipient,
  deletesWebhook,
  disablesWebhook,
  endsDeliveries,
  isPinged,
  mailsCode,
  redelivers,
  replays,
  revokesKey,
  rotatesKey,
  rotatesSecret,
  signsIn,
} from './crash-account.ts';
import {
  createInReview,
  createOverpaid,
  createWaiting,
  expires,
  isAnswered,
  isCanceled,
  isCanceledInTemporal,
  isPaidByWire,
  isReviewed,
  isVerified,
  isVerifiedByProvider,
  plays,
  settles,
  sweeps,
  waitsEnd,
} from './crash-settlement.ts';
import { type Pass, query, type World } from './crash-world.ts';
import { createTenant } from './tenant.ts';

export type ProgramTrigger = { readonly program: Program; readonly pass: Pass };
/** `args`: the operators' command line that passes the point, without `--operator` and `--note`. */
export type Trigger =
  | ProgramTrigger
  | { readonly program: 'ops'; readonly args: (world: World) => Promise<readonly string[]> };

/** A crash point without its moment. */
export type PointName = CrashPoint extends `${infer Name}:${string}` ? Name : never;

export const nameOf = (point: CrashPoint): PointName => point.split(':')[0] as PointName;

const onApi = (pass: Pass): Trigger => ({ program: 'api', pass });
const onWorker = (pass: Pass): Trigger => ({ program: 'worker', pass });
const byOperator = (args: (world: World) => Promise<readonly string[]>): Trigger => ({ program: 'ops', args });

const someOperator = () => `operator-${crypto.randomUUID()}`;

/** The last operator cannot be revoked. */
const revokesOperator = async (world: World): Promise<readonly string[]> => {
  const [revoked, other] = [someOperator(), someOperator()];
  for (const name of [revoked, other]) await world.operate('torture', ['operator', 'add', name]);
  return ['operator', 'revoke', revoked];
};

const recordsRefund = async (world: World): Promise<readonly string[]> => {
  const settlementId = await createOverpaid(world);
  return ['refund', 'record', settlementId, '--amount', '50.00', '--reference', 'torture'];
};

/** A gate of another corridor than that of the scenarios: evidence that is recorded is judged. */
const GATE = ['rail_admission', '--corridor', 'GB-BB'] as const;
const recordsGate = async () => ['gate', 'record', ...GATE, '--evidence', 'package.json', '--expires', '2099-01-31'];
const onGate = (action: 'approve' | 'revoke') => async (world: World) => {
  const [evidence] = await query<{ id: string }>(
    world,
    'SELECT evidence_id AS id FROM launch_gate_evidence ORDER BY recorded_at DESC LIMIT 1',
  );
  return ['gate', action, evidence?.id ?? ''];
};

export const TRIGGERS: Readonly<Record<PointName, Trigger>> = {
  'api_key.create': onApi(createsKey),
  'api_key.reissue': byOperator(async ({ deps }) => ['org', 'reissue-key', (await createTenant(deps.http)).orgId]),
  'api_key.rotate': onApi(rotatesKey),
  'api_key.revoke': onApi(revokesKey),
  'delivery.redeliver': onApi(redelivers),
  'delivery.redeliver_as_operator': byOperator(async (world) => {
    const [delivery] = await query<{ id: string }>(world, 'SELECT delivery_id AS id FROM webhook_deliveries LIMIT 1');
    return ['retry-delivery', delivery?.id ?? ''];
  }),
  'gate.record': byOperator(recordsGate),
  'gate.approve': byOperator(onGate('approve')),
  'gate.revoke': byOperator(onGate('revoke')),
  'keys.record': byOperator(async () => ['keys', 'record']),
  'keys.reseal': byOperator(async () => ['keys', 'reseal']),
  'lost_runs.restart': onWorker(sweeps),
  'open_objects.redispatch': byOperator(async (world) => {
    await createWaiting(world);
    return ['redispatch', '--all'];
  }),
  'operator.add': byOperator(async () => ['operator', 'add', someOperator()]),
  'operator.revoke': byOperator(revokesOperator),
  'organization.create': onApi(createsOrganization),
  'otp.request': onApi(mailsCode),
  'provider_event.receive': onApi(isPaidByWire),
  'recipient.change': onApi(changesRecipient),
  'recipient.create': onApi(createsRecipient),
  'recipient.deactivate': onApi(deactivatesRecipient),
  'sandbox_event.request': onApi(isAnswered),
  'session.open': onApi(signsIn),
  'settlement.accept': onApi(plays({ copies: 2, reusesKey: true })),
  'settlement.admit': onWorker(settles),
  'settlement.advance_clock': onApi(expires),
  'settlement.answer_payout': onWorker(isAnswered),
  'settlement.begin_payout': onWorker(settles),
  'settlement.cancel': onApi(isCanceled),
  'settlement.cancel_as_operator': byOperator(async (world) => ['cancel', await createWaiting(world)]),
  'settlement.cancel_on_request': onWorker(isCanceledInTemporal),
  'settlement.record_payout': onWorker(settles),
  'settlement.record_refund': byOperator(recordsRefund),
  'settlement.redispatch': byOperator(async (world) => ['redispatch', await createWaiting(world)]),
  'settlement.request_resolution': byOperator(async (world) => ['resolve', await createInReview(world), 'paid']),
  'settlement.resolve_review': onWorker(isReviewed),
  'settlement.review': onWorker(waitsEnd),
  'subscription.open_run': onWorker(isPinged),
  'subscription.claim': onWorker(isPinged),
  'subscription.record': onWorker(isPinged),
  'subscription.end_deliveries': onWorker(endsDeliveries),
  'subscription.look': onWorker(isPinged),
  'verification.decide': onApi(isVerified),
  'verification.expire': onWorker(isVerified),
  'verification.open_manual': onApi(isVerified),
  'verification.open_provider': onApi(isVerifiedByProvider),
  'verification.store_applicant': onApi(isVerifiedByProvider),
  'wallet.create': onApi(createsWallet),
  'webhook.create': onApi(createsWebhook),
  'webhook.change': onApi(disablesWebhook),
  'webhook.delete': onApi(deletesWebhook),
  'webhook.ping': onApi(isPinged),
  'webhook.replay': onApi(replays),
  'webhook.rotate_secret': onApi(rotatesSecret),
  'dispatch.settlement': onApi(settles),
  'dispatch.sandbox_collection': onWorker(settles),
  'dispatch.sandbox_event': onApi(isAnswered),
  'dispatch.verification': onApi(isVerified),
  'dispatch.sandbox_verification': onApi(isVerifiedByProvider),
  'dispatch.otp': onApi(mailsCode),
  'signal.settlement': onApi(isCanceled),
  'signal.verification': onApi(isVerified),
  'signal.webhook_subscription': onApi(redelivers),
  mail: onWorker(mailsCode),
  signed_post: onWorker(settles),
  webhook_post: onWorker(isPinged),
};
