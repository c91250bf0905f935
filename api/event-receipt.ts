/**
 * The receipt of a provider's event (contract §9), whatever it is about: once verified, the event and what it does
 * are committed together before the 200, and whoever waits for it is told from the same transaction's outbox.
 */
import { createHash } from 'node:crypto';
import type { Tx } from '../db/client.ts';
import { findProviderEvent, insertProviderEvent, providerEventBinding } from '../db/queries/evidence.ts';
import type { ApiDeps } from './deps.ts';

export type SignedEvent = {
  readonly provider: string;
  readonly eventId: string;
  readonly type: string;
  readonly bytes: Buffer;
  readonly requestId: string;
};

/** What an event does to what it names. */
export type EventEffect<Target> = {
  /** Locks what the event names; undefined when there is nothing that it may speak of. */
  lock(tx: Tx): Promise<Target | undefined>;
  /** Runs for the event's first arrival alone. */
  apply(tx: Tx, target: Target, received: { readonly sha256: Buffer; readonly at: Date }): Promise<void>;
};

export type EventReceipt = {
  readonly received: true;
  readonly event_id: string;
  readonly duplicate: boolean;
  readonly matched: boolean;
};

/**
 * Stores a verified event once, for ever, and applies it.
 *
 * @param effect undefined where the event says nothing that we apply: an unknown type, the wrong mode, nothing named
 * @throws DomainError `provider_event_conflict` when the id was seen with other bytes
 */
export async function receiveEvent<Target>(
  deps: ApiDeps,
  event: SignedEvent,
  effect: EventEffect<Target> | undefined,
): Promise<EventReceipt> {
  const receipt = await deps.db.transaction((tx) => commitEvent(deps, tx, event, effect));
  deps.dispatcher.nudge();
  return receipt;
}

async function commitEvent<Target>(
  deps: ApiDeps,
  tx: Tx,
  event: SignedEvent,
  effect: EventEffect<Target> | undefined,
): Promise<EventReceipt> {
  const { provider, eventId, type, bytes } = event;
  const target = await effect?.lock(tx);
  const matched = target !== undefined;
  const sha256 = createHash('sha256').update(bytes).digest();
  const at = deps.now();
  const bodySealed = deps.sealer.seal(bytes, providerEventBinding(provider, eventId));
  const first = await insertProviderEvent(tx, {
    provider,
    eventId,
    type,
    bodySha256: sha256,
    bodySealed,
    matched,
    receivedAt: at,
  });
  if (!first) {
    const stored = await findProviderEvent(tx, provider, eventId);
    return { received: true, event_id: eventId, duplicate: true, matched: stored?.matched ?? false };
  }
  if (target !== undefined) await effect?.apply(tx, target, { sha256, at });
  return { received: true, event_id: eventId, duplicate: false, matched };
}
