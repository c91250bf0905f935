/** Funding of settlements from the legacy Caribbean route (contract §6): evidence that always covers the amount. */
import { createHash } from 'node:crypto';
import { newId } from '../../db/id.ts';
import type { NewEvidence } from '../../domain/settlement/evidence.ts';
import type { Settlement } from '../../domain/settlement/state.ts';

export function internalFunding(settlement: Settlement): NewEvidence {
  const eventId = `internal:${settlement.settlementId}`;
  return {
    evidenceId: newId(),
    provider: 'internal',
    eventId,
    kind: 'collection_succeeded',
    amountMinor: settlement.amountMinor,
    currency: settlement.sourceCurrency,
    failure: null,
    sha256: createHash('sha256').update(eventId).digest('hex'),
  };
}
