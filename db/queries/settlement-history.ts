/**
 * Settlements with their histories, as reads show them. Row, transitions and exceptions come from one statement, so
 * that they are of one moment: a second statement could see a change that the first one did not see.
 */
import { desc, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { SettlementException } from '../../domain/evidence.ts';
import type { Page, Paged } from '../../domain/page.ts';
import { payeeResource } from '../../domain/payee.ts';
import type { SettlementWithHistory } from '../../domain/resource/settlement.ts';
import type { Settlement, SettlementTransition } from '../../domain/settlement.ts';
import type { Aggregated } from '../aggregated.ts';
import type { Queryable } from '../client.ts';
import { columnsOf, jsonColumns } from '../column-list.ts';
import { openPayee } from '../payee.ts';
import { settlements } from '../schema/settlement.ts';
import type { Sealer } from '../seal.ts';
import { statement } from '../statement.ts';
import { type LongLists, listKey } from './long-list.ts';
import { type List, type PageClauses, readPage } from './page.ts';
import { onlyGrows, type SettlementSelection, sourceOf } from './settlement-selection.ts';

/** The sealer opens the frozen payee. */
type ReadDeps = { readonly db: Queryable; readonly sealer: Sealer };
type ListDeps = ReadDeps & { readonly longLists: LongLists };

const SETTLEMENT = jsonColumns<Settlement>(
  columnsOf(settlements).filter(({ key }) => key !== 'paymentTokenSealed'),
  's',
);

/** A settlement `s` with its history. */
const SELECTED = `SELECT ${SETTLEMENT.text} AS settlement, (
    SELECT coalesce(json_agg(json_build_object('sequence', t.sequence, 'from', t.from_status, 'to', t.to_status,
      'at', t.at, 'reason', t.reason, 'evidenceId', t.evidence_id) ORDER BY t.sequence), '[]')
    FROM settlement_transitions t WHERE t.settlement_id = s.settlement_id
  ) AS transitions, (
    SELECT coalesce(json_agg(json_build_object('type', x.type, 'at', x.at, 'evidenceId', x.evidence_id,
      'amountMinor', e.amount_minor::text, 'currency', e.currency, 'reason', e.failure->>'code')
      ORDER BY x.exception_id), '[]')
    FROM settlement_exceptions x LEFT JOIN evidence e ON e.evidence_id = x.evidence_id
    WHERE x.settlement_id = s.settlement_id
  ) AS exceptions`;

type SelectedRow = {
  readonly settlement: readonly unknown[];
  readonly transitions: readonly Aggregated<SettlementTransition>[];
  readonly exceptions: readonly Aggregated<SettlementException>[];
};

const readSettlement = statement<[orgId: string, settlementId: string], SelectedRow>(
  'read_settlement',
  `${SELECTED} FROM settlements s WHERE s.org_id = $1 AND s.settlement_id = $2`,
);

/** @throws DomainError `not_found`, for another organization's settlement as well */
export async function getSettlementWithHistory(
  deps: ReadDeps,
  orgId: string,
  settlementId: string,
): Promise<SettlementWithHistory> {
  const [row] = await readSettlement(deps.db, orgId, settlementId);
  if (!row) throw new DomainError('not_found');
  return withHistory(deps.sealer, row);
}

/** A page of the organization's settlements, newest first. */
export async function listSettlementsWithHistory(
  deps: ListDeps,
  orgId: string,
  { selection, page }: { readonly selection: SettlementSelection; readonly page: Page },
): Promise<Paged<SettlementWithHistory>> {
  const list: List<SettlementWithHistory> = {
    ...sourceOf(deps.db, orgId, selection),
    cursorOf: ({ createdAt: at, settlementId: id }) => ({ at, id }),
    length: onlyGrows(selection) ? { longLists: deps.longLists, key: listKey(orgId, selection) } : undefined,
  };
  return await readPage(deps.db, list, page, (clauses) => selectWithHistory(deps, clauses));
}

async function selectWithHistory(
  { db, sealer }: ReadDeps,
  { where, limit, offset }: Omit<PageClauses, 'orderBy'>,
): Promise<SettlementWithHistory[]> {
  // The page is cut before the histories are read: they are read for the rows of the page alone.
  const chosen = db
    .select()
    .from(settlements)
    .where(where)
    .orderBy(desc(settlements.createdAt), desc(settlements.settlementId))
    .limit(limit)
    .offset(offset);
  const { rows } = await db.execute<SelectedRow>(
    sql`${sql.raw(SELECTED)} FROM (${chosen}) s ORDER BY s.created_at DESC, s.settlement_id DESC`,
  );
  return rows.map((row) => withHistory(sealer, row));
}

function withHistory(sealer: Sealer, row: SelectedRow): SettlementWithHistory {
  const settlement = SETTLEMENT.rowOf(row.settlement);
  const payee = openPayee(sealer, settlement);
  return {
    ...settlement,
    payee: payee && payeeResource(payee),
    transitions: row.transitions.map(({ at, ...transition }) => ({ ...transition, at: new Date(at) })),
    exceptions: row.exceptions.map(({ at, amountMinor, ...exception }) => ({
      ...exception,
      at: new Date(at),
      amountMinor: amountMinor === null ? null : BigInt(amountMinor),
    })),
  };
}
