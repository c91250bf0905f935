/** What the simulated providers that collect money have in common: which one serves a method, and what it can do. */
import type { PaymentMethod } from '../../domain/payment-method.ts';
import type { CollectionMoment } from '../../domain/sandbox/event.ts';
import type { Settlement } from '../../domain/settlement.ts';
import type { ActivityDeps } from '../deps.ts';
import { bankledger } from './bankledger.ts';
import { cardproc } from './cardproc.ts';

export type CollectionProvider = {
  /** What a payer's token stands for (contract §6), as what the provider says one after the other. */
  plan(settlement: Settlement, token: string | undefined): CollectionMoment[];
  /** The event's bytes; the same arguments always give the same bytes, so that posting them twice is a duplicate. */
  event(settlement: Settlement, eventId: string, moment: CollectionMoment): Buffer;
  /** Signs and delivers; throws until the webhook has taken it. */
  post(deps: ActivityDeps, bytes: Buffer): Promise<void>;
};

/** Internal funding needs no provider. */
export const COLLECTION_PROVIDERS: Record<PaymentMethod, CollectionProvider | undefined> = {
  card: cardproc,
  ach: bankledger,
  wire: bankledger,
  internal: undefined,
};
