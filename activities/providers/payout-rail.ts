/**
 * The payout rail: a simulation, since no rail is live. It answers at once, unless the recipient's name steers it
 * (contract §6). Sending twice is sending once: the settlement's id is the rail's own idempotency key.
 */
import { createHash } from 'node:crypto';
import type { NewEvidence } from '../../db/queries/evidence.ts';
import { getRecipient } from '../../db/queries/recipient.ts';
import { findSettlement } from '../../db/queries/settlement.ts';
import { DomainError } from '../../domain/error.ts';
import type { EvidenceKind } from '../../domain/evidence.ts';
import { SANDBOX_NAMES } from '../../domain/recipient.ts';
import { isRemote } from '../../domain/runtime.ts';
import type { ActivityDeps } from '../deps.ts';

export type PayoutRail = {
  /** @returns the rail's answer, or undefined when it has none yet */
  send(payout: { readonly settlementId: string; readonly orgId: string }): Promise<NewEvidence | undefined>;
};

export const payoutRail = (deps: ActivityDeps): PayoutRail => ({
  async send({ settlementId, orgId }) {
    if (isRemote(deps.runtime)) throw new DomainError('local_sandbox_only');
    const settlement = await findSettlement(deps.db, orgId, settlementId);
    if (!settlement) throw new DomainError('not_found');
    const { name } = await getRecipient(deps.db, orgId, settlement.recipientId);
    if (name.includes(SANDBOX_NAMES.payoutPending)) return undefined;
    return payoutAnswer(
      settlementId,
      name.includes(SANDBOX_NAMES.payoutRefused) ? 'payout_refused' : 'payout_confirmed',
    );
  },
});

/** The rail's one answer about a settlement; a second one has the same id and is not recorded. */
export function payoutAnswer(
  settlementId: string,
  kind: Extract<EvidenceKind, 'payout_confirmed' | 'payout_refused'>,
): NewEvidence {
  const eventId = `payout:${settlementId}`;
  return {
    settlementId,
    provider: 'payout_rail',
    eventId,
    kind,
    amountMinor: null,
    currency: null,
    failure: kind === 'payout_refused' ? { code: 'payout_refused', message: 'The payout was refused.' } : null,
    sha256: createHash('sha256').update(`${eventId}:${kind}`).digest(),
  };
}
