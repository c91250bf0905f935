/** The simulated card processor: its provider events, its signature, and the post to our webhook. */
import { createHmac } from 'node:crypto';
import type { CollectionEvent, CollectionReport } from '../../domain/sandbox/event.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import type { CollectionProvider } from './collection.ts';
import { postSigned } from './signed-post.ts';

const TYPES: Record<CollectionEvent, string> = {
  collection_succeeded: 'payment_intent.succeeded',
  collection_partial: 'payment_intent.succeeded',
  collection_failed: 'payment_intent.payment_failed',
  dispute_opened: 'charge.dispute.created',
};

export const cardproc: CollectionProvider = {
  plan: ({ amountMinor }, token) => reportsOf(amountMinor, token),
  encode: encodeCardprocEvent,
  post: (deps, bytes) =>
    postSigned(deps, '/v2/webhooks/cardproc', bytes, {
      'cardproc-signature': signCardproc(deps.cardprocWebhookSecret, bytes, deps.now()),
    }),
};

/** What each card token of the sandbox does. An unknown token is declined, as a real processor does. */
function reportsOf(amountMinor: bigint, token: string | null): CollectionReport[] {
  const paid: CollectionReport = { event: 'collection_succeeded', amountMinor };
  const halfMinor = amountMinor / 2n;
  switch (token) {
    case 'tok_visa':
      return [paid];
    case 'tok_partial':
      return [
        { event: 'collection_partial', amountMinor: halfMinor },
        { event: 'collection_succeeded', amountMinor: amountMinor - halfMinor },
      ];
    case 'tok_dispute':
      return [paid, { event: 'dispute_opened', amountMinor }];
    case 'tok_manual':
      return [];
    default:
      return [{ event: 'collection_failed', amountMinor: 0n }];
  }
}

function encodeCardprocEvent(
  settlement: Settlement,
  eventId: string,
  { event, amountMinor }: CollectionReport,
): Buffer {
  const type = TYPES[event];
  const isDispute = event === 'dispute_opened';
  const object = {
    id: `${isDispute ? 'dp' : 'pi'}_${settlement.settlementId}`,
    object: isDispute ? 'dispute' : 'payment_intent',
    // A dispute that names none is about the whole payment, which may be more or less than the settlement's amount.
    ...(isDispute && amountMinor === 0n ? {} : { amount: Number(isDispute ? amountMinor : settlement.amountMinor) }),
    ...(isDispute ? {} : { amount_received: Number(amountMinor) }),
    currency: settlement.sourceCurrency.toLowerCase(),
    ...(event === 'collection_failed' ? { last_payment_error: { code: 'card_declined' } } : {}),
    metadata: { settlement_id: settlement.settlementId },
  };
  const created = Math.floor(settlement.createdAt.getTime() / 1_000);
  return Buffer.from(
    JSON.stringify({ id: eventId, object: 'event', type, created, livemode: false, data: { object } }),
  );
}

/** The header `Cardproc-Signature` for these bytes (contract §9). */
function signCardproc(secret: string, bytes: Buffer, at: Date): string {
  const timestamp = Math.floor(at.getTime() / 1_000);
  return `t=${timestamp},v1=${createHmac('sha256', secret).update(`${timestamp}.`).update(bytes).digest('hex')}`;
}
