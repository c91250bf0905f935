/**
 * Outbound events (contract §11). An event is written in the transaction of its change, as the exact bytes that every
 * subscriber is sent, together with its delivery to each subscription. So no event is lost. An object's row counts its
 * events.
 */
import { EVENT_SCHEMA_VERSION, type EventEnvelope, type EventType, type ObjectType } from '../../domain/event.ts';
import { ALL_EVENTS } from '../../domain/webhook.ts';
import type { Tx } from '../client.ts';
import { columnNames, columnParameters, columnsOf, columnValues } from '../column-list.ts';
import { newId } from '../id.ts';
import { events } from '../schema/event.ts';
import { type Parameter, type Statement, statement } from '../statement.ts';
import { currentTraceparent } from '../traceparent.ts';

/** When a change happened, and which request or operator's command made it: its events show both. */
export type Stamp = { readonly at: Date; readonly requestId: string };

export type NewEvent = Stamp & {
  readonly orgId: string;
  readonly objectType: ObjectType;
  readonly objectId: string;
  readonly type: EventType;
  /** The object as a read would have answered at this change, without `timeline` and personal data. */
  readonly data: Readonly<Record<string, unknown>>;
  /** A test of a subscription: it is about the subscription, whatever its type. */
  readonly test?: true;
};

/** What counts its events here. The statements of settlements, and that of a request to deactivate, count their own. */
const COUNTERS = {
  api_key: { table: 'api_keys', id: 'key_id' },
  recipient: { table: 'recipients', id: 'recipient_id' },
  verification: { table: 'verifications', id: 'verification_id' },
  webhook: { table: 'webhooks', id: 'webhook_id' },
} as const satisfies Partial<Record<ObjectType, { readonly table: string; readonly id: string }>>;

type Counted = keyof typeof COUNTERS;
type Count = Statement<[orgId: string, objectId: string, at: string], { readonly sequence: number; at: string }>;

const counter = (type: Counted): Count =>
  statement(
    `count_${type}_event`,
    `UPDATE ${COUNTERS[type].table} SET event_sequence = event_sequence + 1, event_at = greatest(event_at, $3::timestamptz)
    WHERE org_id = $1 AND ${COUNTERS[type].id} = $2 RETURNING event_sequence AS sequence, event_at AS at`,
  );

const COUNT: { readonly [Type in Counted]: Count } = {
  api_key: counter('api_key'),
  recipient: counter('recipient'),
  verification: counter('verification'),
  webhook: counter('webhook'),
};

/**
 * Writes an event with the object's next sequence number, dated not before its predecessor. Counting locks the object's
 * row, so the numbers have no gaps; a unique index refuses a second writer.
 *
 * @returns the id of the event
 */
export async function recordEvent(tx: Tx, event: NewEvent & { readonly objectType: Counted }): Promise<string> {
  const { orgId, objectType, objectId } = event;
  const [counted] = await COUNT[objectType](tx, orgId, objectId, event.at.toISOString());
  if (!counted) throw new Error(`there is no ${objectType} ${objectId} that the event could be about`);
  return await writeEvent(tx, { ...event, at: new Date(counted.at) }, counted.sequence);
}

/** An event with its id, its number, and the bytes that every subscriber is sent. */
export type NumberedEvent = NewEvent & {
  readonly eventId: string;
  readonly sequence: number;
  readonly body: Buffer;
};

/** Numbers an event and makes its bytes. */
export function numberedEvent(event: NewEvent, sequence: number): NumberedEvent {
  const eventId = newId();
  const envelope: EventEnvelope = {
    id: eventId,
    type: event.type,
    timestamp: event.at.toISOString(),
    schema_version: EVENT_SCHEMA_VERSION,
    sequence,
    ...(event.test && { test: event.test }),
    data: event.data,
  };
  return { ...event, eventId, sequence, body: Buffer.from(JSON.stringify(envelope)) };
}

/** Writes an event of this number, which the object's row counts already. */
export async function writeEvent(tx: Tx, event: NewEvent, sequence: number): Promise<string> {
  const numbered = numberedEvent(event, sequence);
  await insertEventStatement(tx, ...eventValues(numbered));
  return numbered.eventId;
}

/**
 * The common table expressions that fan events out: a delivery for each subscription to an event's type, which its lane
 * sends. Append them to the expression that inserts the events, in the same statement. The delivery of a disabled
 * subscription is `skipped` and can be redelivered. A test has one delivery: to
 * the subscription that it is about.
 *
 * @param source the name of an expression with the columns event_id, org_id, type, object_type, object_id, request_id
 *   and traceparent (text or null), a row for each event
 */
export const fanOutText = (source: string): string => `
  wanted AS (
    SELECT e.event_id, e.org_id, e.type, e.request_id, e.traceparent, w.webhook_id, w.endings, w.lane_key,
      e.object_type = 'webhook' OR w.status = 'enabled' AS pending
    FROM ${source} e CROSS JOIN LATERAL (
      SELECT webhook_id, endings, lane_key, status, event_types FROM webhooks
      WHERE org_id = e.org_id AND deleted_at IS NULL OFFSET 0
    ) w
    WHERE CASE WHEN e.object_type = 'webhook' THEN w.webhook_id = e.object_id
        ELSE w.event_types && ARRAY[e.type, '${ALL_EVENTS}'] END
  ), delivery AS (
    INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
      prior_attempts, next_attempt_at, lane_key, endings, request_id, traceparent, created_at)
    SELECT new_id_with(event_id), org_id, webhook_id, event_id, type, CASE WHEN pending THEN 'pending' ELSE 'skipped' END, 1,
      0, CASE WHEN pending THEN now() END, CASE WHEN pending THEN lane_key END, endings, request_id, traceparent, now()
    FROM wanted
  )`;

/** What an event is written with; the body is its bytes. */
export const EVENT = columnsOf(events, [
  'eventId',
  'orgId',
  'type',
  'objectType',
  'objectId',
  'sequence',
  'body',
  'createdAt',
]);

/**
 * The common table expressions that write one event and fan it out, for a statement that also writes its change.
 *
 * @param source the name of an expression: the event is written if it has a row, which is the only one
 * @param offset how many parameters come before the values of `eventValues`
 */
export const eventText = (source: string, offset: number): string => `
  event AS (
    INSERT INTO events (${columnNames(EVENT)}) SELECT ${columnParameters(EVENT, offset)} FROM ${source}
    RETURNING event_id, org_id, type, object_type, object_id, $${offset + EVENT.length + 1}::text AS request_id,
      $${offset + EVENT.length + 2}::text AS traceparent
  ), ${fanOutText('event')}`;

export const eventValues = (event: NumberedEvent): Parameter[] => [
  ...columnValues(EVENT, { ...event, createdAt: event.at }),
  event.requestId,
  currentTraceparent(),
];

const insertEventStatement = statement<readonly Parameter[], never>(
  'insert_event',
  `WITH one AS (SELECT), ${eventText('one', 0)} SELECT`,
);
