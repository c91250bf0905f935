/** Funding of settlements from the legacy Caribbean route (contract §6): evidence that always covers the amount. */
import { createHash } from 'node:crypto';
import type { NewEvidence } from '../../db/queries/evidence.ts';
import type { Settlement } from '../../domain/settlement.ts';

export function internalFunding(settlement: Settlement): NewEvidence {
  const eventId = `internal:${settlement.settlementId}`;
  return {
    settlementId: settlement.settlementId,
    provider: 'internal',
    eventId,
    kind: 'collection_succeeded',
    amountMinor: settlement.amountMinor,
    currency: settlement.sourceCurrency,
    failure: null,
    sha256: createHash('sha256').update(eventId).digest(),
  };
}
