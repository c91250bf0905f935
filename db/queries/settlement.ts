/** Settlements (contract §6). `settlement-change.ts` writes what happens to one after its acceptance. */
import { and, eq, type SQL, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import { environmentName, type RuntimeEnvironment } from '../../domain/runtime.ts';
import { COMMAND_EVENT_IDS } from '../../domain/sandbox/event.ts';
import { OPEN_STATUSES, type Settlement } from '../../domain/settlement/state.ts';
import type { Queryable, Tx } from '../client.ts';
import { columnsOf, jsonColumns } from '../column-list.ts';
import { isSettlementId } from '../id.ts';
import { settlements } from '../schema/settlement.ts';
import { statement } from '../statement.ts';

export type SettlementRow = typeof settlements.$inferSelect;

const owned = (orgId: string, settlementId: string) =>
  and(eq(settlements.orgId, orgId), eq(settlements.settlementId, settlementId));

export const toSettlement = ({
  paymentTokenSealed: _sealed,
  sandboxRequestedMinor: _requested,
  ...row
}: SettlementRow): Settlement => row;

/**
 * Whether a settlement has not ended. The condition of the index `settlements_open`, with its values as literals: the
 * planner uses a partial index only where it can prove the index's condition.
 */
export const isOpenSettlement: SQL = sql.raw(`status IN (${OPEN_STATUSES.map((status) => `'${status}'`).join(', ')})`);

/**
 * Settlements with `entered_at`: when each entered its state, which it does once, on its own clock. The limit keeps the
 * planner from reading all transitions.
 */
export const settlementsWithEntry: SQL = sql`settlements LEFT JOIN LATERAL (
  SELECT t.at AS entered_at FROM settlement_transitions t
  WHERE t.settlement_id = settlements.settlement_id AND t.to_status = settlements.status LIMIT 1) entry ON true`;

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

const SETTLEMENT = jsonColumns<SettlementRow>(columnsOf(settlements), 's');
type LockedRow = { readonly settlement: readonly unknown[] };

const lockStatement = statement<[orgId: string, settlementId: string], LockedRow>(
  'lock_settlement',
  `SELECT ${SETTLEMENT.text} AS settlement FROM settlements s WHERE org_id = $1 AND settlement_id = $2 FOR UPDATE`,
);

/**
 * Locks the row until the transaction ends.
 *
 * @throws DomainError `not_found`, for another organization's settlement as well
 */
export async function lockSettlement(tx: Tx, orgId: string, settlementId: string): Promise<Settlement> {
  const [row] = await lockStatement(tx, orgId, settlementId);
  if (!row) throw new DomainError('not_found');
  return toSettlement(SETTLEMENT.rowOf(row.settlement));
}

const lockNamedStatement = statement<[settlementId: string], LockedRow>(
  'lock_evidence_target',
  `SELECT ${SETTLEMENT.text} AS settlement FROM settlements s WHERE settlement_id = $1 FOR UPDATE`,
);

/**
 * Locks the settlement that a provider event names; undefined for an unknown id. Providers do not know our
 * organizations.
 */
export async function lockEvidenceTarget(tx: Tx, settlementId: string): Promise<Settlement | undefined> {
  if (!isSettlementId(settlementId)) return undefined;
  const [row] = await lockNamedStatement(tx, settlementId);
  return row && toSettlement(SETTLEMENT.rowOf(row.settlement));
}

/**
 * As `lockSettlement`, for an operator, who knows no organization. The local sandbox asks for no token, and one operator
 * suffices there: so neither may reach a settlement of another environment in the same database.
 *
 * @throws DomainError `not_found`
 */
export async function lockOperatedSettlement(
  tx: Tx,
  { runtime }: { readonly runtime: RuntimeEnvironment },
  settlementId: string,
): Promise<Settlement> {
  const settlement = await lockEvidenceTarget(tx, settlementId);
  if (settlement?.environment !== environmentName(runtime)) throw new DomainError('not_found');
  return settlement;
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

/** Moves a locked settlement's own clock forward by `byMs`, which is not negative. */
export async function advanceClock(tx: Tx, settlement: Settlement, byMs: number): Promise<Settlement> {
  const clockOffsetMs = settlement.clockOffsetMs + byMs;
  await tx.update(settlements).set({ clockOffsetMs }).where(owned(settlement.orgId, settlement.settlementId));
  return { ...settlement, clockOffsetMs };
}

const requestCollectionStatement = statement<[settlementId: string, amountMinor: string], never>(
  'request_sandbox_collection',
  `UPDATE settlements SET sandbox_requested_minor = coalesce(sandbox_requested_minor, 0) + $2::bigint
   WHERE settlement_id = $1`,
);

/** Counts what a test helper had the simulator collect for a locked settlement. */
export const addSandboxRequest = async (tx: Tx, settlementId: string, amountMinor: bigint): Promise<void> => {
  await requestCollectionStatement(tx, settlementId, String(amountMinor));
};

const underWayStatement = statement<[settlementId: string, eventIds: string], { readonly minor: string }>(
  'sum_sandbox_requests_under_way',
  // What the released version requested is not counted, and what has arrived of it is.
  `SELECT greatest(0, coalesce(sandbox_requested_minor, 0) - coalesce((
     SELECT sum(amount_minor) FROM evidence e
     WHERE e.settlement_id = s.settlement_id AND e.kind = 'collection_succeeded' AND e.event_id ~ $2
   ), 0)) AS minor
   FROM settlements s WHERE settlement_id = $1`,
);

/** What test helpers had the simulator collect for a locked settlement, and what has not arrived. In minor units. */
export async function sumSandboxRequestsUnderWay(tx: Tx, settlementId: string): Promise<bigint> {
  const [row] = await underWayStatement(tx, settlementId, COMMAND_EVENT_IDS);
  return BigInt(row?.minor ?? 0);
}
