/**
 * What a lane does in the database: one statement records what it sent and claims what it sends next, however many
 * deliveries that are and whoever they are for. A lane sends a delivery with a lane_key once it is due; each lane has a
 * range of the keys. The claims go through the subscriptions in turn, a bounded number at a time, and among those take
 * one of each organization before a second of any. The limit of a claim is divided among these organizations, and an
 * organization's part among its subscriptions. What one of them does not need, another one gets.
 */
import { ALL_LANES, LANE_KEYS, LANES } from '../../domain/webhook.ts';
import type { Database, Queryable } from '../client.ts';
import { inGroups } from '../group.ts';
import { NOT_WAITING_FOR_DISK, statement } from '../statement.ts';
import {
  ABANDONED_BEFORE,
  type AttemptResult,
  CLAIMED_COLUMNS,
  type ClaimedDelivery,
  claimedText,
  recordedText,
} from './webhook-attempt.ts';

/** The keys of a lane: `from` is among them, `to` is not. */
export type LaneKeys = { readonly from: number; readonly to: number };

/** The keys of a lane. @param lane its number, from 0 */
export const laneKeysOf = (lane: number): LaneKeys => ({
  from: Math.floor((lane * LANE_KEYS) / LANES),
  to: Math.floor(((lane + 1) * LANE_KEYS) / LANES),
});

/** How many subscriptions one claim looks at. */
const TURNS_MAX = 256;
/** A claim looks for this many times the even part of each subscription, because others may have less than theirs. */
const PART = 2;

/** The subscription at which the last claim ended. `hasFound`: this pass over all subscriptions has found something. */
export type Turn = Pick<ClaimedDelivery, 'orgId' | 'webhookId'> & Readonly<{ laneKey: number; hasFound: boolean }>;
const firstTurn = ({ from }: LaneKeys): Turn => ({ laneKey: from, orgId: '', webhookId: '', hasFound: false });

export type LaneClaim = {
  readonly claimant: number;
  /** Whether it also claims what is left over. Such a statement reads past everything that is under way. */
  readonly takesOver: boolean;
  /** By the delivery's id: what the claimant has claimed and still handles. The statement does not claim it again. */
  readonly known: ReadonlyMap<string, unknown>;
  readonly keys: LaneKeys;
  /** The subscription after which the claim begins; undefined: it begins with the lane's first one. */
  readonly after: Turn | undefined;
  /** How many deliveries it claims at most. */
  readonly limit: number;
  /** How many of them may be of a subscription that has none in flight. */
  readonly firstMax: number;
  /** How many of them may be of each subscription that has some in flight. */
  readonly free: ReadonlyMap<string, number>;
};

type ExchangeRow = (ClaimedDelivery | { readonly deliveryId: null }) & {
  readonly laneKey: number;
  readonly turnOrgId: string;
  readonly turnWebhookId: string;
  readonly turns: number;
  readonly ended: number;
  readonly left: number;
  readonly hasMore: boolean;
};

type ExchangeParameters = [
  results: string,
  claimant: number,
  from: number,
  to: number,
  afterKey: number,
  afterOrg: string,
  afterWebhook: string,
  turnsMax: number,
  free: string,
  limit: number,
  firstMax: number,
];

/** Whether a delivery `d` is still to be sent: its subscription `w` has not ended it. */
const IS_PENDING = 'd.endings >= w.endings';

/**
 * Its commit does not wait for the disk: each request would wait too. If a crash of PostgreSQL loses claims or results,
 * the same deliveries are claimed and sent again.
 *
 * @param takeable which deliveries `d` may be claimed
 */
const exchangeText = (takeable: string): string =>
  `WITH RECURSIVE ${NOT_WAITING_FOR_DISK}, ${recordedText('not_durable,')}, listed AS (
    (SELECT lane_key, org_id, webhook_id, 1 AS turn FROM webhook_deliveries d
      WHERE lane_key >= $3 AND lane_key < $4 AND (lane_key, org_id, webhook_id) > ($5::smallint, $6, $7) AND $10 > 0
        AND ${takeable}
      ORDER BY lane_key, org_id, webhook_id LIMIT 1)
    UNION ALL
    SELECT next.lane_key, next.org_id, next.webhook_id, l.turn + 1 FROM listed l, LATERAL (
      SELECT lane_key, org_id, webhook_id FROM webhook_deliveries d
      WHERE d.lane_key < $4 AND (d.lane_key, d.org_id, d.webhook_id) > (l.lane_key, l.org_id, l.webhook_id)
        AND ${takeable}
      ORDER BY lane_key, org_id, webhook_id LIMIT 1
    ) next
    WHERE l.turn < $8
  ), counted AS (
    SELECT *, count(*) OVER (PARTITION BY org_id) AS of_organization, dense_rank() OVER (ORDER BY org_id) AS organization
    FROM (SELECT *, ($9::jsonb ->> webhook_id)::integer AS known_free FROM listed) l WHERE known_free IS DISTINCT FROM 0
  ), share AS MATERIALIZED (
    SELECT l.lane_key, l.org_id, l.webhook_id,
      coalesce(l.known_free, CASE WHEN w.failing_since IS NULL THEN $11 ELSE 1 END) AS free,
      ${PART} * ceil($10::numeric / (SELECT max(organization) FROM counted) / l.of_organization)::integer AS part
    FROM counted l, LATERAL (
      SELECT failing_since FROM webhooks WHERE webhook_id = l.webhook_id LIMIT 1
    ) w
  ), candidate AS MATERIALIZED (
    SELECT waiting.delivery_id, s.part < s.free AND waiting.place = s.part AS is_cut,
      row_number() OVER (PARTITION BY s.org_id ORDER BY waiting.place, s.webhook_id) AS place
    FROM share s, LATERAL (
      SELECT delivery_id, row_number() OVER (ORDER BY next_attempt_at, delivery_id) AS place FROM (
        SELECT delivery_id, next_attempt_at FROM webhook_deliveries d
        WHERE d.lane_key = s.lane_key AND d.org_id = s.org_id AND d.webhook_id = s.webhook_id AND ${takeable}
        ORDER BY next_attempt_at, delivery_id LIMIT least(s.free, s.part)
      ) found
    ) waiting
  ), chosen AS MATERIALIZED (
    SELECT d.*, c.place FROM (SELECT delivery_id, place FROM candidate ORDER BY place LIMIT $10) c, LATERAL (
      SELECT delivery_id, lane_key, claimed_by > 0 AS is_left FROM webhook_deliveries d
      WHERE d.delivery_id = c.delivery_id AND ${takeable} LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) d
  ), claimed AS (
    UPDATE webhook_deliveries d SET
      status = CASE WHEN ${IS_PENDING} THEN d.status WHEN w.deleted_at IS NULL THEN 'skipped' ELSE 'canceled' END,
      lane_key = CASE WHEN ${IS_PENDING} THEN d.lane_key END,
      next_attempt_at = CASE WHEN ${IS_PENDING} THEN d.next_attempt_at END,
      claimed_by = CASE WHEN ${IS_PENDING} THEN $2 ELSE 0 END,
      claimed_at = CASE WHEN ${IS_PENDING} THEN now() END,
      redelivery_requested = false
    FROM not_durable, webhooks w
    -- As an array: so the planner uses the primary key, however many rows it expects.
    WHERE d.delivery_id = ANY (ARRAY(SELECT delivery_id FROM chosen WHERE lane_key IS NOT NULL))
      AND w.webhook_id = d.webhook_id
    -- One that has ended has no lane any more.
    RETURNING ${CLAIMED_COLUMNS}
  )
  SELECT last.lane_key AS "laneKey", last.org_id AS "turnOrgId", last.webhook_id AS "turnWebhookId", last.turn AS turns,
    (SELECT count(*)::integer FROM claimed WHERE lane_key IS NULL) AS ended,
    (SELECT count(*)::integer FROM chosen WHERE is_left) AS "left",
    (SELECT coalesce(count(*) > $10 OR bool_or(is_cut), false) FROM candidate) AS "hasMore", sent.*
  FROM (SELECT lane_key, org_id, webhook_id, turn FROM listed ORDER BY turn DESC LIMIT 1) last LEFT JOIN (
    SELECT ${claimedText('now()')}, (places.of ->> c.delivery_id)::integer AS place
    FROM claimed c, (SELECT jsonb_object_agg(delivery_id, place) AS of FROM chosen) places WHERE c.lane_key IS NOT NULL
  ) sent ON true
  ORDER BY sent.place`;

const IS_DUE = 'd.next_attempt_at <= now()';
/** Reads the index of what nobody has claimed, so that what is under way, however much it is, makes no claim longer. */
const exchangeStatement = statement<ExchangeParameters, ExchangeRow>(
  'exchange_deliveries',
  exchangeText(`d.claimed_by = 0 AND ${IS_DUE}`),
);
/**
 * A delivery is left over in three cases. An earlier activity of the lane has claimed it. Or this activity has, by a
 * statement whose answer was lost; that statement may commit late. Or a later claimant has held it for longer than any
 * attempt takes: a round of the subscription's workflow died, and its delivery was given back to the lane.
 */
const IS_LEFT = `(d.claimed_by < $2 OR (d.claimed_by = $2 AND NOT $12::jsonb ? d.delivery_id)
    OR (d.claimed_by > $2 AND d.claimed_at < ${ABANDONED_BEFORE}))`;
const takeOverStatement = statement<[...ExchangeParameters, known: string], ExchangeRow>(
  'take_over_deliveries',
  exchangeText(`${IS_LEFT} AND ${IS_DUE}`),
);

/**
 * Records results of subscriptions that do not fail, and claims deliveries.
 *
 * @returns `after`: where the next claim begins. `isMore`: there may be more to claim at once. `tookOver`: it found
 *   some that were left over
 */
export async function exchangeDeliveries(
  db: Queryable,
  results: readonly AttemptResult[],
  { claimant, takesOver, known, keys, after = firstTurn(keys), limit, firstMax, free }: LaneClaim,
): Promise<{
  readonly claimed: readonly ClaimedDelivery[];
  readonly after: Turn | undefined;
  readonly isMore: boolean;
  readonly tookOver: boolean;
}> {
  const place = [claimant, keys.from, keys.to, after.laneKey, after.orgId, after.webhookId, TURNS_MAX] as const;
  const places = [JSON.stringify(Object.fromEntries(free)), limit, firstMax] as const;
  const given: ExchangeParameters = [JSON.stringify(results), ...place, ...places];
  const rows = takesOver
    ? await takeOverStatement(db, ...given, JSON.stringify(Object.fromEntries(known)))
    : await exchangeStatement(db, ...given);
  const [last] = rows;
  const claimed = rows.filter((row) => row.deliveryId !== null);
  if (!last) return { claimed, after: undefined, isMore: after.hasFound && limit > 0, tookOver: false };
  const { laneKey, turnOrgId: orgId, turnWebhookId: webhookId } = last;
  const hasFound = after.hasFound || claimed.length > 0 || last.ended > 0;
  const isRest = after.webhookId !== '';
  const isEnd = last.turns < TURNS_MAX;
  return {
    claimed,
    after: isEnd ? undefined : { laneKey, orgId, webhookId, hasFound },
    // While no subscription has a place, the next pass over all of them finds nothing either.
    isMore: !isEnd || (isRest && hasFound) || last.ended > 0 || (claimed.length > 0 && last.hasMore),
    tookOver: last.left > 0,
  };
}

/** What decides, of a subscription, whether and how it gets a request. */
export type Target = { readonly url: string; readonly endings: number; readonly secretSealed: string | null };

const targetsStatement = statement<[webhookIds: readonly string[]], Target & { readonly webhookId: string }>(
  'find_targets',
  `SELECT webhook_id AS "webhookId", url, endings, secret_sealed AS "secretSealed"
  FROM webhooks WHERE webhook_id = ANY ($1::text[])`,
);

/** Many subscriptions may look at the same moment. One statement for all leaves the lanes their connections. */
const findTogether = inGroups<string, Target | undefined>(
  async (db, webhookIds) => {
    const found = new Map((await targetsStatement(db, webhookIds)).map((row) => [row.webhookId, row]));
    return webhookIds.map((webhookId) => found.get(webhookId));
  },
  { sizeMax: TURNS_MAX },
);

/** The target of a subscription, also of a deleted one. */
export const findTarget = (db: Database, webhookId: string): Promise<Target | undefined> =>
  findTogether(db, '', webhookId);

const releaseStatement = statement<[claimant: number, deliveryIds: readonly string[]], never>(
  'release_deliveries',
  `UPDATE webhook_deliveries SET claimed_by = 0, claimed_at = NULL
  WHERE delivery_id = ANY ($2::text[]) AND claimed_by = $1`,
);

/** Gives back deliveries that were claimed and not sent. */
export async function releaseDeliveries(db: Queryable, claimant: number, ids: readonly string[]): Promise<void> {
  await releaseStatement(db, claimant, ids);
}

/**
 * One for each lane, and without parameters: so a connection keeps its first plan. `range` hides the keys from the
 * planner. If it saw them, it would sometimes take the index of all deliveries of a lane, also of those that are claimed.
 */
const notifyStatements = ALL_LANES.map((lane) => {
  const { from, to } = laneKeysOf(lane);
  return statement<[], never>(
    `notify_lane_${lane}`,
    `WITH ${NOT_WAITING_FOR_DISK}, range AS MATERIALIZED (SELECT ${from} AS first, ${to} AS beyond), due AS MATERIALIZED (
      SELECT FROM range r, LATERAL (
        SELECT delivery_id FROM webhook_deliveries d
        WHERE lane_key >= r.first AND lane_key < r.beyond AND claimed_by = 0 AND ${IS_DUE}
        ORDER BY lane_key, org_id, webhook_id, next_attempt_at, delivery_id LIMIT 1
      ) untaken
    )
    SELECT pg_notify('deliveries_due', '${lane}') FROM due, not_durable`,
  );
});

/** Tells a lane, in all processes, if it has deliveries to take. */
export async function notifyLane(db: Queryable, lane: number): Promise<void> {
  await notifyStatements[lane]?.(db);
}

const oldestStatement = statement<[from: number, to: number], { readonly due_at: string | null }>(
  'find_oldest_unclaimed',
  `SELECT min(next_attempt_at) AS due_at FROM webhook_deliveries d
  WHERE lane_key >= $1 AND lane_key < $2 AND claimed_by = 0 AND ${IS_DUE}`,
);

/** Since when the oldest delivery waits that no lane has taken; null if none does. */
export async function findOldestUnclaimed(db: Queryable, { from, to }: LaneKeys): Promise<Date | null> {
  const [row] = await oldestStatement(db, from, to);
  return row?.due_at ? new Date(row.due_at) : null;
}
