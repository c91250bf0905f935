/** The events of the service, told apart by `type` (contract §11). */
import type { components } from './generated/openapi.ts';

export type WebhookEvent = components['schemas']['WebhookEvent'];
