/**
 * A settlement's exceptions (contract §6), as a part of statements that read more. Every read and every event shows the
 * latest of them.
 */
import { EXCEPTIONS_SHOWN_MAX, type SettlementException } from '../../domain/settlement/evidence.ts';
import { type Aggregated, jsonListSql } from '../aggregated.ts';

export type ExceptionRows = { readonly exceptions: readonly Aggregated<SettlementException>[] };

/**
 * The exceptions that are shown, as a JSON array, the latest first.
 *
 * @param settlementId the expression that holds it
 */
export const exceptionsSql = (settlementId: string): string =>
  jsonListSql(`
    SELECT json_build_object('type', x.type, 'at', x.at, 'evidenceId', x.evidence_id,
      'amountMinor', x.amount_minor::text, 'currency', x.currency, 'reason', e.failure->>'code')
    FROM settlement_exceptions x LEFT JOIN evidence e ON e.evidence_id = x.evidence_id
    WHERE x.settlement_id = ${settlementId}
    ORDER BY x.at DESC, x.exception_id DESC LIMIT ${EXCEPTIONS_SHOWN_MAX}`);

/** In the order in which they were added. */
export const exceptionsOf = (row: ExceptionRows | undefined): readonly SettlementException[] =>
  (row?.exceptions ?? [])
    .map(({ at, amountMinor, ...exception }) => ({
      ...exception,
      at: new Date(at),
      amountMinor: amountMinor === null ? null : BigInt(amountMinor),
    }))
    .reverse();
