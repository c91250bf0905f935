/** The simulated card processor: its events, its signature, its delivery to our own webhook. */
import { createHmac } from 'node:crypto';
import type { Settlement } from '../../domain/settlement.ts';
import type { ActivityDeps } from '../deps.ts';
import { postSigned } from './signed-post.ts';

export type CardprocMoment = {
  readonly type:
    | 'payment_intent.succeeded'
    | 'payment_intent.processing'
    | 'payment_intent.payment_failed'
    | 'charge.dispute.created'
    | 'charge.dispute.closed';
  readonly amountMinor: bigint;
};

/** The event's bytes; the same arguments always give the same bytes. */
export function cardprocEvent(settlement: Settlement, eventId: string, moment: CardprocMoment): Buffer {
  const dispute = moment.type.startsWith('charge.dispute');
  const object = {
    id: `${dispute ? 'dp' : 'pi'}_${settlement.settlementId}`,
    object: dispute ? 'dispute' : 'payment_intent',
    ...(dispute ? { amount: Number(moment.amountMinor) } : { amount: Number(settlement.amountMinor), amount_received: Number(moment.amountMinor) }),
    currency: settlement.sourceCurrency.toLowerCase(),
    ...(moment.type === 'payment_intent.payment_failed' ? { last_payment_error: { code: 'card_declined' } } : {}),
    metadata: { settlement_id: settlement.settlementId },
  };
  const created = Math.floor(settlement.createdAt.getTime() / 1_000);
  return Buffer.from(JSON.stringify({ id: eventId, object: 'event', type: moment.type, created, livemode: false, data: { object } }));
}

/** `Cardproc-Signature` over exact bytes (contract §9). */
export function signCardproc(secret: string, bytes: Buffer, at: Date): string {
  const timestamp = Math.floor(at.getTime() / 1_000);
  return `t=${timestamp},v1=${createHmac('sha256', secret).update(`${timestamp}.`).update(bytes).digest('hex')}`;
}

export const postCardprocEvent = (deps: ActivityDeps, bytes: Buffer): Promise<void> =>
  postSigned(deps, '/v2/webhooks/cardproc', bytes, { 'cardproc-signature': signCardproc(deps.cardprocWebhookSecret, bytes, deps.now()) });
