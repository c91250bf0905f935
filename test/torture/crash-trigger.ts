/** What passes each crash point. */
import type { CrashPoint } from '../../domain/crash-point.ts';
import * as account from './crash-account.ts';
import * as settlement from './crash-settlement.ts';
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
  const settlementId = await settlement.createOverpaid(world);
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
  'api_key.create': account.createKey,
  'api_key.reissue': byOperator(async ({ deps }) => ['org', 'reissue-key', (await createTenant(deps.http)).orgId]),
  'api_key.rotate': account.rotateKey,
  'api_key.revoke': account.revokeKey,
  'api_key.revoke_as_operator': byOperator(leakedKey),
  'delivery.redeliver': account.redeliver,
  'delivery.redeliver_as_operator': byOperator(async (world) => {
    const [delivery] = await query<{ id: string }>(world, 'SELECT delivery_id AS id FROM webhook_deliveries LIMIT 1');
    return ['retry-delivery', delivery?.id ?? ''];
  }),
  'gate.record': byOperator(recordGate),
  'gate.approve': byOperator(onGate('approve')),
  'gate.revoke': byOperator(onGate('revoke')),
  'keys.record': byOperator(async () => ['keys', 'record']),
  'keys.reseal': byOperator(async () => ['keys', 'reseal']),
  'lane.exchange': account.ping,
  'lost_runs.restart': settlement.sweep,
  'open_objects.redispatch': byOperator(async (world) => {
    await settlement.createWaiting(world);
    return ['redispatch', '--all'];
  }),
  'operator.add': byOperator(async () => ['operator', 'add', someOperator()]),
  'operator.revoke': byOperator(revokeOperator),
  'organization.create': account.createOrganization,
  'organization.resume': byOperator(async (world) => {
    const { orgId } = await createTenant(world.deps.http);
    await world.operate('torture', ['org', 'suspend', orgId]);
    return ['org', 'resume', orgId];
  }),
  'organization.set_limits': byOperator(async ({ deps }) => [
    ...['org', 'tier', (await createTenant(deps.http)).orgId, 'large'],
  ]),
  'organization.suspend': byOperator(async ({ deps }) => ['org', 'suspend', (await createTenant(deps.http)).orgId]),
  'otp.request': account.mailCode,
  'provider_event.receive': settlement.payByWire,
  'recipient.change': account.changeRecipient,
  'recipient.create': account.createOneRecipient,
  'recipient.deactivate': account.deactivateRecipient,
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
  'sandbox_event.request': settlement.answerPayout,
  'session.open': account.signIn,
  'settlement.accept': settlement.play({ copies: 2, reusesKey: true }),
  'settlement.admit': settlement.settleByCard,
  'settlement.advance_clock': settlement.expire,
  'settlement.answer_payout': settlement.answerPayout,
  'settlement.begin_payout': settlement.settleByCard,
  'settlement.cancel': settlement.cancel,
  'settlement.cancel_as_operator': byOperator(async (world) => ['cancel', await settlement.createWaiting(world)]),
  'settlement.cancel_on_request': settlement.cancelInTemporal,
  'settlement.record_payout': settlement.settleByCard,
  'settlement.record_refund': byOperator(recordRefund),
  'settlement.redispatch': byOperator(async (world) => ['redispatch', await settlement.createWaiting(world)]),
  'settlement.request_resolution': byOperator(async (world) => [
    'resolve',
    await settlement.createInReview(world),
    'paid',
  ]),
  'settlement.resolve_review': settlement.reviewPayout,
  'settlement.review': settlement.endWaits,
  'subscription.claim': account.retryByWorkflow,
  'subscription.end_deliveries': account.endDeliveries,
  'subscription.hand_over': account.handOver,
  'subscription.look': account.retryByWorkflow,
  'subscription.record': account.retryInLane,
  'subscription.release': account.retryByWorkflow,
  'subscription.replay': account.replay,
  'verification.answer_applicant': settlement.verifyByProvider,
  'verification.decide': settlement.verify,
  'verification.expire': settlement.verify,
  'verification.open_manual': settlement.verify,
  'verification.open_provider': settlement.verifyByProvider,
  'verification.store_applicant': settlement.verifyByProvider,
  'wallet.create': account.createWallet,
  'webhook.create': account.createWebhook,
  'webhook.change': account.disableWebhook,
  'webhook.disable_as_operator': byOperator(async (world) => [
    'webhook',
    'disable',
    (await account.subscribeAlone(world)).webhookId,
  ]),
  'webhook.enable_as_operator': byOperator(async (world) => {
    const { webhookId } = await account.subscribeAlone(world);
    await world.operate('torture', ['webhook', 'disable', webhookId]);
    return ['webhook', 'enable', webhookId];
  }),
  'webhook.delete': account.deleteWebhook,
  'webhook.test': account.ping,
  'webhook.replay': account.replay,
  'webhook.rotate_secret': account.rotateSecret,
  'dispatch.settlement': settlement.settleByCard,
  'dispatch.sandbox_collection': settlement.settleByCard,
  'dispatch.sandbox_event': settlement.answerPayout,
  'dispatch.verification': settlement.verify,
  'dispatch.sandbox_verification': settlement.verifyByProvider,
  'dispatch.webhook_lane': account.startLanes,
  'dispatch.otp': account.mailCode,
  'signal.settlement': settlement.cancel,
  'signal.verification': settlement.verify,
  'signal.webhook_subscription': account.redeliver,
  mail: account.mailCode,
  signed_post: settlement.settleByCard,
  webhook_post: account.ping,
};
