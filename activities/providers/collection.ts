/** The simulated providers that collect money: which one serves a payment method, and what each one can do. */
import type { PaymentMethod } from '../../domain/payment-method.ts';
import type { CollectionReport } from '../../domain/sandbox/event.ts';
import type { Settlement } from '../../domain/settlement.ts';
import type { ActivityDeps } from '../deps.ts';
import { bankledger } from './bankledger.ts';
import { cardproc } from './cardproc.ts';

export type CollectionProvider = {
  /** What the payer's token stands for (contract §6): the provider's reports, in their order. A wire has no token. */
  plan(settlement: Settlement, token: string | null): CollectionReport[];
  /** The bytes of a provider event. The same arguments give the same bytes, so a second post is a duplicate. */
  encode(settlement: Settlement, eventId: string, report: CollectionReport): Buffer;
  /**
   * Signs a provider event and posts it to the webhook.
   *
   * @throws ApplicationFailure `webhook_refused`, retryable, when the webhook does not accept it
   */
  post(deps: ActivityDeps, bytes: Buffer): Promise<void>;
};

/** A settlement that is funded internally has no provider. */
export const COLLECTION_PROVIDERS: Record<PaymentMethod, CollectionProvider | undefined> = {
  card: cardproc,
  ach: bankledger,
  wire: bankledger,
  internal: undefined,
};
