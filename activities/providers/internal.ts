/** The legacy Caribbean route's own funding (contract §6): covered by definition, as evidence like any other. */
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
