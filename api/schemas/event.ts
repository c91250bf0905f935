/**
 * Events (contract §11): the body of a delivery, which the list of events shows byte for byte. Each type has a schema
 * of its own, so that a client knows the form of `data` by `type`.
 */
import { z } from 'zod';
import { EVENT_SCHEMA_VERSION, EVENT_TYPES, type EventType as EventTypeName } from '../../domain/event.ts';
import { ApiKeyResponse } from './api-key.ts';
import { CertificateEventData } from './certificate.ts';
import { constant, id, objectId, SETTLEMENT_ID_LENGTH_MAX, timestamp } from './common.ts';
import { EventType } from './event-type.ts';
import { createdFrom, createdTo, PageQuery, repeatable, selectedId } from './page.ts';
import { RecipientEventData } from './recipient.ts';
import { SettlementEventData, SettlementExceptionEventData } from './settlement.ts';
import { VerificationEventData } from './verification.ts';
import { WebhookResponse } from './webhook.ts';

type About = { readonly what: string; readonly data: z.ZodObject };

const settlement = (what: string): About => ({ what, data: SettlementEventData });
const verification = (what: string): About => ({ what, data: VerificationEventData });
const apiKey = (what: string): About => ({ what, data: ApiKeyResponse });

/** What each type of event reports, and the form of its data. */
export const EVENTS: Readonly<Record<EventTypeName, About>> = {
  'settlement.accepted': settlement('A settlement was accepted.'),
  'settlement.compliance_hold': settlement('A settlement waits for the verification of its recipient.'),
  'settlement.awaiting_funds': settlement('A settlement waits for its money.'),
  'settlement.funded': settlement('The money of a settlement has come in.'),
  'settlement.paying_out': settlement('The payout of a settlement was sent.'),
  'settlement.needs_review': settlement('The outcome of a payout is unknown. An operator finds out.'),
  'settlement.settled': settlement('The recipient was paid.'),
  'settlement.rejected': settlement(
    'A settlement was refused by screening or verification, or because its recipient is inactive or a launch gate closed.',
  ),
  'settlement.expired': settlement('A settlement waited too long.'),
  'settlement.failed': settlement('A settlement failed.'),
  'settlement.canceled': settlement('A settlement was canceled.'),
  'settlement.exception': { what: 'Evidence needs attention.', data: SettlementExceptionEventData },
  'settlement.funds_received': settlement('Money has come in; `amount_received` has grown.'),
  'settlement.refunded': settlement('Money that was due back was given back; `amount_refunded` has grown.'),
  'certificate.issued': { what: 'The evidence certificate of a settlement was issued.', data: CertificateEventData },
  'verification.pending': verification('A verification was opened.'),
  'verification.verified': verification('A recipient was verified.'),
  'verification.rejected': verification('A verification was rejected.'),
  'verification.expired': verification('A verification was not decided in time.'),
  'recipient.deactivated': { what: 'A recipient was deactivated.', data: RecipientEventData },
  'api_key.created': apiKey('An API key was created.'),
  'api_key.rotated': apiKey('An API key was replaced.'),
  'api_key.revoked': apiKey('An API key was revoked.'),
  'webhook.ping': { what: 'You asked for a test of the subscription.', data: WebhookResponse },
};

/** `settlement.funds_received` as `SettlementFundsReceivedEvent`. */
export const eventSchemaName = (type: EventTypeName): string =>
  `${type
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')}Event`;

const envelope = {
  id: objectId('The id of the event; the same at every delivery.'),
  timestamp: timestamp('When it happened.'),
  schema_version: constant(EVENT_SCHEMA_VERSION, 'The version of this form.'),
  sequence: z.int().min(1).meta({ description: "Counts the object's events from 1.", example: 6 }),
  test: constant(
    true,
    'Only in a test of a subscription. Nothing has happened: `data` is an example, or for `webhook.ping` the ' +
      'subscription. `sequence` counts the events of the subscription.',
  ).optional(),
};
export const EventEnvelope = z.object(envelope).meta({ id: 'EventEnvelope', description: 'What every event has.' });

/** Data of events alone has a description of its own. */
const dataOf = ({ data }: About) =>
  data.description === undefined
    ? data.meta({ description: 'The object as a read would have answered at this change.' })
    : data;

const eventOf = (type: EventTypeName) =>
  z
    .object({
      ...envelope,
      type: constant(type, 'What happened.'),
      data: dataOf(EVENTS[type]),
    })
    .meta({ id: eventSchemaName(type), description: EVENTS[type].what });

/** What the events of a settlement share. Only for the document, which has it once. */
export const SettlementEvent = EventEnvelope.extend({ data: SettlementEventData }).meta({
  id: 'SettlementEvent',
  description: 'An event of a settlement.',
});
/** The schema that the event's own adds its type to. */
export const eventBase = (type: EventTypeName): string =>
  EVENTS[type].data === SettlementEventData ? 'SettlementEvent' : 'EventEnvelope';

const [firstType, ...otherTypes] = EVENT_TYPES;

export const WebhookEvent = z
  .discriminatedUnion('type', [eventOf(firstType), ...otherTypes.map(eventOf)])
  .meta({ id: 'WebhookEvent', description: 'The body of a delivery. A read shows the same bytes as were sent.' });

export const EventPath = z.object({ event_id: id('The event.') });
export const EventQuery = PageQuery.safeExtend({
  type: repeatable(EventType, 'Only events of this type. It can be given several times.'),
  object_id: selectedId(
    SETTLEMENT_ID_LENGTH_MAX,
    'Only events of this settlement, certificate, verification, recipient, key or webhook.',
  ),
  created_from: createdFrom().meta({
    description:
      'Only events that are dated then or later (RFC 3339). An event is dated before others can read it: who polls ' +
      'overlaps the periods by a minute, and knows each event by its `id`.',
  }),
  created_to: createdTo(),
});
