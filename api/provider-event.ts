/**
 * Receiving a provider's event (contract §9): once verified, the event and its evidence are committed together
 * before the 200, and the settlement's workflow is told from the same transaction's outbox.
 */
import { createHash } from 'node:crypto';
import type { Tx } from '../db/client.ts';
import { findProviderEvent, insertProviderEvent, lockEvidenceTarget, type NewEvidence, recordEvidenceAndRing } from '../db/queries/evidence.ts';
import type { ApiDeps } from './deps.ts';

/** What a settlement's provider says, before it is known whether there is such a settlement. */
export type EvidenceClaim = Omit<NewEvidence, 'sha256' | 'eventId' | 'provider'>;

export type VerifiedEvent = {
  readonly provider: 'cardproc' | 'bankledger';
  readonly eventId: string;
  readonly type: string;
  readonly bytes: Buffer;
  /** Undefined where the event says nothing that we apply: an unknown type, the wrong mode, no settlement named. */
  readonly claim: EvidenceClaim | undefined;
  readonly requestId: string;
};

export type EventReceipt = { readonly received: true; readonly event_id: string; readonly duplicate: boolean; readonly matched: boolean };

/** @throws DomainError `provider_event_conflict` when the id was seen with other bytes */
export async function receiveProviderEvent(deps: ApiDeps, event: VerifiedEvent): Promise<EventReceipt> {
  const receipt = await deps.db.transaction((tx) => commitEvent(deps, tx, event));
  deps.dispatcher.nudge();
  return receipt;
}

async function commitEvent(deps: ApiDeps, tx: Tx, event: VerifiedEvent): Promise<EventReceipt> {
  const { provider, eventId, type, bytes, claim } = event;
  const settlement = claim && (await lockEvidenceTarget(tx, claim.settlementId));
  const matched = settlement !== undefined;
  const sha256 = createHash('sha256').update(bytes).digest();
  const now = deps.now();
  const bodySealed = deps.sealer.seal(bytes, `provider_event.body:${provider}:${eventId}`);
  const first = await insertProviderEvent(tx, { provider, eventId, type, bodySha256: sha256, bodySealed, matched, receivedAt: now });
  if (!first) {
    const stored = await findProviderEvent(tx, provider, eventId);
    return { received: true, event_id: eventId, duplicate: true, matched: stored?.matched ?? false };
  }
  if (settlement) await recordEvidenceAndRing(tx, settlement, { ...claim, provider, eventId, sha256 }, now, event.requestId);
  return { received: true, event_id: eventId, duplicate: false, matched };
}
