/**
 * What operators do to the evidence of the launch gates (contract §14), each with the audit entry that says who did it.
 */
import type { CorridorId } from '../../domain/corridor.ts';
import { stateConflict } from '../../domain/error.ts';
import type { Gate } from '../../domain/gate.ts';
import { environmentName } from '../../domain/runtime.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import {
  insertGateApproval,
  insertGateEvidence,
  lockGateEvidence,
  lockGates,
  setGateEvidenceRevoked,
} from '../queries/gate.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'runtime' | 'now'>;

export type NewGateEvidence = {
  readonly gate: Gate;
  readonly corridor: CorridorId;
  /** The name of the document. */
  readonly reference: string;
  readonly sha256: Buffer;
  readonly operator: string;
  readonly expiresAt: Date;
};

/**
 * Records evidence. It replaces older evidence at once, and opens nothing until it is approved.
 *
 * @returns the id of the evidence
 */
export async function recordGateEvidence(deps: Deps, given: NewGateEvidence): Promise<string> {
  const { operator, ...evidence } = given;
  const { gate, corridor, expiresAt, reference } = evidence;
  const environment = environmentName(deps.runtime);
  const at = deps.now();
  return await commit(deps, 'gate.record', async (tx) => {
    await lockGates(tx, environment, corridor);
    const evidenceId = await insertGateEvidence(tx, { ...evidence, environment, recordedBy: operator, recordedAt: at });
    const note = `${gate} ${corridor} in ${environment} until ${expiresAt.toISOString()}: ${reference}`;
    await insertAuditEntry(tx, null, { objectId: evidenceId, action: 'gate_record', operator, note, at });
    return evidenceId;
  });
}

/** Who approves or revokes evidence, and what was examined, or why. */
type GateAct = Omit<OperatorAct, 'requestId'>;

/**
 * Approves evidence in the name of one operator, once.
 *
 * @throws DomainError `not_found`; `state_conflict` with `current_state` `approved`, `revoked` or `expired`
 */
export async function approveGateEvidence(deps: Deps, evidenceId: string, act: GateAct): Promise<void> {
  const at = deps.now();
  await commit(deps, 'gate.approve', async (tx) => {
    const evidence = await lockGateEvidence(tx, environmentName(deps.runtime), evidenceId);
    if (evidence.revokedAt !== null) throw stateConflict('revoked', 'The evidence was revoked.');
    if (evidence.expiresAt <= at) throw stateConflict('expired', 'The evidence has expired.');
    if (!(await insertGateApproval(tx, evidenceId, act.operator, at)))
      throw stateConflict('approved', 'This operator has approved it before; another one must.');
    await insertAuditEntry(tx, null, { objectId: evidenceId, action: 'gate_approve', ...act, at });
  });
}

/**
 * Revokes evidence permanently. If it decides, its gate is closed until newer evidence is approved. Once the revocation
 * is committed, no step that read the evidence before can still move value.
 *
 * @returns whose evidence it was: newer evidence of that gate may decide
 * @throws DomainError `not_found`; `state_conflict` with `current_state` `revoked`
 */
export async function revokeGateEvidence(
  deps: Deps,
  evidenceId: string,
  act: GateAct,
): Promise<{ readonly gate: string; readonly corridor: string }> {
  const environment = environmentName(deps.runtime);
  const at = deps.now();
  return await commit(deps, 'gate.revoke', async (tx) => {
    const evidence = await lockGateEvidence(tx, environment, evidenceId);
    if (evidence.revokedAt !== null) throw stateConflict('revoked', 'The evidence was revoked before.');
    await lockGates(tx, environment, evidence.corridor);
    await setGateEvidenceRevoked(tx, evidenceId, act.operator, at);
    await insertAuditEntry(tx, null, { objectId: evidenceId, action: 'gate_revoke', ...act, at });
    return evidence;
  });
}
