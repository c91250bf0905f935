/** The client of the settlement service. See README.md. */
import { verifyCertificate } from './certificate.ts';
import { verifyWebhook } from './webhook.ts';

export type { Certificate, VerifiedCertificate } from './certificate.ts';
export { isCorridor, isCurrency, isPaymentMethod, isPayoutRail } from './choice.ts';
export { type Client, type ClientOptions, createClient } from './client.ts';
export { type ConsumerClient, type ConsumerClientOptions, createConsumerClient, type Transfer } from './consumer.ts';
export {
  ApiError,
  ConnectionFailed,
  ConnectTimeout,
  isApiError,
  type Problem,
  type ProblemCode,
  SettlementError,
  UnexpectedAnswer,
  ValidationFailed,
  WaitTimeout,
  WebhookVerificationError,
} from './error.ts';
export type { components, operations, paths } from './generated/openapi.ts';
export type { Intent } from './intent.ts';
export type { List, Page } from './list.ts';
export { RETRY_AFTER_MAX_MS, RETRY_LIMITS } from './retry.ts';
export type { Settlement } from './settlement.ts';
export type { Retry } from './transport.ts';
export { TERMINAL_STATUSES } from './wait.ts';
export type { WebhookEvent } from './webhook.ts';

/** For the receiver of events. */
export const webhooks = { verify: verifyWebhook };
/** For who checks a certificate, without the service. */
export const certificates = { verify: verifyCertificate };
