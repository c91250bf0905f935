/**
 * Messages to Temporal, in the service's own words. Each message names one workflow by its object, starts it if it
 * does not run, and may signal it. Only `process/workflow-start.ts` knows what a kind means in Temporal.
 */
import type { PaymentMethod } from './payment-method.ts';
import type { SandboxCommand, SandboxEvent } from './sandbox/event.ts';
import type { Settlement } from './settlement/state.ts';
import type { Verification } from './verification.ts';
import type { Webhook } from './webhook.ts';

/** Facts, in the past tense. A signal carries no data: the workflow reads what was committed. */
type OutboxSignals = {
  readonly settlement: 'evidenceRecorded' | 'canceled' | 'clockAdvanced' | 'verificationDecided' | 'redispatched';
  readonly verification: 'verificationDecided' | 'redispatched';
  readonly webhook_subscription: 'retriesAdded';
  readonly webhook_lane: never;
  readonly otp: never;
  readonly sandbox_collection: never;
  readonly sandbox_event: never;
  readonly sandbox_verification: never;
};

type VerificationContext = Readonly<Pick<Verification, 'orgId' | 'verificationType' | 'provider'>>;

/**
 * What starting a workflow needs in addition to its object's id. It becomes search attributes, summaries and workflow
 * input, which operators can read: ids, enums and money only. Stored as JSON, so a number is written as a string.
 */
type OutboxContexts = {
  readonly settlement: Readonly<Pick<Settlement, 'orgId' | 'corridor' | 'paymentMethod'>>;
  readonly verification: VerificationContext;
  readonly webhook_subscription: { readonly orgId: string };
  /** A lane sends for all organizations. */
  readonly webhook_lane: { readonly orgId?: never };
  /** A challenge belongs to no organization. */
  readonly otp: { readonly orgId?: never };
  readonly sandbox_collection: { readonly orgId: string; readonly paymentMethod: PaymentMethod };
  readonly sandbox_event: {
    readonly orgId: string;
    readonly settlementId: string;
    readonly event: SandboxEvent;
    readonly amountMinor: string;
  };
  readonly sandbox_verification: VerificationContext;
};

export const OUTBOX_KINDS = [
  'settlement',
  'sandbox_collection',
  'sandbox_event',
  'verification',
  'sandbox_verification',
  'webhook_subscription',
  'webhook_lane',
  'otp',
] as const satisfies readonly (keyof OutboxContexts)[];
export type OutboxKind = (typeof OUTBOX_KINDS)[number];

/**
 * The kinds whose open objects must have a run: a sweep starts a lost one again. A subscription is open while a
 * retry of it is due or a replay of it runs; a lane always is.
 */
export const SWEPT_KINDS = [
  'settlement',
  'verification',
  'webhook_subscription',
  'webhook_lane',
] as const satisfies readonly OutboxKind[];
export type SweptKind = (typeof SWEPT_KINDS)[number];

export type OutboxSignal = OutboxSignals[OutboxKind];

/** A message of one of these kinds. `signal` is null when the workflow has only to run. */
export type OutboxMessage<Kinds extends OutboxKind = OutboxKind> = {
  [Kind in Kinds]: {
    readonly kind: Kind;
    /** The object that the kind names: a settlement, a subscription, a challenge, and so on. */
    readonly objectId: string;
    readonly signal: OutboxSignals[Kind] | null;
    readonly context: OutboxContexts[Kind];
    readonly requestId: string;
  };
}[Kinds];

export const settlementMessage = (
  settlement: Pick<Settlement, 'settlementId' | 'orgId' | 'corridor' | 'paymentMethod'>,
  signal: OutboxSignals['settlement'] | null,
  requestId: string,
): OutboxMessage<'settlement'> => ({
  kind: 'settlement',
  objectId: settlement.settlementId,
  signal,
  context: { orgId: settlement.orgId, corridor: settlement.corridor, paymentMethod: settlement.paymentMethod },
  requestId,
});

type VerificationKey = Pick<Verification, 'verificationId' | 'orgId' | 'verificationType' | 'provider'>;

const verificationContext = (verification: VerificationKey): VerificationContext => ({
  orgId: verification.orgId,
  verificationType: verification.verificationType,
  provider: verification.provider,
});

export const verificationMessage = (
  verification: VerificationKey,
  signal: OutboxSignals['verification'] | null,
  requestId: string,
): OutboxMessage<'verification'> => ({
  kind: 'verification',
  objectId: verification.verificationId,
  signal,
  context: verificationContext(verification),
  requestId,
});

/** Wakes the subscription's run: retries of it were added. Without a run, it starts one. */
export const subscriptionMessage = (
  { webhookId, orgId }: Pick<Webhook, 'webhookId' | 'orgId'>,
  requestId: string,
): OutboxMessage<'webhook_subscription'> => ({
  kind: 'webhook_subscription',
  objectId: webhookId,
  signal: 'retriesAdded',
  context: { orgId },
  requestId,
});

/** The message that starts a lane, unless it runs. @param lane its number, from 0 */
export const laneMessage = (lane: number, requestId: string): OutboxMessage<'webhook_lane'> => ({
  kind: 'webhook_lane',
  objectId: String(lane),
  signal: null,
  context: {},
  requestId,
});

/** The settlement that a message is about; undefined for the other kinds. */
export function settlementOfMessage(message: OutboxMessage): string | undefined {
  if (message.kind === 'settlement' || message.kind === 'sandbox_collection') return message.objectId;
  return message.kind === 'sandbox_event' ? message.context.settlementId : undefined;
}

/** The message that sends the code of this challenge. */
export const otpMessage = (challengeId: string, requestId: string): OutboxMessage<'otp'> => ({
  kind: 'otp',
  objectId: challengeId,
  signal: null,
  context: {},
  requestId,
});

/** The message that lets the simulated provider collect for this settlement. */
export const sandboxCollectionMessage = (
  settlement: Pick<Settlement, 'settlementId' | 'orgId' | 'paymentMethod' | 'requestId'>,
): OutboxMessage<'sandbox_collection'> => ({
  kind: 'sandbox_collection',
  objectId: settlement.settlementId,
  signal: null,
  context: { orgId: settlement.orgId, paymentMethod: settlement.paymentMethod },
  requestId: settlement.requestId,
});

/** The message that lets the simulated provider send the event that a test helper requested. */
export const sandboxEventMessage = (
  command: SandboxCommand & { readonly commandId: string },
  settlement: Pick<Settlement, 'settlementId' | 'orgId'>,
  requestId: string,
): OutboxMessage<'sandbox_event'> => ({
  kind: 'sandbox_event',
  objectId: command.commandId,
  signal: null,
  context: {
    orgId: settlement.orgId,
    settlementId: settlement.settlementId,
    event: command.event,
    amountMinor: String(command.amountMinor),
  },
  requestId,
});

/** The message that lets the simulated identity provider review this verification's applicant. */
export const sandboxVerificationMessage = (
  verification: VerificationKey,
  requestId: string,
): OutboxMessage<'sandbox_verification'> => ({
  kind: 'sandbox_verification',
  objectId: verification.verificationId,
  signal: null,
  context: verificationContext(verification),
  requestId,
});
