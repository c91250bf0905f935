/**
 * Settlements (contract §6). Every change of state goes through `moveSettlement`: one transition writes the state row,
 * the history row, the postings and the event in one transaction. The table of transitions decides whether it is
 * allowed.
 */
import { and, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import { EVENT_OF_STATUS, type EventType } from '../../domain/event.ts';
import type { SettlementException } from '../../domain/evidence.ts';
import { type Posting, transitionPostings } from '../../domain/posting.ts';
import { exceptionResource, settlementEventResource } from '../../domain/resource/settlement.ts';
import {
  canMove,
  type Failure,
  type Settlement,
  type SettlementStatus,
  waitWindowMs,
} from '../../domain/settlement.ts';
import type { Queryable, Tx } from '../client.ts';
import { isSettlementId, newId } from '../id.ts';
import { postings, settlementExceptions, settlements, settlementTransitions } from '../schema/settlement.ts';
import { type NewEvent, recordEvent, type Stamp } from './event.ts';

type SettlementRow = typeof settlements.$inferSelect;

const owned = (orgId: string, settlementId: string) =>
  and(eq(settlements.orgId, orgId), eq(settlements.settlementId, settlementId));

export const toSettlement = ({ paymentTokenSealed: _sealed, ...row }: SettlementRow): Settlement => row;

/** What a sealed payment token is bound to. It does not open for another settlement. */
export const paymentTokenBinding = (settlementId: string): string => `settlement.payment_token:${settlementId}`;

/** The organization's settlement with this id. */
export async function findSettlement(
  db: Queryable,
  orgId: string,
  settlementId: string,
): Promise<Settlement | undefined> {
  const [row] = await db.select().from(settlements).where(owned(orgId, settlementId)).limit(1);
  return row && toSettlement(row);
}

/**
 * Locks the row until the transaction ends.
 *
 * @throws DomainError `not_found`, for another organization's settlement as well
 */
export async function lockSettlement(tx: Tx, orgId: string, settlementId: string): Promise<Settlement> {
  const [row] = await tx.select().from(settlements).where(owned(orgId, settlementId)).for('update');
  if (!row) throw new DomainError('not_found');
  return toSettlement(row);
}

/** The organization of a settlement that a provider event names: providers do not know our organizations. */
export async function findSettlementOwner(db: Queryable, settlementId: string): Promise<string | undefined> {
  if (!isSettlementId(settlementId)) return undefined;
  const [row] = await db
    .select({ orgId: settlements.orgId })
    .from(settlements)
    .where(eq(settlements.settlementId, settlementId))
    .limit(1);
  return row?.orgId;
}

/** As `findSettlementOwner`, for operators. @throws DomainError `not_found` */
export async function getSettlementOwner(db: Queryable, settlementId: string): Promise<string> {
  const orgId = await findSettlementOwner(db, settlementId);
  if (orgId === undefined) throw new DomainError('not_found');
  return orgId;
}

/**
 * The payer's sealed card or account token, for the provider's adapter only; null where the payment method has none.
 *
 * @throws DomainError `not_found`
 */
export async function getPaymentToken(db: Queryable, orgId: string, settlementId: string): Promise<string | null> {
  const [row] = await db
    .select({ sealed: settlements.paymentTokenSealed })
    .from(settlements)
    .where(owned(orgId, settlementId))
    .limit(1);
  if (!row) throw new DomainError('not_found');
  return row.sealed;
}

export type Move = {
  readonly to: SettlementStatus;
  /** On the settlement's own clock. */
  readonly at: Date;
  readonly reason: string | null;
  readonly evidenceId?: string | null;
  readonly failure?: Failure | null;
  readonly requestId?: string;
};

/**
 * Moves a locked settlement to another state.
 *
 * @returns the settlement in its new state
 * @throws DomainError `state_conflict` when the table has no such transition
 */
export async function moveSettlement(tx: Tx, settlement: Settlement, move: Move): Promise<Settlement> {
  if (!canMove(settlement.status, move.to))
    throw new DomainError('state_conflict', { current_state: settlement.status });
  const windowMs = waitWindowMs(move.to, settlement.paymentMethod);
  const moved: Settlement = {
    ...settlement,
    status: move.to,
    version: settlement.version + 1,
    failure: move.failure ?? settlement.failure,
    expiresAt: windowMs === undefined ? null : new Date(move.at.getTime() + windowMs),
    updatedAt: move.at,
  };
  const { status, version, failure, expiresAt, updatedAt } = moved;
  const updated = await tx
    .update(settlements)
    .set({ status, version, failure, expiresAt, updatedAt })
    .where(and(owned(settlement.orgId, settlement.settlementId), eq(settlements.version, settlement.version)))
    .returning({ settlementId: settlements.settlementId });
  if (updated.length !== 1) throw new Error(`settlement ${settlement.settlementId} was moved without its lock`);
  await tx.insert(settlementTransitions).values({
    settlementId: settlement.settlementId,
    sequence: version,
    from: settlement.status,
    to: move.to,
    at: move.at,
    reason: move.reason,
    evidenceId: move.evidenceId ?? null,
  });
  await insertPostings(tx, settlement.settlementId, {
    step: move.to,
    postings: transitionPostings(settlement, settlement.status, move.to),
    at: move.at,
  });
  await recordEvent(
    tx,
    settlementEvent(moved, EVENT_OF_STATUS[move.to], move.at, move.requestId ?? settlement.requestId),
  );
  return moved;
}

/** Adds money that came in, with its event; the caller books it. */
export async function addReceived(
  tx: Tx,
  settlement: Settlement,
  amountMinor: bigint,
  { at, requestId }: Stamp,
): Promise<Settlement> {
  const change = { amountReceivedMinor: settlement.amountReceivedMinor + amountMinor, updatedAt: at };
  await tx.update(settlements).set(change).where(owned(settlement.orgId, settlement.settlementId));
  const received = { ...settlement, ...change };
  await recordEvent(tx, settlementEvent(received, 'settlement.funds_received', at, requestId));
  return received;
}

/** Stores when a locked settlement was last changed. */
export async function touchSettlement(tx: Tx, settlement: Settlement, at: Date): Promise<Settlement> {
  await tx.update(settlements).set({ updatedAt: at }).where(owned(settlement.orgId, settlement.settlementId));
  return { ...settlement, updatedAt: at };
}

/** Stores the id of the certificate of a settlement that has just settled. */
export async function setCertificate(tx: Tx, settlement: Settlement, certificateId: string): Promise<Settlement> {
  await tx.update(settlements).set({ certificateId }).where(owned(settlement.orgId, settlement.settlementId));
  return { ...settlement, certificateId };
}

/** Moves a locked settlement's own clock forward by `byMs`, which is not negative. */
export async function advanceClock(tx: Tx, settlement: Settlement, byMs: number): Promise<Settlement> {
  const clockOffsetMs = settlement.clockOffsetMs + byMs;
  await tx.update(settlements).set({ clockOffsetMs }).where(owned(settlement.orgId, settlement.settlementId));
  return { ...settlement, clockOffsetMs };
}

/** The debits and credits of one step. */
export type PostingSet = { readonly step: string; readonly postings: readonly Posting[]; readonly at: Date };

/** Books one set. The primary key refuses a second set for the same step. */
export async function insertPostings(tx: Tx, settlementId: string, { step, at, ...set }: PostingSet): Promise<void> {
  const rows = set.postings.map((posting, line) => ({ settlementId, step, line, ...posting, at }));
  if (rows.length > 0) await tx.insert(postings).values(rows);
}

/** Records an exception, with its event. It changes no state. */
export async function recordException(
  tx: Tx,
  settlement: Settlement,
  { requestId, ...exception }: SettlementException & Stamp,
): Promise<void> {
  const { type, at, evidenceId } = exception;
  const { settlementId } = settlement;
  await tx.insert(settlementExceptions).values({ exceptionId: newId(), settlementId, type, at, evidenceId });
  const event = settlementEvent(settlement, 'settlement.exception', at, requestId);
  await recordEvent(tx, { ...event, data: { ...event.data, exception: exceptionResource(exception) } });
}

/** The event of an acceptance, the settlement's first one. */
export const acceptedEvent = (accepted: Settlement): NewEvent =>
  settlementEvent(accepted, EVENT_OF_STATUS[accepted.status], accepted.createdAt, accepted.requestId);

function settlementEvent(settlement: Settlement, type: EventType, at: Date, requestId: string) {
  return {
    orgId: settlement.orgId,
    objectType: 'settlement' as const,
    objectId: settlement.settlementId,
    type,
    data: settlementEventResource(settlement),
    at,
    requestId,
  };
}
