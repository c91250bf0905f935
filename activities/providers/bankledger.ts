/** The simulated bank ledger, for ACH and wires: its provider events, its signature, and the post to our webhook. */
import { createHmac } from 'node:crypto';
import { DomainError } from '../../domain/error.ts';
import type { CollectionEvent, CollectionReport } from '../../domain/sandbox/event.ts';
import { SANDBOX_ACCOUNTS } from '../../domain/sandbox/input.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import type { CollectionProvider } from './collection.ts';
import { postSigned } from './signed-post.ts';

const EVENTS: Record<Exclude<CollectionEvent, 'dispute_opened'>, string> = {
  collection_succeeded: 'reconciled',
  collection_partial: 'partially_reconciled',
  collection_failed: 'returned',
};

/** Insufficient funds. */
const ACH_RETURN_CODE = 'R01';

export const bankledger: CollectionProvider = {
  plan: ({ paymentMethod, amountMinor }, account) => (paymentMethod === 'ach' ? reportsOf(amountMinor, account) : []),
  encode: encodeBankledgerEvent,
  post: (deps, bytes) =>
    postSigned(deps, '/v2/webhooks/bankledger', bytes, {
      'x-signature': createHmac('sha256', deps.bankledgerWebhookSecret).update(bytes).digest('hex'),
    }),
};

/** What each linked account of the sandbox does. A debit without an account is returned. */
function reportsOf(amountMinor: bigint, account: string | null): CollectionReport[] {
  switch (account) {
    case SANDBOX_ACCOUNTS.manual:
      return [];
    case SANDBOX_ACCOUNTS.returned:
    case null:
      return [{ event: 'collection_failed', amountMinor: 0n }];
    default:
      return [{ event: 'collection_succeeded', amountMinor }];
  }
}

function encodeBankledgerEvent(settlement: Settlement, eventId: string, report: CollectionReport): Buffer {
  if (report.event === 'dispute_opened')
    throw new DomainError('state_conflict', {}, 'The bank ledger has no disputes.');
  const event = EVENTS[report.event];
  const data = {
    id: `ep_${settlement.settlementId}`,
    object: 'expected_payment',
    live_mode: false,
    status: event,
    amount_reconciled: Number(report.amountMinor),
    currency: settlement.sourceCurrency,
    type: settlement.paymentMethod,
    ...(event === 'returned' && settlement.paymentMethod === 'ach' ? { return_code: ACH_RETURN_CODE } : {}),
    metadata: { settlement_id: settlement.settlementId },
  };
  return Buffer.from(JSON.stringify({ id: eventId, event, data }));
}
