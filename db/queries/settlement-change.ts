/**
 * What happens to a settlement once it was accepted. A change is put together in memory, under the settlement's row
 * lock, and written by one statement: the row, at most one transition, postings, evidence, exceptions, events with
 * their deliveries, and outbox rows. The statement changes the row only if it is as it was read; if not, it writes
 * nothing at all.
 */
import { notBefore } from '../../domain/clock.ts';
import { DomainError } from '../../domain/error.ts';
import { EVENT_OF_STATUS, type EventType } from '../../domain/event.ts';
import { type Evidence, type Reception, receive, type SettlementException } from '../../domain/evidence.ts';
import type { OutboxMessage } from '../../domain/outbox.ts';
import { collectionPostings, type Posting, surplusPostings, transitionPostings } from '../../domain/posting.ts';
import { exceptionResource } from '../../domain/resource/settlement.ts';
import {
  canMove,
  type Failure,
  type Settlement,
  type SettlementStatus,
  type SettlementTransition,
  waitWindowMs,
} from '../../domain/settlement.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { statement } from '../statement.ts';
import { currentTraceparent } from '../traceparent.ts';
import { fanOutText, type NumberedEvent, numberedEvent, type Stamp } from './event.ts';
import { settlementEvent } from './settlement.ts';

/** Evidence as its row has it, but for the settlement and the time of receipt. */
export type StoredEvidence = Evidence & {
  readonly provider: string;
  readonly eventId: string;
  readonly sha256: Buffer;
  readonly pending: boolean;
};

/** A change that is not written yet. `after` is the settlement as the change leaves it. */
export type SettlementChange = {
  readonly before: Settlement;
  readonly after: Settlement;
  /** `at` on the settlement's own clock. */
  readonly stamp: Stamp;
  readonly transition: SettlementTransition | undefined;
  readonly postings: readonly (Posting & { readonly step: string; readonly line: number })[];
  readonly evidence: StoredEvidence | undefined;
  /** The ids of evidence that is pending no more. */
  readonly decided: readonly string[];
  readonly exceptions: readonly SettlementException[];
  readonly events: readonly NumberedEvent[];
  readonly messages: readonly OutboxMessage[];
};

/** A change of a locked settlement, in which nothing has happened yet. */
export const changeOf = (settlement: Settlement, stamp: Stamp): SettlementChange => ({
  before: settlement,
  after: settlement,
  stamp,
  transition: undefined,
  postings: [],
  evidence: undefined,
  decided: [],
  exceptions: [],
  events: [],
  messages: [],
});

export type Move = {
  readonly to: SettlementStatus;
  readonly reason: string | null;
  readonly evidenceId?: string | null | undefined;
  readonly failure?: Failure | null | undefined;
};

/**
 * The settlement enters another state. A change has at most one move.
 *
 * @throws DomainError `state_conflict` when the table has no such transition
 */
export function withMove(change: SettlementChange, { to, reason, evidenceId = null, failure }: Move): SettlementChange {
  const { after: settlement, stamp } = change;
  const { status: from } = settlement;
  if (!canMove(from, to)) throw new DomainError('state_conflict', { current_state: from });
  const windowMs = waitWindowMs(to, settlement.paymentMethod);
  const version = settlement.version + 1;
  const after: Settlement = {
    ...settlement,
    status: to,
    version,
    failure: failure ?? settlement.failure,
    expiresAt: windowMs === undefined ? null : new Date(stamp.at.getTime() + windowMs),
    updatedAt: stamp.at,
  };
  const transition = { sequence: version, from, to, at: stamp.at, reason, evidenceId };
  const moved = withPostings({ ...change, after, transition }, to, transitionPostings(settlement, from, to));
  return withEvent(moved, EVENT_OF_STATUS[to]);
}

/** The workflow has decided by this evidence. */
export const withDecided = (change: SettlementChange, evidenceId: string): SettlementChange => ({
  ...change,
  decided: [...change.decided, evidenceId],
});

/** New evidence, with everything that it does to the settlement. */
export const withEvidence = (
  change: SettlementChange,
  evidence: Omit<StoredEvidence, 'pending'>,
  reception: Reception,
): SettlementChange =>
  withReception({ ...change, evidence: { ...evidence, pending: reception.pending } }, evidence, reception);

/**
 * Receives pending evidence again, in the state that was reached since: what is no longer waited for is booked, or
 * recorded as an exception. A settlement that has ended keeps none pending.
 */
export function withPending(change: SettlementChange, pending: readonly Evidence[]): SettlementChange {
  let latest = change;
  for (const received of pending) {
    const reception = receive(latest.after, received);
    if (!reception.pending) latest = withReception(withDecided(latest, received.evidenceId), received, reception);
  }
  return latest;
}

/** What a piece of evidence does to the settlement, beside its own row: its money is booked, its exception recorded. */
export function withReception(change: SettlementChange, received: Evidence, reception: Reception): SettlementChange {
  const { booked, exception, pending } = reception;
  const { evidenceId, amountMinor, currency, failure } = received;
  // Later steps are dated by the settlement's last change, so none is dated before this evidence or its event.
  const isChange = pending || exception !== null || booked !== null;
  let latest = isChange ? { ...change, after: { ...change.after, updatedAt: change.stamp.at } } : change;
  if (booked !== null) latest = withMoney(latest, evidenceId, amountMinor ?? 0n, booked);
  if (exception === null) return latest;
  const { at } = change.stamp;
  return withException(latest, {
    type: exception,
    at,
    evidenceId,
    amountMinor,
    currency,
    reason: failure?.code ?? null,
  });
}

function withMoney(
  change: SettlementChange,
  evidenceId: string,
  amountMinor: bigint,
  booked: 'held' | 'due_back',
): SettlementChange {
  const { after } = change;
  const posted =
    booked === 'held'
      ? withPostings(change, `collection:${evidenceId}`, collectionPostings(after, amountMinor))
      : withPostings(change, `surplus:${evidenceId}`, surplusPostings(after, amountMinor));
  const amountReceivedMinor = after.amountReceivedMinor + amountMinor;
  return withEvent({ ...posted, after: { ...after, amountReceivedMinor } }, 'settlement.funds_received');
}

/** An exception, with its event. It changes no state. */
export function withException(change: SettlementChange, exception: SettlementException): SettlementChange {
  const recorded = { ...change, exceptions: [...change.exceptions, exception] };
  return withEvent(recorded, 'settlement.exception', { exception: exceptionResource(exception) });
}

/** An outbox row. */
export const withMessage = (change: SettlementChange, message: OutboxMessage): SettlementChange => ({
  ...change,
  messages: [...change.messages, message],
});

const withPostings = (change: SettlementChange, step: string, added: readonly Posting[]): SettlementChange => ({
  ...change,
  postings: [...change.postings, ...added.map((posting, line) => ({ ...posting, step, line }))],
});

/** An event about the settlement as it is now, dated not before its predecessor: that is as old as the row at most. */
function withEvent(change: SettlementChange, type: EventType, extra: Readonly<Record<string, unknown>> = {}) {
  const { before, after, stamp } = change;
  const sequence = after.eventSequence + 1;
  const at = notBefore(stamp.at, before.updatedAt);
  const event = settlementEvent(after, type, { at, requestId: stamp.requestId });
  const numbered = numberedEvent({ ...event, data: { ...event.data, ...extra } }, sequence);
  return { ...change, after: { ...after, eventSequence: sequence }, events: [...change.events, numbered] };
}

const write = statement<[change: string], { readonly changed: boolean; readonly recorded: boolean }>(
  'write_settlement_change',
  `WITH recorded AS (
    -- Evidence of one provider event is recorded once. Where it was, this statement changes nothing.
    INSERT INTO evidence (evidence_id, settlement_id, provider, event_id, kind, amount_minor, currency, failure, sha256,
      pending, received_at)
    SELECT evidence_id, $1::jsonb ->> 'settlement_id', provider, event_id, kind, amount_minor, currency, failure,
      decode(sha256, 'hex'), pending, ($1::jsonb ->> 'at')::timestamptz
    FROM jsonb_to_recordset($1::jsonb -> 'evidence') AS evidence (evidence_id text, provider text, event_id text,
      kind text, amount_minor bigint, currency text, failure jsonb, sha256 text, pending boolean)
    ON CONFLICT DO NOTHING
    RETURNING evidence_id
  ), changed AS (
    UPDATE settlements SET status = after.status, version = after.version, event_sequence = after.event_sequence,
      failure = after.failure, expires_at = after.expires_at, amount_received_minor = after.amount_received_minor,
      updated_at = after.updated_at
    FROM jsonb_to_record($1::jsonb -> 'after') AS after (status text, version integer, event_sequence integer,
      failure jsonb, expires_at timestamptz, amount_received_minor bigint, updated_at timestamptz)
    WHERE settlements.org_id = $1::jsonb ->> 'org_id' AND settlements.settlement_id = $1::jsonb ->> 'settlement_id'
      AND settlements.version = ($1::jsonb ->> 'version_before')::integer
      AND settlements.event_sequence = ($1::jsonb ->> 'event_sequence_before')::integer
      AND ($1::jsonb -> 'evidence' = '[]' OR EXISTS (SELECT FROM recorded))
    RETURNING settlements.settlement_id
  ), decided AS (
    UPDATE evidence SET pending = false FROM changed
    WHERE evidence.settlement_id = changed.settlement_id AND $1::jsonb -> 'decided' ? evidence.evidence_id
  ), moved AS (
    INSERT INTO settlement_transitions (settlement_id, sequence, from_status, to_status, at, reason, evidence_id)
    SELECT settlement_id, sequence, from_status, to_status, at, reason, evidence_id
    FROM changed, jsonb_to_recordset($1::jsonb -> 'transitions') AS transition (sequence integer, from_status text,
      to_status text, at timestamptz, reason text, evidence_id text)
  ), posted AS (
    INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at)
    SELECT settlement_id, step, line, account, currency, amount_minor, ($1::jsonb ->> 'at')::timestamptz
    FROM changed, jsonb_to_recordset($1::jsonb -> 'postings') AS posting (step text, line integer, account text,
      currency text, amount_minor bigint)
  ), excepted AS (
    INSERT INTO settlement_exceptions (exception_id, settlement_id, type, at, evidence_id)
    SELECT exception_id, settlement_id, type, at, evidence_id
    FROM changed, jsonb_to_recordset($1::jsonb -> 'exceptions') AS exception (exception_id text, type text,
      at timestamptz, evidence_id text)
  ), enqueued AS (
    INSERT INTO outbox (kind, object_id, signal, context, request_id, traceparent)
    SELECT kind, object_id, signal, context, request_id, $1::jsonb ->> 'traceparent'
    FROM changed, jsonb_to_recordset($1::jsonb -> 'messages') AS message (kind text, object_id text, signal text,
      context jsonb, request_id text)
  ), event AS (
    INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
    SELECT event_id, $1::jsonb ->> 'org_id', type, 'settlement', settlement_id, sequence, convert_to(body, 'UTF8'), at
    FROM changed, jsonb_to_recordset($1::jsonb -> 'events') AS event (event_id text, type text, sequence integer,
      body text, at timestamptz)
    RETURNING event_id, org_id, type, object_id, $1::jsonb ->> 'request_id' AS request_id,
      $1::jsonb ->> 'traceparent' AS traceparent
  ), ${fanOutText('event')}
  SELECT EXISTS (SELECT FROM changed) AS changed, EXISTS (SELECT FROM recorded) AS recorded`,
);

/**
 * Writes a change.
 *
 * @returns the settlement as it now is; undefined, with nothing written, when the change's evidence was recorded before
 * @throws when the settlement is not as the change found it: somebody changed it without its lock
 */
export async function writeChange(tx: Tx, change: SettlementChange): Promise<Settlement | undefined> {
  const [written] = await write(tx, JSON.stringify(changeJson(change)));
  if (written?.changed) return change.after;
  if (change.evidence && !written?.recorded) return undefined;
  throw new Error(`settlement ${change.before.settlementId} was changed without its lock`);
}

/** As `writeChange`, for a change without evidence. */
export async function writeMove(tx: Tx, change: SettlementChange): Promise<Settlement> {
  return (await writeChange(tx, change)) ?? change.before;
}

/** A change as the statement takes it. A bigint is written in decimal digits. */
function changeJson({ before, after, stamp, ...change }: SettlementChange) {
  const { evidence, transition } = change;
  return {
    settlement_id: before.settlementId,
    org_id: before.orgId,
    version_before: before.version,
    event_sequence_before: before.eventSequence,
    at: stamp.at,
    request_id: stamp.requestId,
    traceparent: currentTraceparent(),
    after: {
      status: after.status,
      version: after.version,
      event_sequence: after.eventSequence,
      failure: after.failure,
      expires_at: after.expiresAt,
      amount_received_minor: String(after.amountReceivedMinor),
      updated_at: after.updatedAt,
    },
    evidence: evidence ? [evidenceJson(evidence)] : [],
    decided: change.decided,
    transitions: transition ? [transitionJson(transition)] : [],
    postings: change.postings.map(({ amountMinor, ...posting }) => ({ ...posting, amount_minor: String(amountMinor) })),
    exceptions: change.exceptions.map(({ type, at, evidenceId }) => ({
      exception_id: newId(),
      type,
      at,
      evidence_id: evidenceId,
    })),
    messages: change.messages.map(({ kind, objectId, signal, context, requestId }) => ({
      kind,
      object_id: objectId,
      signal,
      context,
      request_id: requestId,
    })),
    events: change.events.map(({ eventId, type, sequence, body, at }) => ({
      event_id: eventId,
      type,
      sequence,
      body: body.toString(),
      at,
    })),
  };
}

const evidenceJson = ({ evidenceId, eventId, amountMinor, sha256, ...evidence }: StoredEvidence) => ({
  ...evidence,
  evidence_id: evidenceId,
  event_id: eventId,
  amount_minor: amountMinor === null ? null : String(amountMinor),
  sha256: sha256.toString('hex'),
});

const transitionJson = ({ from, to, evidenceId, ...transition }: SettlementTransition) => ({
  ...transition,
  from_status: from,
  to_status: to,
  evidence_id: evidenceId,
});
