/** The capability catalog as the API shows it (contract §14). */
import type { CapabilityCatalog } from '../capability.ts';
import { CAPABILITY_STATES } from '../capability-state.ts';

/** The catalog as it is served: without a key, what is public; with one, everything. */
export const catalogResource = ({ schemaVersion, updatedAt, services }: CapabilityCatalog, isPartner: boolean) => ({
  schema_version: schemaVersion,
  updated_at: updatedAt,
  states: [...CAPABILITY_STATES],
  services: services
    .filter(({ audience }) => isPartner || audience === 'public')
    .map(({ evidenceLevel, nextGate, reviewedAt, evidence, ...entry }) => ({
      ...entry,
      evidence_level: evidenceLevel,
      evidence: [...evidence],
      next_gate: nextGate,
      reviewed_at: reviewedAt,
    })),
});
