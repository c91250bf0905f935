/** Rows that the reports of several kinds of objects have. */
import type { listDeliveriesTo } from '../db/queries/operator/delivery.ts';
import type { listAuditEntries, listEvents, listOutboxRows } from '../db/queries/operator/object.ts';
import type { listSettlementsOf } from '../db/queries/operator/settlement.ts';
import { money, type Row } from './report.ts';

type RowOf<List extends (...given: never[]) => PromiseLike<readonly unknown[]>> = Awaited<ReturnType<List>>[number];

/** A row is dispatched within a second. */
const LATE_MS = 60_000;

export const isLate = ({ ageMs }: Pick<RowOf<typeof listOutboxRows>, 'ageMs'>): boolean => ageMs > LATE_MS;

export const outboxRow = ({
  kind,
  signal,
  attempts,
  lastError,
  createdAt,
}: Omit<RowOf<typeof listOutboxRows>, 'ageMs'>): Row => ({
  kind,
  signal,
  since: createdAt,
  attempts,
  last_error: lastError,
});

export const eventRow = ({ type, createdAt, eventId }: RowOf<typeof listEvents>): Row => ({
  type,
  at: createdAt,
  event: eventId,
});

export const deliveryRow = ({
  deliveryId,
  webhookId,
  eventType,
  status,
  nextAttemptAt,
}: RowOf<typeof listDeliveriesTo>): Row => ({
  event: eventType,
  status,
  next_attempt_at: nextAttemptAt,
  delivery: deliveryId,
  webhook: webhookId,
});

export const auditRow = ({ at, action, operator, note }: RowOf<typeof listAuditEntries>): Row => ({
  at,
  action,
  operator,
  note,
});

export const settlementRow = ({
  settlementId,
  status,
  amountMinor,
  sourceCurrency,
  updatedAt,
}: RowOf<typeof listSettlementsOf>): Row => ({
  settlement: settlementId,
  status,
  amount: money(amountMinor, sourceCurrency),
  changed_at: updatedAt,
});
