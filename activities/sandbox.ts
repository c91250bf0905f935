/**
 * The sandbox's providers (contract §6): what a card token stands for, and the posting of signed events to the
 * inbound webhooks. An event's id and bytes are determined by the settlement and the step, so that posting twice
 * is a duplicate to the receiver.
 */
import { findPaymentToken, findSettlement } from '../db/queries/settlement.ts';
import { DomainError } from '../domain/error.ts';
import type { Settlement } from '../domain/settlement.ts';
import type { ActivityDeps } from './deps.ts';
import { type CardprocMoment, cardprocEvent, postCardprocEvent } from './providers/cardproc.ts';

export type SandboxCollectionInput = { readonly settlementId: string; readonly orgId: string };

/** One event that the simulated provider will send, `delayMs` after the one before. */
export type CollectionStep = { readonly step: number; readonly event: string; readonly delayMs: number };

type Moment = CardprocMoment & { readonly delayMs: number };

/** A settlement of the sandbox is funded this long after it began to wait; the wait can be watched. */
const PROVIDER_DELAY_MS = 250;

export function sandboxActivities(deps: ActivityDeps) {
  const momentsFor = async ({ settlementId, orgId }: SandboxCollectionInput): Promise<{ settlement: Settlement; moments: Moment[] }> => {
    const settlement = await findSettlement(deps.db, orgId, settlementId);
    if (!settlement) throw new DomainError('not_found');
    const sealed = await findPaymentToken(deps.db, orgId, settlementId);
    const token = sealed ? deps.sealer.open(sealed, `settlement.payment_token:${settlementId}`)?.toString() : undefined;
    return { settlement, moments: settlement.paymentMethod === 'card' ? cardMoments(settlement, token) : [] };
  };
  return {
    /** What the payer's token stands for, as a list of events without the token itself. */
    planCollection: async (input: SandboxCollectionInput): Promise<CollectionStep[]> => {
      const { moments } = await momentsFor(input);
      return moments.map(({ type, delayMs }, step) => ({ step, event: type, delayMs }));
    },

    /** Posts one event of the plan; the receiver's refusal is repeated, since it may be on its way up. */
    postCollectionEvent: async (input: SandboxCollectionInput & { readonly step: number }): Promise<void> => {
      const { settlement, moments } = await momentsFor(input);
      const moment = moments[input.step];
      if (!moment) throw new DomainError('not_found');
      await postCardprocEvent(deps, cardprocEvent(settlement, `evt_${settlement.settlementId}_${input.step}`, moment));
    },
  };
}

/** What each card token of the sandbox does. An unknown token is declined, as a processor would. */
function cardMoments(settlement: Settlement, token: string | undefined): Moment[] {
  const paid = (amountMinor: bigint): Moment => ({ type: 'payment_intent.succeeded', amountMinor, delayMs: PROVIDER_DELAY_MS });
  const full = paid(settlement.amountMinor);
  switch (token) {
    case 'tok_visa':
      return [full];
    case 'tok_partial': {
      const half = settlement.amountMinor / 2n;
      return [paid(half), paid(settlement.amountMinor - half)];
    }
    case 'tok_dispute':
      return [full, { type: 'charge.dispute.created', amountMinor: settlement.amountMinor, delayMs: PROVIDER_DELAY_MS }];
    case 'tok_manual':
      return [];
    default:
      return [{ type: 'payment_intent.payment_failed', amountMinor: 0n, delayMs: PROVIDER_DELAY_MS }];
  }
}
