/** What the processes do by themselves: deliver, replay, dispatch, sweep, count and delete. */
import { Client, Connection } from '@temporalio/client';
import { Registry } from 'prom-client';
import { vi } from 'vitest';
import { otpActivities } from '../../activities/otp.ts';
import { sweepActivities } from '../../activities/sweep.ts';
import { webhookLaneActivities } from '../../activities/webhook-lane.ts';
import { webhookSubscriptionActivities } from '../../activities/webhook-subscription.ts';
import { startLanes } from '../../db/commands/lost-run.ts';
import { handOverDelivery } from '../../db/commands/webhook-attempt.ts';
import { setContactHash } from '../../db/queries/consumer.ts';
import { findOperatorByToken, setTokenHash } from '../../db/queries/operator/token.ts';
import { eraseCode } from '../../db/queries/otp.ts';
import { deleteRateLimits } from '../../db/queries/rate-limit.ts';
import { openClaimant } from '../../db/queries/webhook-attempt.ts';
import {
  exchangeDeliveries,
  findOldestUnclaimed,
  findTarget,
  laneKeysOf,
  notifyLane,
  releaseDeliveries,
} from '../../db/queries/webhook-lane.ts';
import { releaseRetries } from '../../db/queries/webhook-retry.ts';
import { ALL_LANES } from '../../domain/webhook.ts';
import { startDispatcher } from '../../process/dispatcher.ts';
import { stateExposition } from '../../process/state-metrics.ts';
import { activityDeps } from '../support/activity.ts';
import { TEST_KEYS, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { recordKeys } from '../support/ops.ts';
import { jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { ping, subscribe } from '../support/webhook.ts';
import type { Large } from './partner-flow.ts';

const MINUTE_MS = 60_000;

/** Deliveries that succeed, fail, are repeated and replayed; a subscription that changes and ends. */
export async function playDeliveries(api: TestApi, { partner }: Large): Promise<void> {
  const stopping = new AbortController();
  // Other subscriptions have deliveries due too, which succeed.
  const target = 'http://127.0.0.1:9999/in-turn';
  let sent = 0;
  const deps = {
    ...activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }),
    stopping: stopping.signal,
    guardedHttp: {
      post: async (url: string) => {
        if (url === target) sent += 1;
        const status = url === target && sent % 2 === 0 ? 500 : 200;
        const outcome = { status, error: status === 200 ? null : ('http_status' as const) };
        return { ...outcome, bytes: 0, sha256: Buffer.alloc(32), retryAfter: undefined, durationMs: 5, lostMs: null };
      },
    },
  };
  const subscription = await subscribe(api, partner, target);
  const url = `/v1/webhooks/${subscription.webhook_id}`;
  for (let n = 0; n < 6; n += 1) await ping(api, partner, subscription.webhook_id);
  const { serveLane } = webhookLaneActivities(deps);
  const lanes = Promise.all(ALL_LANES.map((lane) => serveLane({ lane })));
  const { pool } = api.owner;
  const attempted = 'SELECT DISTINCT status FROM webhook_deliveries WHERE webhook_id = $1 AND lane_key IS NULL';
  await vi.waitUntil(async () => (await pool.query(attempted, [subscription.webhook_id])).rowCount === 2, WAIT);
  stopping.abort();
  await lanes;
  const [delivery] = jsonOf(await api.call(partner, 'GET', `${url}/deliveries?status=succeeded`));
  await api.call(partner, 'POST', `${url}/deliveries/${delivery.delivery_id}/redeliver`);
  const replay = jsonOf(await api.call(partner, 'POST', `${url}/replay`, { since: '2020-01-01T00:00:00Z' }));
  await api.call(partner, 'GET', `${url}/replays/${replay.replay_id}`);
  const round = { webhookId: subscription.webhook_id, orgId: partner.orgId };
  const { deliverRetries } = webhookSubscriptionActivities({ ...deps, stopping: new AbortController().signal });
  await deliverRetries({ ...round, nowMs: Date.now() + 60 * MINUTE_MS });
  await api.call(partner, 'POST', `${url}/rotate-secret`);
  const [event] = jsonOf(await api.call(partner, 'GET', '/v1/events?type=webhook.ping&limit=1'));
  await api.call(partner, 'GET', `/v1/events/${event.id}`);
  await api.call(partner, 'PATCH', url, { status: 'disabled' });
  await deliverRetries({ ...round, nowMs: Date.now() + 2 * 60 * MINUTE_MS });
  await api.call(partner, 'PATCH', url, { status: 'enabled' });
  await api.call(partner, 'DELETE', url);
}

/** The dispatcher, with Temporal's answers made up: every fifth call fails. */
export async function playDispatch(api: TestApi): Promise<void> {
  const { db } = api.connection;
  let started = 0;
  const start = async (): Promise<string> => {
    started += 1;
    if (started % 5 === 0) throw new Error('no answer');
    return 'run';
  };
  const client = new Client({
    connection: Connection.lazy(),
    interceptors: { workflow: [{ start, signalWithStart: start, signal: async () => undefined }] },
  });
  const dispatcher = startDispatcher({ db, client, log: { info: () => undefined, warn: () => undefined } });
  const isDone = async () =>
    (await api.owner.pool.query('SELECT FROM outbox WHERE due_at <= now() OR claimed')).rowCount === 0;
  await vi.waitUntil(isDone, WAIT);
  await dispatcher.stop();
}

/** The sweep, the metrics and the beginning of a process. */
export async function playUpkeep(api: TestApi): Promise<void> {
  const deps = {
    ...activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }),
    runs: { findRunning: async () => new Set<string>() },
  };
  await sweepActivities(deps).restartLostRuns({ nowMs: Date.now() + MINUTE_MS });
  await otpActivities(deps).sendOtp({ challengeId: 'challenge-1' });
  const log = { warn: () => undefined };
  const config = { outboxMaxRows: 1_000, retentionDays: deps.retentionDays };
  await stateExposition(new Registry(), { ...deps, config, log })();
  await startLanes(deps, 'test');
  const { encryption } = TEST_SECRETS;
  const earlier = { ...encryption, id: 'earlier' };
  await recordKeys(deps.db, { ...TEST_KEYS, encryptionKeys: [encryption, earlier] });
  await recordKeys(deps.db);
  await deleteRateLimits(deps.db);
  for (const lane of ALL_LANES) await notifyLane(deps.db, lane);
}

/** What a process does only when something has failed or was changed. Of the ids, each names nothing. */
export async function playRare(api: TestApi): Promise<void> {
  const { db } = api.connection;
  const deps = activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined });
  const claimant = await openClaimant(db);
  const keys = laneKeysOf(0);
  await findOldestUnclaimed(db, keys);
  await findTarget(db, 'none');
  await releaseDeliveries(db, claimant, ['none']);
  const own = { claimant, known: new Map(), keys, after: undefined, limit: 32, firstMax: 4, free: new Map() };
  // In its first seconds a lane only takes over.
  await exchangeDeliveries(db, [], { ...own, takesOver: false });
  const delivery = { deliveryId: 'none', webhookId: 'webhook-1', orgId: 'org-1', requestId: 'test' };
  await handOverDelivery(deps, delivery, claimant);
  await releaseRetries(db, 'webhook-1', deps.now());
  await eraseCode(db, 'none');
  await setContactHash(db, 'none', { hash: Buffer.alloc(32), pepperId: 'new' });
  const token = { tokenHash: Buffer.alloc(32), pepperId: 'new' };
  await findOperatorByToken(db, [token]);
  await setTokenHash(db, 'none', token);
}
