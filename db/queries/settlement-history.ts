/**
 * Settlements with their histories, as reads show them. Row, transitions and exceptions come from one statement, so
 * that they are of one moment: a second statement could see a change that the first one did not see.
 */
import { desc, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import { COUNTED_MAX, PAGE, type Page, type Paged } from '../../domain/page.ts';
import { erasedPayeeResource, payeeResource } from '../../domain/payee.ts';
import type { SettlementWithHistory } from '../../domain/resource/settlement.ts';
import type { Settlement, SettlementTransition } from '../../domain/settlement/state.ts';
import { type Aggregated, jsonListSql } from '../aggregated.ts';
import { columnsOf, jsonColumns } from '../column-list.ts';
import { type DataKey, dataKeySql, dataKeysOf, type KeyOwner, type ReadDeps } from '../data-key.ts';
import { openPayee } from '../payee.ts';
import { settlements } from '../schema/settlement.ts';
import { statement } from '../statement.ts';
import { type LongLists, listKey } from './long-list.ts';
import {
  composePage,
  type KnownLength,
  type List,
  type PageClauses,
  type RowsRead,
  readPage,
  readRows,
} from './page.ts';
import { type ExceptionRows, exceptionsOf, exceptionsSql } from './settlement-exception.ts';
import { type SettlementSelection, sourceOf, stayingOf } from './settlement-selection.ts';

type ListDeps = ReadDeps & { readonly longLists: LongLists };

const SETTLEMENT = jsonColumns<Settlement>(
  columnsOf(settlements).filter(({ key }) => key !== 'paymentTokenSealed' && key !== 'sandboxRequestedMinor'),
  's',
);

/** The transitions of a settlement as a JSON array. @param settlementId the expression that holds it */
export const transitionsSql = (settlementId: string): string =>
  jsonListSql(`
    SELECT json_build_object('sequence', t.sequence, 'from', t.from_status, 'to', t.to_status, 'at', t.at,
      'reason', t.reason, 'evidenceId', t.evidence_id)
    FROM settlement_transitions t WHERE t.settlement_id = ${settlementId} ORDER BY t.sequence`);

export const transitionsOf = (transitions: readonly Aggregated<SettlementTransition>[]): SettlementTransition[] =>
  transitions.map((transition) => ({ ...transition, at: new Date(transition.at) }));

/** A settlement `s` with its history. */
const SELECTED = `SELECT ${SETTLEMENT.text} AS settlement, ${transitionsSql('s.settlement_id')} AS transitions,
  ${exceptionsSql('s.settlement_id')} AS exceptions, ${dataKeySql('s.recipient_id')} AS data_key_sealed`;

type SelectedRow = ExceptionRows & {
  readonly settlement: readonly unknown[];
  readonly data_key_sealed: string | null;
  readonly transitions: readonly Aggregated<SettlementTransition>[];
};

const settlementStatement = statement<[orgId: string, settlementId: string], SelectedRow>(
  'read_settlement',
  `${SELECTED} FROM settlements s WHERE s.org_id = $1 AND s.settlement_id = $2`,
);

/** @throws DomainError `not_found`, for another organization's settlement as well */
export async function getSettlementWithHistory(
  deps: ReadDeps,
  orgId: string,
  settlementId: string,
): Promise<SettlementWithHistory> {
  const [row] = await settlementStatement(deps.db, orgId, settlementId);
  if (!row) throw new DomainError('not_found');
  return withHistory(dataKeysOf(deps.sealer))(row);
}

/**
 * One row more than the longest page is the most that is read, so that PostgreSQL's plan is the same for every limit:
 * by the index, newest first.
 */
const NEWEST_FIRST = `ORDER BY created_at DESC, settlement_id DESC LIMIT ${PAGE.limitMax + 1}`;

/**
 * With each row, how many the organization has, up to one more than `COUNTED_MAX`; null unless they are to be counted.
 * The oldest are counted first: PostgreSQL knows of most old rows that everybody sees them.
 */
const SELECTED_AND_COUNTED = `${SELECTED}, CASE WHEN $3 THEN (SELECT count(*)::int AS matches FROM (
    SELECT FROM settlements WHERE org_id = $1 ORDER BY created_at, settlement_id LIMIT ${COUNTED_MAX + 1}
  ) AS counted) END AS matches`;

type CountedRow = SelectedRow & { readonly matches: number | null };

const newestStatement = statement<[orgId: string, limit: number, isCounted: boolean], CountedRow>(
  'read_newest_settlements',
  `${SELECTED_AND_COUNTED} FROM (SELECT * FROM settlements WHERE org_id = $1 ${NEWEST_FIRST}) s
  ORDER BY s.created_at DESC, s.settlement_id DESC LIMIT $2`,
);

type OlderPage = [orgId: string, limit: number, isCounted: boolean, at: string, settlementId: string];

const olderStatement = statement<OlderPage, CountedRow>(
  'read_older_settlements',
  `${SELECTED_AND_COUNTED} FROM (
    SELECT * FROM settlements WHERE org_id = $1 AND (created_at, settlement_id) < ($4::timestamptz, $5) ${NEWEST_FIRST}
  ) s ORDER BY s.created_at DESC, s.settlement_id DESC LIMIT $2`,
);

/** A page of the organization's settlements, newest first. */
export async function listSettlementsWithHistory(
  deps: ListDeps,
  orgId: string,
  { selection, page }: { readonly selection: SettlementSelection; readonly page: Page },
): Promise<Paged<SettlementWithHistory>> {
  const list: Pick<List<SettlementWithHistory>, 'cursorOf' | 'length'> = {
    cursorOf: ({ createdAt: at, settlementId: id }) => ({ at, id }),
    length: lengthOf(deps, orgId, selection),
  };
  // The list that is read most has statements that are prepared; any other is built from its filters.
  if (page.offset === 0 && Object.values(selection).every((filter) => filter === undefined))
    return await composePage(list, page, { read: (isCounted) => selectAny(deps, orgId, { page, isCounted }) });
  const filtered = { ...sourceOf(deps.db, orgId, selection), ...list };
  return await readPage(deps.db, filtered, page, (clauses) => selectWithHistory(deps, clauses));
}

/** The most rows that one statement of an export reads. */
const EXPORT_STEP = PAGE.limitMax;

/**
 * Up to `limit` of the selected settlements, newest first, by as many statements as that takes. A settlement that is
 * added meanwhile is not among them. They are not counted.
 *
 * @param options `betweenSteps` is awaited before each statement but the first
 */
export async function exportSettlements(
  deps: ReadDeps,
  orgId: string,
  options: {
    readonly selection: SettlementSelection;
    readonly page: Page;
    readonly betweenSteps?: () => Promise<void>;
  },
): Promise<Paged<SettlementWithHistory>> {
  const { selection, page, betweenSteps } = options;
  const list: List<SettlementWithHistory> = {
    ...sourceOf(deps.db, orgId, selection),
    cursorOf: ({ createdAt: at, settlementId: id }) => ({ at, id }),
  };
  const items: SettlementWithHistory[] = [];
  let step: Page = page;
  for (;;) {
    const limit = Math.min(EXPORT_STEP, page.limit - items.length);
    const read = await readRows(list, { ...step, limit }, (clauses) => selectWithHistory(deps, clauses));
    items.push(...read.items);
    if (read.next === null || items.length >= page.limit) return { items, total: null, next: read.next };
    step = { limit, offset: 0, after: read.next };
    await betweenSteps?.();
  }
}

function lengthOf({ db, longLists }: ListDeps, orgId: string, selection: SettlementSelection): KnownLength | undefined {
  const staying = stayingOf(selection);
  if (!staying) return undefined;
  const length = { longLists, key: listKey(orgId, staying) };
  if (staying === selection) return length;
  const source = sourceOf(db, orgId, staying);
  return { ...length, staying: source.idsFrom ?? source };
}

/** One row more than the page has, to see the next. A statement reads at most `PAGE.limitMax + 1`; the first one counts. */
async function selectAny(
  { db, sealer }: ReadDeps,
  orgId: string,
  { page: { limit, after }, isCounted }: { readonly page: Page; readonly isCounted: boolean },
): Promise<RowsRead<SettlementWithHistory>> {
  const shown = withHistory(dataKeysOf(sealer));
  const found: SettlementWithHistory[] = [];
  let matches: number | null = null;
  let from = after;
  for (;;) {
    const wanted = Math.min(limit - found.length, PAGE.limitMax) + 1;
    const counts = isCounted && matches === null;
    const rows: readonly CountedRow[] = from
      ? await olderStatement(db, orgId, wanted, counts, from.at.toISOString(), from.id)
      : await newestStatement(db, orgId, wanted, counts);
    matches ??= rows[0]?.matches ?? null;
    found.push(...rows.map(shown));
    const last = found.at(-1);
    if (rows.length < wanted || found.length > limit || last === undefined) break;
    from = { at: last.createdAt, id: last.settlementId };
  }
  // The count comes with a row. After a cursor that is older than every row there is none.
  if (isCounted && matches === null)
    matches = after ? ((await newestStatement(db, orgId, 1, true))[0]?.matches ?? 0) : 0;
  return { rows: found, matches };
}

async function selectWithHistory(
  { db, sealer }: ReadDeps,
  { where, limit, offset }: Omit<PageClauses, 'orderBy'>,
): Promise<SettlementWithHistory[]> {
  // The page is selected first, so that histories are read only for its rows.
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
  return rows.map(withHistory(dataKeysOf(sealer)));
}

const withHistory =
  (dataKeyOf: (owner: KeyOwner) => DataKey | undefined) =>
  (row: SelectedRow): SettlementWithHistory => {
    const settlement = SETTLEMENT.rowOf(row.settlement);
    const { recipientId } = settlement;
    const dataKey = dataKeyOf({ recipientId, dataKeySealed: row.data_key_sealed });
    return Object.assign(settlement, {
      payee: dataKey ? payeeResource(openPayee(dataKey, settlement)) : erasedPayeeResource(settlement),
      transitions: transitionsOf(row.transitions),
      exceptions: exceptionsOf(row),
    });
  };
