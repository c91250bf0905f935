/**
 * Writes what was decided about a settlement (`domain/settlement/decide.ts`): the row, transitions, postings, evidence,
 * exceptions, certificate, events with their deliveries, and outbox rows, by one statement. The statement changes the
 * row only if it is as it was read; if not, it writes nothing at all.
 */
import type { Certificate } from '../../domain/certificate.ts';
import { certificateEventData } from '../../domain/resource/certificate.ts';
import { settlementEventData } from '../../domain/resource/settlement.ts';
import { type ChangeEvent, isEmpty, type SettlementChange } from '../../domain/settlement/change.ts';
import type { SettlementException } from '../../domain/settlement/evidence.ts';
import type { Settlement, SettlementTransition } from '../../domain/settlement/state.ts';
import type { Tx } from '../client.ts';
import { statement } from '../statement.ts';
import { currentTraceparent } from '../traceparent.ts';
import { fanOutText, type NumberedEvent, numberedEvent, type Stamp } from './event.ts';

const writeStatement = statement<[change: string], { readonly changed: boolean }>(
  'write_settlement_change',
  `WITH changed AS (
    UPDATE settlements SET status = after.status, version = after.version, event_sequence = after.event_sequence,
      failure = after.failure, expires_at = after.expires_at, amount_received_minor = after.amount_received_minor,
      amount_refunded_minor = after.amount_refunded_minor, taken_back_minor = after.taken_back_minor,
      certificate_id = after.certificate_id, updated_at = after.updated_at
    FROM jsonb_to_record($1::jsonb -> 'after') AS after (status text, version integer, event_sequence integer,
      failure jsonb, expires_at timestamptz, amount_received_minor bigint, amount_refunded_minor bigint,
      taken_back_minor bigint, certificate_id text, updated_at timestamptz)
    WHERE settlements.org_id = $1::jsonb ->> 'org_id' AND settlements.settlement_id = $1::jsonb ->> 'settlement_id'
      AND settlements.version = ($1::jsonb ->> 'version_before')::integer
      AND settlements.event_sequence = ($1::jsonb ->> 'event_sequence_before')::integer
    RETURNING settlements.settlement_id
  ), recorded AS (
    INSERT INTO evidence (evidence_id, settlement_id, provider, event_id, kind, amount_minor, currency, failure, sha256,
      pending, reversed_minor, received_at)
    SELECT evidence_id, settlement_id, provider, event_id, kind, amount_minor, currency, failure,
      decode(sha256, 'hex'), pending, reversed_minor, ($1::jsonb ->> 'at')::timestamptz
    FROM changed, jsonb_to_recordset($1::jsonb -> 'evidence') AS evidence (evidence_id text, provider text, event_id text,
      kind text, amount_minor bigint, currency text, failure jsonb, sha256 text, pending boolean, reversed_minor bigint)
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
    INSERT INTO settlement_exceptions (exception_id, settlement_id, type, at, evidence_id, amount_minor, currency)
    SELECT exception_id, settlement_id, type, at, evidence_id, amount_minor, currency
    FROM changed, jsonb_to_recordset($1::jsonb -> 'exceptions') AS exception (exception_id text, type text,
      at timestamptz, evidence_id text, amount_minor bigint, currency text)
  ), issued AS (
    INSERT INTO certificates (cert_id, org_id, settlement_id, content, sha256, signature, issued_at)
    SELECT cert_id, $1::jsonb ->> 'org_id', settlement_id, convert_to(content, 'UTF8'), decode(sha256, 'hex'), signature,
      ($1::jsonb ->> 'at')::timestamptz
    FROM changed, jsonb_to_recordset($1::jsonb -> 'certificates') AS certificate (cert_id text, content text,
      sha256 text, signature text)
  ), enqueued AS (
    INSERT INTO outbox (kind, object_id, signal, context, request_id, traceparent)
    SELECT kind, object_id, signal, context, request_id, $1::jsonb ->> 'traceparent'
    FROM changed, jsonb_to_recordset($1::jsonb -> 'messages') AS message (kind text, object_id text, signal text,
      context jsonb, request_id text)
  ), event AS (
    INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
    SELECT event_id, $1::jsonb ->> 'org_id', type, object_type, object_id, sequence, convert_to(body, 'UTF8'), at
    FROM changed, jsonb_to_recordset($1::jsonb -> 'events') AS event (event_id text, type text, object_type text,
      object_id text, sequence integer, body text, at timestamptz)
    RETURNING event_id, org_id, type, object_type, object_id, $1::jsonb ->> 'request_id' AS request_id,
      $1::jsonb ->> 'traceparent' AS traceparent
  ), ${fanOutText('event')}
  SELECT EXISTS (SELECT FROM changed) AS changed`,
);

/**
 * Writes a change; an empty one writes nothing.
 *
 * @param requestId the request, the command or the run that makes the change: its events and messages show it
 * @returns the settlement as it now is
 * @throws when the settlement is not as the change found it: it was changed without its lock
 */
export async function writeChange(tx: Tx, change: SettlementChange, requestId: string): Promise<Settlement> {
  if (isEmpty(change)) return change.before;
  const [written] = await writeStatement(tx, JSON.stringify(changeJson(change, requestId)));
  if (!written?.changed) throw new Error(`settlement ${change.before.settlementId} was changed without its lock`);
  return change.after;
}

/** A change as the statement takes it. A bigint is written in decimal digits. */
function changeJson({ before, after, at, ...change }: SettlementChange, requestId: string) {
  return {
    settlement_id: before.settlementId,
    org_id: before.orgId,
    version_before: before.version,
    event_sequence_before: before.eventSequence,
    at,
    request_id: requestId,
    traceparent: currentTraceparent(),
    after: {
      status: after.status,
      version: after.version,
      event_sequence: after.eventSequence,
      failure: after.failure,
      expires_at: after.expiresAt,
      amount_received_minor: String(after.amountReceivedMinor),
      amount_refunded_minor: String(after.amountRefundedMinor),
      taken_back_minor: String(after.takenBackMinor),
      certificate_id: after.certificateId,
      updated_at: after.updatedAt,
    },
    evidence: change.evidence ? [evidenceJson(change.evidence)] : [],
    decided: change.decided,
    transitions: change.transitions.map(transitionJson),
    postings: change.postings.map(({ amountMinor, ...posting }) => ({ ...posting, amount_minor: String(amountMinor) })),
    exceptions: change.events.flatMap((event) => (event.exception ? [exceptionJson(event, event.exception)] : [])),
    messages: change.messages.map(({ kind, objectId, signal, context }) => ({
      kind,
      object_id: objectId,
      signal,
      context,
      request_id: requestId,
    })),
    certificates: change.certificate ? [certificateJson(change.certificate)] : [],
    events: [
      ...change.events.map((event) => settlementEvent(before, event, requestId)),
      ...(change.certificate ? [certificateEvent(before, change.certificate, { at, requestId })] : []),
    ].map(eventJson),
  };
}

const SEQUENCE_DIGITS = 9;

/**
 * It has the number of the exception's event. Exceptions are read by date and id, because several can have one date. In
 * ids of the released version the exceptions are counted, and there is no letter.
 */
const exceptionId = ({ settlement: { settlementId }, sequence }: ChangeEvent): string =>
  `${settlementId}:e${String(sequence).padStart(SEQUENCE_DIGITS, '0')}`;

const exceptionJson = (event: ChangeEvent, exception: SettlementException) => ({
  exception_id: exceptionId(event),
  type: exception.type,
  at: exception.at,
  evidence_id: exception.evidenceId,
  amount_minor: exception.amountMinor === null ? null : String(exception.amountMinor),
  currency: exception.currency,
});

const certificateJson = ({ certId, ...certificate }: Certificate) => ({ ...certificate, cert_id: certId });

const eventJson = ({ eventId, objectType, objectId, type, sequence, body, at }: NumberedEvent) => ({
  event_id: eventId,
  object_type: objectType,
  object_id: objectId,
  type,
  sequence,
  body: body.toString(),
  at,
});

/** An event about a settlement, with the bytes that every subscriber is sent. */
export const settlementEvent = (
  { orgId, settlementId: objectId }: Pick<Settlement, 'orgId' | 'settlementId'>,
  event: ChangeEvent,
  requestId: string,
): NumberedEvent => {
  const { type, at, sequence } = event;
  const data = settlementEventData(event);
  return numberedEvent({ orgId, objectType: 'settlement', objectId, requestId, type, at, data }, sequence);
};

function certificateEvent({ orgId }: Settlement, certificate: Certificate, stamp: Stamp): NumberedEvent {
  const about = { objectType: 'certificate', objectId: certificate.certId, type: 'certificate.issued' } as const;
  return numberedEvent({ orgId, ...about, ...stamp, data: certificateEventData(certificate, stamp.at) }, 1);
}

const evidenceJson = ({
  evidenceId,
  eventId,
  amountMinor,
  reversedMinor,
  ...evidence
}: NonNullable<SettlementChange['evidence']>) => ({
  ...evidence,
  evidence_id: evidenceId,
  event_id: eventId,
  amount_minor: amountMinor === null ? null : String(amountMinor),
  reversed_minor: String(reversedMinor),
});

const transitionJson = ({ from, to, evidenceId, ...transition }: SettlementTransition) => ({
  ...transition,
  from_status: from,
  to_status: to,
  evidence_id: evidenceId,
});
