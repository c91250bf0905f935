/** For every crash point: which program passes it, and what makes it pass. */
import type { CrashPoint } from '../../domain/crash-point.ts';
import type { Program } from '../support/process-stack.ts';
import {
  changeRecipient,
  createKey,
  createOneRecipient,
  createOrganization,
  createWallet,
  createWebhook,
  deactivateRecipient,
  deleteWebhook,
  disableWebhook,
  endDeliveries,
  handOver,
  mailCode,
  ping,
  redeliver,
  replay,
  retryByWorkflow,
  retryInLane,
  revokeKey,
  rotateKey,
  rotateSecret,
  signIn,
  startLanes,
  subscribeAlone,
} from './crash-account.ts';
import {
  answerPayout,
  cancel,
  cancelInTemporal,
  createInReview,
  createOverpaid,
  createWaiting,
  endWaits,
  expire,
  payByWire,
  play,
  reviewPayout,
  settleByCard,
  sweep,
  verify,
  verifyByProvider,
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

const leakedKey = async (world: World): Promise<readonly string[]> => {
  const { orgId } = await createTenant(world.deps.http);
  const [key] = await query<{ id: string }>(world, `SELECT key_id AS id FROM api_keys WHERE org_id = '${orgId}'`);
  return ['key', 'revoke', key?.id ?? ''];
};

const someOperator = () => `operator-${crypto.randomUUID()}`;

/** The last operator cannot be revoked. */
const revokeOperator = async (world: World): Promise<readonly string[]> => {
  const [revoked, other] = [someOperator(), someOperator()];
  for (const name of [revoked, other]) await world.operate('torture', ['operator', 'add', name]);
  return ['operator', 'revoke', revoked];
};

const recordRefund = async (world: World): Promise<readonly string[]> => {
  const settlementId = await createOverpaid(world);
  return ['refund', 'record', settlementId, '--amount', '50.00', '--reference', 'torture'];
};

/** A gate of another corridor than that of the scenarios: evidence that is recorded is judged. */
const GATE = ['rail_admission', '--corridor', 'GB-BB'] as const;
const recordGate = async () => ['gate', 'record', ...GATE, '--evidence', 'package.json', '--expires', '2099-01-31'];
const onGate = (action: 'approve' | 'revoke') => async (world: World) => {
  const [evidence] = await query<{ id: string }>(
    world,
    'SELECT evidence_id AS id FROM launch_gate_evidence ORDER BY recorded_at DESC LIMIT 1',
  );
  return ['gate', action, evidence?.id ?? ''];
};

export const TRIGGERS: Readonly<Record<PointName, Trigger>> = {
  'api_key.create': onApi(createKey),
  'api_key.reissue': byOperator(async ({ deps }) => ['org', 'reissue-key', (await createTenant(deps.http)).orgId]),
  'api_key.rotate': onApi(rotateKey),
  'api_key.revoke': onApi(revokeKey),
  'api_key.revoke_as_operator': byOperator(leakedKey),
  'delivery.redeliver': onApi(redeliver),
  'delivery.redeliver_as_operator': byOperator(async (world) => {
    const [delivery] = await query<{ id: string }>(world, 'SELECT delivery_id AS id FROM webhook_deliveries LIMIT 1');
    return ['retry-delivery', delivery?.id ?? ''];
  }),
  'gate.record': byOperator(recordGate),
  'gate.approve': byOperator(onGate('approve')),
  'gate.revoke': byOperator(onGate('revoke')),
  'keys.record': byOperator(async () => ['keys', 'record']),
  'keys.reseal': byOperator(async () => ['keys', 'reseal']),
  'lane.exchange': onWorker(ping),
  'lost_runs.restart': onWorker(sweep),
  'open_objects.redispatch': byOperator(async (world) => {
    await createWaiting(world);
    return ['redispatch', '--all'];
  }),
  'operator.add': byOperator(async () => ['operator', 'add', someOperator()]),
  'operator.revoke': byOperator(revokeOperator),
  'organization.create': onApi(createOrganization),
  'organization.resume': byOperator(async (world) => {
    const { orgId } = await createTenant(world.deps.http);
    await world.operate('torture', ['org', 'suspend', orgId]);
    return ['org', 'resume', orgId];
  }),
  'organization.set_limits': byOperator(async ({ deps }) => [
    ...['org', 'tier', (await createTenant(deps.http)).orgId, 'large'],
  ]),
  'organization.suspend': byOperator(async ({ deps }) => ['org', 'suspend', (await createTenant(deps.http)).orgId]),
  'otp.request': onApi(mailCode),
  'provider_event.receive': onApi(payByWire),
  'recipient.change': onApi(changeRecipient),
  'recipient.create': onApi(createOneRecipient),
  'recipient.deactivate': onApi(deactivateRecipient),
  'recipient.erase': byOperator(async (world) => {
    const [erased] = await query<{ id: string }>(
      world,
      `UPDATE recipients r SET is_active = false WHERE recipient_id = (
         SELECT recipient_id FROM recipients o WHERE erased_at IS NULL AND NOT EXISTS (
           SELECT 1 FROM settlements s WHERE s.recipient_id = o.recipient_id) LIMIT 1)
       RETURNING recipient_id AS id`,
    );
    return ['erase', 'recipient', erased?.id ?? ''];
  }),
  'recipient.export': byOperator(async (world) => {
    const [row] = await query<{ id: string }>(world, 'SELECT recipient_id AS id FROM recipients LIMIT 1');
    return ['export', 'recipient', row?.id ?? ''];
  }),
  'sandbox_event.request': onApi(answerPayout),
  'session.open': onApi(signIn),
  'settlement.accept': onApi(play({ copies: 2, reusesKey: true })),
  'settlement.admit': onWorker(settleByCard),
  'settlement.advance_clock': onApi(expire),
  'settlement.answer_payout': onWorker(answerPayout),
  'settlement.begin_payout': onWorker(settleByCard),
  'settlement.cancel': onApi(cancel),
  'settlement.cancel_as_operator': byOperator(async (world) => ['cancel', await createWaiting(world)]),
  'settlement.cancel_on_request': onWorker(cancelInTemporal),
  'settlement.record_payout': onWorker(settleByCard),
  'settlement.record_refund': byOperator(recordRefund),
  'settlement.redispatch': byOperator(async (world) => ['redispatch', await createWaiting(world)]),
  'settlement.request_resolution': byOperator(async (world) => ['resolve', await createInReview(world), 'paid']),
  'settlement.resolve_review': onWorker(reviewPayout),
  'settlement.review': onWorker(endWaits),
  'subscription.claim': onWorker(retryByWorkflow),
  'subscription.end_deliveries': onWorker(endDeliveries),
  'subscription.hand_over': onWorker(handOver),
  'subscription.look': onWorker(retryByWorkflow),
  'subscription.record': onWorker(retryInLane),
  'subscription.release': onWorker(retryByWorkflow),
  'subscription.replay': onWorker(replay),
  'verification.answer_applicant': onApi(verifyByProvider),
  'verification.decide': onApi(verify),
  'verification.expire': onWorker(verify),
  'verification.open_manual': onApi(verify),
  'verification.open_provider': onApi(verifyByProvider),
  'verification.store_applicant': onWorker(verifyByProvider),
  'wallet.create': onApi(createWallet),
  'webhook.create': onApi(createWebhook),
  'webhook.change': onApi(disableWebhook),
  'webhook.disable_as_operator': byOperator(async (world) => [
    'webhook',
    'disable',
    (await subscribeAlone(world)).webhookId,
  ]),
  'webhook.enable_as_operator': byOperator(async (world) => {
    const { webhookId } = await subscribeAlone(world);
    await world.operate('torture', ['webhook', 'disable', webhookId]);
    return ['webhook', 'enable', webhookId];
  }),
  'webhook.delete': onApi(deleteWebhook),
  'webhook.test': onApi(ping),
  'webhook.replay': onApi(replay),
  'webhook.rotate_secret': onApi(rotateSecret),
  'dispatch.settlement': onApi(settleByCard),
  'dispatch.sandbox_collection': onWorker(settleByCard),
  'dispatch.sandbox_event': onApi(answerPayout),
  'dispatch.verification': onApi(verify),
  'dispatch.sandbox_verification': onWorker(verifyByProvider),
  'dispatch.webhook_lane': onApi(startLanes),
  'dispatch.otp': onApi(mailCode),
  'signal.settlement': onApi(cancel),
  'signal.verification': onApi(verify),
  'signal.webhook_subscription': onApi(redeliver),
  mail: onWorker(mailCode),
  signed_post: onWorker(settleByCard),
  webhook_post: onWorker(ping),
};
