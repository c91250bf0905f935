/** What passes each crash point. */
import type { CrashPoint } from '../../domain/crash-point.ts';
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

/** The operators' command line that passes the point, without `--operator` and `--note`. */
type CommandLine = (world: World) => Promise<readonly string[]>;
/** What makes the API or the worker pass the point, or an operator's command. */
type Trigger = Pass | { readonly args: CommandLine };

/** A crash point without its moment. */
export type PointName = CrashPoint extends `${infer Name}:${string}` ? Name : never;

export const nameOf = (point: CrashPoint): PointName => point.split(':')[0] as PointName;

const byOperator = (args: CommandLine): Trigger => ({ args });

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
  'api_key.create': createKey,
  'api_key.reissue': byOperator(async ({ deps }) => ['org', 'reissue-key', (await createTenant(deps.http)).orgId]),
  'api_key.rotate': rotateKey,
  'api_key.revoke': revokeKey,
  'api_key.revoke_as_operator': byOperator(leakedKey),
  'delivery.redeliver': redeliver,
  'delivery.redeliver_as_operator': byOperator(async (world) => {
    const [delivery] = await query<{ id: string }>(world, 'SELECT delivery_id AS id FROM webhook_deliveries LIMIT 1');
    return ['retry-delivery', delivery?.id ?? ''];
  }),
  'gate.record': byOperator(recordGate),
  'gate.approve': byOperator(onGate('approve')),
  'gate.revoke': byOperator(onGate('revoke')),
  'keys.record': byOperator(async () => ['keys', 'record']),
  'keys.reseal': byOperator(async () => ['keys', 'reseal']),
  'lane.exchange': ping,
  'lost_runs.restart': sweep,
  'open_objects.redispatch': byOperator(async (world) => {
    await createWaiting(world);
    return ['redispatch', '--all'];
  }),
  'operator.add': byOperator(async () => ['operator', 'add', someOperator()]),
  'operator.revoke': byOperator(revokeOperator),
  'organization.create': createOrganization,
  'organization.resume': byOperator(async (world) => {
    const { orgId } = await createTenant(world.deps.http);
    await world.operate('torture', ['org', 'suspend', orgId]);
    return ['org', 'resume', orgId];
  }),
  'organization.set_limits': byOperator(async ({ deps }) => [
    ...['org', 'tier', (await createTenant(deps.http)).orgId, 'large'],
  ]),
  'organization.suspend': byOperator(async ({ deps }) => ['org', 'suspend', (await createTenant(deps.http)).orgId]),
  'otp.request': mailCode,
  'provider_event.receive': payByWire,
  'recipient.change': changeRecipient,
  'recipient.create': createOneRecipient,
  'recipient.deactivate': deactivateRecipient,
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
  'sandbox_event.request': answerPayout,
  'session.open': signIn,
  'settlement.accept': play({ copies: 2, reusesKey: true }),
  'settlement.admit': settleByCard,
  'settlement.advance_clock': expire,
  'settlement.answer_payout': answerPayout,
  'settlement.begin_payout': settleByCard,
  'settlement.cancel': cancel,
  'settlement.cancel_as_operator': byOperator(async (world) => ['cancel', await createWaiting(world)]),
  'settlement.cancel_on_request': cancelInTemporal,
  'settlement.record_payout': settleByCard,
  'settlement.record_refund': byOperator(recordRefund),
  'settlement.redispatch': byOperator(async (world) => ['redispatch', await createWaiting(world)]),
  'settlement.request_resolution': byOperator(async (world) => ['resolve', await createInReview(world), 'paid']),
  'settlement.resolve_review': reviewPayout,
  'settlement.review': endWaits,
  'subscription.claim': retryByWorkflow,
  'subscription.end_deliveries': endDeliveries,
  'subscription.hand_over': handOver,
  'subscription.look': retryByWorkflow,
  'subscription.record': retryInLane,
  'subscription.release': retryByWorkflow,
  'subscription.replay': replay,
  'verification.answer_applicant': verifyByProvider,
  'verification.decide': verify,
  'verification.expire': verify,
  'verification.open_manual': verify,
  'verification.open_provider': verifyByProvider,
  'verification.store_applicant': verifyByProvider,
  'wallet.create': createWallet,
  'webhook.create': createWebhook,
  'webhook.change': disableWebhook,
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
  'webhook.delete': deleteWebhook,
  'webhook.test': ping,
  'webhook.replay': replay,
  'webhook.rotate_secret': rotateSecret,
  'dispatch.settlement': settleByCard,
  'dispatch.sandbox_collection': settleByCard,
  'dispatch.sandbox_event': answerPayout,
  'dispatch.verification': verify,
  'dispatch.sandbox_verification': verifyByProvider,
  'dispatch.webhook_lane': startLanes,
  'dispatch.otp': mailCode,
  'signal.settlement': cancel,
  'signal.verification': verify,
  'signal.webhook_subscription': redeliver,
  mail: mailCode,
  signed_post: settleByCard,
  webhook_post: ping,
};
