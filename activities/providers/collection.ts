/** The simulated providers that collect money: which one serves a payment method, and what each one can do. */
import { paymentTokenBinding } from '../../db/queries/settlement.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import type { CollectionReport } from '../../domain/sandbox/event.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import type { ActivityDeps } from '../deps.ts';
import { bankledger } from './bankledger.ts';
import { cardproc } from './cardproc.ts';

export type CollectionProvider = {
  /** What the payer's token selects (contract §6): the provider's reports, in their order. A wire has no token. */
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

/**
 * Whether the simulated provider reports anything by itself: there is a payment method without a provider, and there
 * are tokens for which it stays silent.
 *
 * @throws SealError when none of the service's keys opens the token
 */
export function hasCollectionPlan(
  { sealer }: Pick<ActivityDeps, 'sealer'>,
  settlement: Settlement,
  paymentTokenSealed: string | null,
): boolean {
  const token =
    paymentTokenSealed === null
      ? null
      : sealer.open(paymentTokenSealed, paymentTokenBinding(settlement.settlementId)).toString();
  return (COLLECTION_PROVIDERS[settlement.paymentMethod]?.plan(settlement, token) ?? []).length > 0;
}

/** A settlement that is funded internally has no provider. */
export const COLLECTION_PROVIDERS: Record<PaymentMethod, CollectionProvider | undefined> = {
  card: cardproc,
  ach: bankledger,
  wire: bankledger,
  internal: undefined,
};
