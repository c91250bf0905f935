/** A subscription that has missed deliveries, and the rounds of its workflow that send them again. */
import { webhookSubscriptionActivities } from '../../activities/webhook-subscription.ts';
import type { Crash } from '../../domain/crash-point.ts';
import { activityDeps } from './activity.ts';
import type { TestApi } from './api.ts';
import { type Json, jsonOf } from './partner.ts';
import { subscribe } from './webhook.ts';

/** Before every delivery of a test. */
export const ALWAYS = { since: '2020-01-01T00:00:00Z' };

/** A disabled subscription with so many skipped deliveries. Four of them are of one millisecond. */
export async function createMissed(api: TestApi, count: number, types: readonly string[] = ['settlement.settled']) {
  const caller = await api.createCaller('full');
  const { webhook_id: webhookId } = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
  const path = `/v1/webhooks/${webhookId}`;
  const call = (method: Parameters<TestApi['call']>[1], below = '', body?: unknown, headers = {}) =>
    api.call(caller, method, `${path}${below}`, body, headers);
  await call('PATCH', '', { status: 'disabled' });
  await api.connection.pool.query(
    `WITH event AS (
      INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
      SELECT new_id(), $1, ($4::text[])[1 + n % cardinality($4::text[])], 'settlement', new_id(), 1, '{}',
        now() - (($3 - n) / 4 + 1) * interval '1 millisecond'
      FROM generate_series(0, $3 - 1) n RETURNING event_id, type, created_at
    )
    INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
      prior_attempts, endings, request_id, created_at)
    SELECT new_id(), $1, $2, event_id, type, 'skipped', 1, 0, 1, 'test', created_at FROM event`,
    [caller.orgId, webhookId, count, types],
  );
  const rowsOf = async (text: string, ...values: unknown[]): Promise<Json[]> =>
    (await api.connection.pool.query(text, [webhookId, ...values])).rows;
  const deliveries = (): Promise<Json[]> =>
    rowsOf('SELECT * FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY created_at, delivery_id');
  const replay = (body: Json = ALWAYS, headers = {}) => call('POST', '/replay', body, headers);
  return {
    caller,
    webhookId,
    call,
    rowsOf,
    deliveries,
    statuses: async () => (await deliveries()).map(({ status }) => status),
    replay,
    /** Starts a replay. @returns its id */
    start: async (body: Json = ALWAYS): Promise<string> => {
      const answer = await replay(body);
      if (answer.statusCode !== 202) throw new Error(`replay refused: ${answer.body}`);
      return jsonOf(answer).replay_id;
    },
    read: async (replayId: string): Promise<Json> => jsonOf(await call('GET', `/replays/${replayId}`)),
    /** One round of the subscription's workflow, which sends nothing by itself. */
    round: (crash?: Crash) =>
      webhookSubscriptionActivities({
        ...activityDeps(api, 'http://127.0.0.1', { nudge: () => undefined }),
        crash,
      }).deliverRetries({ webhookId, orgId: caller.orgId, nowMs: Date.now() }),
    redeliver: (deliveryId: string, headers = {}) =>
      call('POST', `/deliveries/${deliveryId}/redeliver`, undefined, headers),
  };
}
