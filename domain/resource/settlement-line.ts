/** A settlement as a line of a table: every field of a read that is one value (contract §1). */
import { type SettlementWithHistory, settlementDetail } from './settlement.ts';

export const SETTLEMENT_COLUMNS = [
  'settlement_id',
  'created_at',
  'updated_at',
  'status',
  'failure_code',
  'corridor',
  'amount',
  'source_currency',
  'input_fee',
  'platform_fee',
  'total_fees',
  'fx_rate',
  'destination_amount',
  'destination_currency',
  'payment_method',
  'payout_rail',
  'recipient_id',
  'reference',
  'purpose',
  'metadata',
  'amount_received',
  'amount_refund_due',
  'amount_refunded',
  'expires_at',
  'certificate_id',
  'environment',
] as const;

type SettlementLine = Readonly<Record<(typeof SETTLEMENT_COLUMNS)[number], string | null>>;

/** `metadata` is JSON, and empty without entries. */
export function settlementLine(settlement: SettlementWithHistory): SettlementLine {
  const { failure, metadata, ...shown } = settlementDetail(settlement);
  return {
    ...shown,
    failure_code: failure?.code ?? null,
    metadata: Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata),
  };
}
