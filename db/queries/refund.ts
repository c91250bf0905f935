/** Refunds that operators recorded. Each is a posting set, whose step names the refund's reference. */

import { REFUND_STEP } from '../../domain/settlement/change.ts';
import type { Facts } from '../../domain/settlement/facts.ts';
import type { Tx } from '../client.ts';
import { statement } from '../statement.ts';

const listStatement = statement<[settlementId: string], { readonly reference: string; readonly amount: string }>(
  'list_refunds',
  `SELECT substr(step, ${REFUND_STEP.length + 1}) AS reference, amount_minor::text AS amount FROM postings
  WHERE settlement_id = $1 AND starts_with(step, '${REFUND_STEP}') AND account = 'refund_due'`,
);

/** The refunds of a locked settlement. */
export async function listRefunds(tx: Tx, settlementId: string): Promise<Facts['refunds']> {
  const rows = await listStatement(tx, settlementId);
  return rows.map(({ reference, amount }) => ({ reference, amountMinor: BigInt(amount) }));
}
