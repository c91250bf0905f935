/**
 * Settlements with their histories, as reads show them. Row, transitions and exceptions come from one statement, so
 * that they are of one moment: a second statement could see a change that the first one did not see.
 */
import { and, desc, eq, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { DomainError } from '../../domain/error.ts';
import type { SettlementException } from '../../domain/evidence.ts';
import type { Page, Paged } from '../../domain/page.ts';
import { type PayeeResource, payeeResource } from '../../domain/payee.ts';
import type { SettlementWithHistory } from '../../domain/resource/settlement.ts';
import type { Settlement, SettlementTransition } from '../../domain/settlement.ts';
import type { Queryable } from '../client.ts';
import { openPayee } from '../payee.ts';
import { evidence } from '../schema/evidence.ts';
import { settlementExceptions, settlements, settlementTransitions } from '../schema/settlement.ts';
import type { Sealer } from '../seal.ts';
import { type List, type PageClauses, readPage } from './page.ts';
import { toSettlement } from './settlement.ts';

/** The sealer opens the frozen payee. */
type ReadDeps = { readonly db: Queryable; readonly sealer: Sealer };

/** @throws DomainError `not_found`, for another organization's settlement as well */
export async function getSettlementWithHistory(
  deps: ReadDeps,
  orgId: string,
  settlementId: string,
): Promise<SettlementWithHistory> {
  const isAsked = and(eq(settlements.orgId, orgId), eq(settlements.settlementId, settlementId));
  const [settlement] = await selectWithHistory(deps, { where: isAsked, limit: 1, offset: 0 });
  if (!settlement) throw new DomainError('not_found');
  return settlement;
}

/** The organization's settlements, newest first. */
export async function listSettlementsWithHistory(
  deps: ReadDeps,
  orgId: string,
  page: Page,
): Promise<Paged<SettlementWithHistory>> {
  const list: List<SettlementWithHistory> = {
    table: settlements,
    where: eq(settlements.orgId, orgId),
    createdAt: settlements.createdAt,
    id: settlements.settlementId,
    cursorOf: ({ createdAt: at, settlementId: id }) => ({ at, id }),
  };
  return await readPage(deps.db, list, page, (clauses) => selectWithHistory(deps, clauses));
}

async function selectWithHistory(
  { db, sealer }: ReadDeps,
  { where, limit, offset }: Omit<PageClauses, 'orderBy'>,
): Promise<SettlementWithHistory[]> {
  // The page is cut before the histories are joined: they are read for the rows of the page alone.
  const chosen = db
    .select()
    .from(settlements)
    .where(where)
    .orderBy(desc(settlements.createdAt), desc(settlements.settlementId))
    .limit(limit)
    .offset(offset)
    .as('chosen');
  const timeline = timelineOf(db, chosen.settlementId);
  const records = recordsOf(db, chosen.settlementId);
  const rows = await db
    .select()
    .from(chosen)
    .crossJoinLateral(timeline)
    .crossJoinLateral(records)
    .orderBy(desc(chosen.createdAt), desc(chosen.settlementId));
  return rows.map((row) => ({
    ...toSettlement(row.chosen),
    payee: shownPayee(sealer, row.chosen),
    transitions: row.timeline.transitions.map(({ at, ...transition }) => ({ ...transition, at: new Date(at) })),
    exceptions: row.records.exceptions.map(({ at, amountMinor, ...exception }) => ({
      ...exception,
      at: new Date(at),
      amountMinor: amountMinor === null ? null : BigInt(amountMinor),
    })),
  }));
}

function shownPayee(
  sealer: Sealer,
  settlement: Pick<Settlement, 'settlementId' | 'payeeSealed'>,
): PayeeResource | null {
  const payee = openPayee(sealer, settlement);
  return payee && payeeResource(payee);
}

/** As JSON holds it: moments and bigints are text. */
type Aggregated<Row extends { readonly at: Date }> = {
  readonly [Key in keyof Row]: Stringified<Row[Key]>;
};
type Stringified<Value> = Value extends Date | bigint ? string : Value;

const timelineOf = (db: Queryable, settlementId: PgColumn) =>
  db
    .select({
      transitions: sql<Aggregated<SettlementTransition>[]>`coalesce(json_agg(json_build_object(
        'sequence', ${settlementTransitions.sequence},
        'from', ${settlementTransitions.from},
        'to', ${settlementTransitions.to},
        'at', ${settlementTransitions.at},
        'reason', ${settlementTransitions.reason},
        'evidenceId', ${settlementTransitions.evidenceId}
      ) ORDER BY ${settlementTransitions.sequence}), '[]')`.as('transitions'),
    })
    .from(settlementTransitions)
    .where(eq(settlementTransitions.settlementId, settlementId))
    .as('timeline');

const recordsOf = (db: Queryable, settlementId: PgColumn) =>
  db
    .select({
      exceptions: sql<Aggregated<SettlementException>[]>`coalesce(json_agg(json_build_object(
        'type', ${settlementExceptions.type},
        'at', ${settlementExceptions.at},
        'evidenceId', ${settlementExceptions.evidenceId},
        'amountMinor', ${evidence.amountMinor}::text,
        'currency', ${evidence.currency},
        'reason', ${evidence.failure}->>'code'
      ) ORDER BY ${settlementExceptions.exceptionId}), '[]')`.as('exceptions'),
    })
    .from(settlementExceptions)
    .leftJoin(evidence, eq(evidence.evidenceId, settlementExceptions.evidenceId))
    .where(eq(settlementExceptions.settlementId, settlementId))
    .as('records');
