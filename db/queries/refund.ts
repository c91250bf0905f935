/** Refunds that operators recorded. Each is a posting set, whose step names the refund's reference. */

import { type SQL, sql } from 'drizzle-orm';
import type { Facts } from '../../domain/settlement/facts.ts';
import { REFUND_STEP } from '../../domain/settlement/posting.ts';
import { type Aggregated, jsonListSql } from '../aggregated.ts';
import type { Tx } from '../client.ts';
import { statement } from '../statement.ts';
import { type ExceptionRows, exceptionsOf, exceptionsSql } from './settlement-exception.ts';

const factsStatement = statement<
  [settlementId: string],
  ExceptionRows & { readonly refunds: Aggregated<Facts['refunds']> }
>(
  'read_refund_facts',
  `SELECT ${jsonListSql(`
    SELECT json_build_object('reference', substr(step, ${REFUND_STEP.length + 1}), 'amountMinor', amount_minor::text)
    FROM postings WHERE settlement_id = $1 AND starts_with(step, '${REFUND_STEP}') AND account = 'refund_due'
  `)} AS refunds, ${exceptionsSql('$1')} AS exceptions`,
);

/** The facts for a decision about a refund of a locked settlement. */
export async function readRefundFacts(tx: Tx, settlementId: string): Promise<Pick<Facts, 'refunds' | 'exceptions'>> {
  const [row] = await factsStatement(tx, settlementId);
  return {
    refunds: (row?.refunds ?? []).map(({ reference, amountMinor }) => ({
      reference,
      amountMinor: BigInt(amountMinor),
    })),
    exceptions: exceptionsOf(row),
  };
}

/** As `refundDueMinor` of domain/settlement/posting.ts. The condition of the index `settlements_refund_due`. */
export const hasRefundDue: SQL = sql`amount_received_minor > amount_refunded_minor
  AND (status IN ('rejected', 'expired', 'failed', 'canceled')
    OR status IN ('funded', 'paying_out', 'needs_review', 'settled')
      AND amount_received_minor - amount_refunded_minor > amount_minor)`;

/** Since when money of the settlement is due back, on its own clock; what was due before and given back is left out. */
export const refundDueSince: SQL<Date | null> = sql`(
  SELECT max(at) FROM (
    SELECT p.at, p.amount_minor, sum(p.amount_minor) OVER (ORDER BY p.at, p.step, p.line) AS balance
    FROM postings p WHERE p.settlement_id = settlements.settlement_id AND p.account = 'refund_due'
  ) booked WHERE balance < 0 AND balance - amount_minor >= 0)`;
