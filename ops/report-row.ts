/** Rows that the reports of several kinds of objects have. */
import type { listDeliveriesTo } from '../db/queries/operator/delivery.ts';
import type { listAuditEntries, listEvents, listOutboxRows } from '../db/queries/operator/object.ts';
import type { listKeysOf } from '../db/queries/operator/organization.ts';
import type { listSettlementsOf } from '../db/queries/operator/settlement.ts';
import type { listWebhooksOf } from '../db/queries/operator/webhook.ts';
import { apiKeyStatus } from '../domain/api-key.ts';
import { maskUrl } from '../domain/mask.ts';
import { money, type Row } from './report.ts';

type RowOf<List extends (...given: never[]) => PromiseLike<readonly unknown[]>> = Awaited<ReturnType<List>>[number];

export type OutboxRow = RowOf<typeof listOutboxRows>;

export const outboxRow = (row: Omit<OutboxRow, 'ageMs'>): Row => ({
  kind: row.kind,
  signal: row.signal,
  since: row.createdAt,
  attempts: row.attempts,
  last_error: row.lastError,
});

export const eventRow = ({ type, createdAt, eventId }: RowOf<typeof listEvents>): Row => ({
  type,
  at: createdAt,
  event: eventId,
});

export const deliveryRow = (row: RowOf<typeof listDeliveriesTo>): Row => ({
  event: row.eventType,
  status: row.status,
  next_attempt_at: row.nextAttemptAt,
  delivery: row.deliveryId,
  webhook: row.webhookId,
});

export const auditRow = ({ at, action, operator, note }: RowOf<typeof listAuditEntries>): Row => ({
  at,
  action,
  operator,
  note,
});

export const settlementRow = (row: RowOf<typeof listSettlementsOf>): Row => ({
  settlement: row.settlementId,
  status: row.status,
  amount: money(row.amountMinor, row.sourceCurrency),
  changed_at: row.updatedAt,
});

export const keyRow = (key: Omit<RowOf<typeof listKeysOf>, 'createdAt'>, now: Date): Row => ({
  key: key.keyId,
  name: key.name,
  scope: key.scope,
  status: apiKeyStatus(key, now),
  prefix: key.prefix,
  last_used_at: key.lastUsedAt,
  last_used_from: key.lastUsedFrom,
  allowed_cidrs: key.allowedCidrs?.join(' ') ?? null,
  expires_at: key.expiresAt,
});

export const webhookRow = (webhook: RowOf<typeof listWebhooksOf>): Row => ({
  webhook: webhook.webhookId,
  status: webhook.deletedAt === null ? webhook.status : 'deleted',
  disabled_reason: webhook.disabledReason,
  failing_since: webhook.failingSince,
  url: maskUrl(webhook.url),
});
