/** The capability catalog as the API shows it (contract §14). */
import type { CapabilityCatalog } from '../capability.ts';
import { CAPABILITY_STATES } from '../capability-state.ts';

/** Without a key, the catalog has only its public entries; with a key, it has all. */
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
