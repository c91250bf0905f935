/**
 * Evidence for the launch gates (contract §14). It is added to and revoked, never changed, each time with the audit
 * entry that says who did it.
 */
import { and, asc, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { CorridorId } from '../../domain/corridor.ts';
import { DomainError } from '../../domain/error.ts';
import type { Gate, GateEvidence } from '../../domain/gate.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Queryable, Tx } from '../client.ts';
import { newId } from '../id.ts';
import { type AuditAction, auditEntries } from '../schema/audit.ts';
import { launchGateApprovals, launchGateEvidence } from '../schema/gate.ts';

/**
 * Everything recorded for an environment, or for one corridor of it, oldest first; one statement.
 *
 * @throws whatever the database throws: who asks decides that unreadable means closed
 */
export async function listGateEvidence(
  db: Queryable,
  environment: EnvironmentName,
  corridor?: CorridorId,
): Promise<GateEvidence[]> {
  const inScope = and(
    eq(launchGateEvidence.environment, environment),
    corridor === undefined ? undefined : eq(launchGateEvidence.corridor, corridor),
  );
  const rows = await db
    .select({ evidence: launchGateEvidence, approval: launchGateApprovals })
    .from(launchGateEvidence)
    .leftJoin(launchGateApprovals, eq(launchGateApprovals.evidenceId, launchGateEvidence.evidenceId))
    .where(inScope)
    .orderBy(
      asc(launchGateEvidence.recordedAt),
      asc(launchGateEvidence.evidenceId),
      asc(launchGateApprovals.approvedAt),
    );
  const found = new Map<string, GateEvidence>();
  for (const { evidence, approval } of rows) {
    const approvals = found.get(evidence.evidenceId)?.approvals ?? [];
    found.set(evidence.evidenceId, {
      ...evidence,
      sha256: evidence.sha256.toString('hex'),
      approvals: approval ? [...approvals, approval] : approvals,
    });
  }
  return [...found.values()];
}

/**
 * Keeps what the gates of a corridor say as it is until the transaction ends: who would close one waits. Steps do not wait
 * for each other. To be taken before the evidence is read.
 */
export async function holdGates(tx: Tx, environment: EnvironmentName, corridor: CorridorId): Promise<void> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock_shared(${lockOf(environment, corridor)})`);
}

/** Waits for the steps that have read the gates, and lets no other read them until the transaction ends. */
async function lockGates(tx: Tx, environment: string, corridor: string): Promise<void> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock(${lockOf(environment, corridor)})`);
}

const lockOf = (environment: string, corridor: string): SQL =>
  sql`hashtextextended(${`launch_gate ${environment} ${corridor}`}, 0)`;

export type NewGateEvidence = {
  readonly gate: Gate;
  readonly environment: EnvironmentName;
  readonly corridor: CorridorId;
  readonly reference: string;
  readonly sha256: Buffer;
  readonly operator: string;
  readonly at: Date;
  readonly expiresAt: Date;
};

/** Records evidence, which opens nothing until it is approved and takes the place of older evidence at once. */
export async function recordGateEvidence(tx: Tx, given: NewGateEvidence): Promise<string> {
  const evidenceId = newId();
  const { gate, environment, corridor, reference, sha256, operator, at, expiresAt } = given;
  await lockGates(tx, environment, corridor);
  await tx.insert(launchGateEvidence).values({
    evidenceId,
    gate,
    environment,
    corridor,
    reference,
    sha256,
    recordedBy: operator,
    recordedAt: at,
    expiresAt,
  });
  await audit(tx, 'gate_record', evidenceId, {
    operator,
    at,
    note: `${gate} ${corridor} in ${environment} until ${expiresAt.toISOString()}: ${reference}`,
  });
  return evidenceId;
}

/** Who does something to evidence, when, and what is to be remembered of it. */
export type GateAct = { readonly operator: string; readonly at: Date; readonly note: string };

/**
 * Approves evidence in the name of one operator, once.
 *
 * @throws DomainError `not_found`; `state_conflict` with `current_state` `approved`, `revoked` or `expired`
 */
export async function approveGateEvidence(
  tx: Tx,
  environment: EnvironmentName,
  evidenceId: string,
  act: GateAct,
): Promise<void> {
  const evidence = await lockGateEvidence(tx, environment, evidenceId);
  if (evidence.revokedAt !== null) throw refusal('revoked', 'The evidence was revoked.');
  if (evidence.expiresAt <= act.at) throw refusal('expired', 'The evidence has expired.');
  const approved = await tx
    .insert(launchGateApprovals)
    .values({ evidenceId, operator: act.operator, approvedAt: act.at })
    .onConflictDoNothing()
    .returning({ operator: launchGateApprovals.operator });
  if (approved.length === 0) throw refusal('approved', 'This operator has approved it before; another one must.');
  await audit(tx, 'gate_approve', evidenceId, act);
}

/**
 * Revokes evidence for ever; its gate stays closed until newer evidence is approved. Once it is committed, no step that
 * read the evidence before is still to come.
 *
 * @throws DomainError `not_found`; `state_conflict` with `current_state` `revoked`
 */
export async function revokeGateEvidence(
  tx: Tx,
  environment: EnvironmentName,
  evidenceId: string,
  act: GateAct,
): Promise<void> {
  const { corridor } = await lockGateEvidence(tx, environment, evidenceId);
  await lockGates(tx, environment, corridor);
  const revoked = await tx
    .update(launchGateEvidence)
    .set({ revokedBy: act.operator, revokedAt: act.at })
    .where(and(eq(launchGateEvidence.evidenceId, evidenceId), isNull(launchGateEvidence.revokedAt)))
    .returning({ evidenceId: launchGateEvidence.evidenceId });
  if (revoked.length === 0) throw refusal('revoked', 'The evidence was revoked before.');
  await audit(tx, 'gate_revoke', evidenceId, act);
}

/** Locks the row, so that an approval and a revocation at the same moment decide one after the other. */
async function lockGateEvidence(tx: Tx, environment: EnvironmentName, evidenceId: string) {
  const [row] = await tx
    .select()
    .from(launchGateEvidence)
    .where(and(eq(launchGateEvidence.evidenceId, evidenceId), eq(launchGateEvidence.environment, environment)))
    .for('update');
  if (!row) throw new DomainError('not_found');
  return row;
}

const refusal = (state: string, detail: string) => new DomainError('state_conflict', { current_state: state }, detail);

async function audit(tx: Tx, action: AuditAction, evidenceId: string, { operator, at, note }: GateAct): Promise<void> {
  await tx
    .insert(auditEntries)
    .values({ auditId: newId(), orgId: null, objectId: evidenceId, action, operator, note, at });
}
