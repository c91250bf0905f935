/** Outbound event types and their envelope (contract §11). An event is committed together with its change. */
import type { SettlementStatus } from './settlement/state.ts';

export const EVENT_TYPES = [
  'settlement.accepted',
  'settlement.compliance_hold',
  'settlement.awaiting_funds',
  'settlement.funded',
  'settlement.paying_out',
  'settlement.needs_review',
  'settlement.settled',
  'settlement.rejected',
  'settlement.expired',
  'settlement.failed',
  'settlement.canceled',
  'settlement.exception',
  'settlement.funds_received',
  'settlement.refunded',
  'certificate.issued',
  'verification.pending',
  'verification.verified',
  'verification.rejected',
  'verification.expired',
  'recipient.deactivated',
  'api_key.created',
  'api_key.rotated',
  'api_key.revoked',
  'webhook.ping',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export const EVENT_SCHEMA_VERSION = '1';

/** The event of each state. */
export const EVENT_OF_STATUS: Record<SettlementStatus, EventType> = {
  accepted: 'settlement.accepted',
  compliance_hold: 'settlement.compliance_hold',
  awaiting_funds: 'settlement.awaiting_funds',
  funded: 'settlement.funded',
  paying_out: 'settlement.paying_out',
  needs_review: 'settlement.needs_review',
  settled: 'settlement.settled',
  rejected: 'settlement.rejected',
  expired: 'settlement.expired',
  failed: 'settlement.failed',
  canceled: 'settlement.canceled',
};

/** What an event is about. */
export type ObjectType = 'settlement' | 'certificate' | 'verification' | 'recipient' | 'api_key' | 'webhook';

/** The body that subscribers receive. It is serialised once, when the event is committed. */
export type EventEnvelope = {
  readonly id: string;
  readonly type: EventType;
  readonly timestamp: string;
  readonly schema_version: typeof EVENT_SCHEMA_VERSION;
  /** Counts this object's events from 1. */
  readonly sequence: number;
  /** Only where a test of a subscription was asked for: nothing has happened. */
  readonly test?: true;
  /** The object as a read would have answered at the change, without `timeline` and personal data. */
  readonly data: Readonly<Record<string, unknown>>;
};
