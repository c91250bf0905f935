/** The capability catalog as the API shows it (contract §14). */
import type { CapabilityCatalog } from '../capability.ts';
import { CAPABILITY_STATES } from '../capability-state.ts';

/** @param isWhole whether it has all entries; otherwise it has the public ones, for callers without a key */
export const catalogResource = ({ schemaVersion, updatedAt, services }: CapabilityCatalog, isWhole: boolean) => ({
  schema_version: schemaVersion,
  updated_at: updatedAt,
  states: [...CAPABILITY_STATES],
  services: services
    .filter(({ audience }) => isWhole || audience === 'public')
    .map(({ evidenceLevel, nextGate, reviewedAt, evidence, ...entry }) => ({
      ...entry,
      evidence_level: evidenceLevel,
      evidence: [...evidence],
      next_gate: nextGate,
      reviewed_at: reviewedAt,
    })),
});
