/** The launch gates as the API shows them (contract §14). */
import type { GateVerdict } from '../gate.ts';
import type { EnvironmentName } from '../runtime.ts';

/** Of the evidence, the answer shows the digest and the expiry, but neither its approvers nor its location. */
export const gatesResource = (environment: EnvironmentName, verdicts: readonly GateVerdict[]) => ({
  environment,
  open: verdicts.every(({ reason }) => reason === null),
  gates: verdicts.map(({ gate, reason, evidence }) => ({
    gate,
    open: reason === null,
    reason,
    evidence: evidence === undefined ? null : `sha256:${evidence.sha256}`,
    expires_at: evidence?.expiresAt.toISOString() ?? null,
  })),
});
