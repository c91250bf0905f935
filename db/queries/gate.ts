/**
 * The launch gates (contract §14): their evidence, and whether they are open by it. Evidence is added and revoked,
 * never changed.
 */
import { and, eq } from 'drizzle-orm';
import { CORRIDOR_IDS, type CorridorId } from '../../domain/corridor.ts';
import { DomainError } from '../../domain/error.ts';
import {
  allClosed,
  type ClosedGate,
  evaluateGates,
  forbiddingGates,
  type GateEvidence,
  type GateVerdict,
} from '../../domain/gate.ts';
import { type EnvironmentName, environmentName, type RuntimeEnvironment } from '../../domain/runtime.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import { type Aggregated, jsonListSql } from '../aggregated.ts';
import type { Queryable, Tx } from '../client.ts';
import { newId } from '../id.ts';
import { launchGateApprovals, launchGateEvidence } from '../schema/gate.ts';
import { statement } from '../statement.ts';

/** Which gates are judged: those of the process's runtime; `corridor` undefined means all corridors. */
type GateQuestion = {
  readonly runtime: RuntimeEnvironment;
  readonly corridor: CorridorId | undefined;
  readonly now: Date;
};

/**
 * Whether each gate is open. Where no corridor is given, a gate is open only if it is open in all of them.
 *
 * @throws whatever the database throws: the caller decides that unreadable means closed
 */
export async function judgeGates(db: Queryable, question: GateQuestion): Promise<readonly GateVerdict[]> {
  const { runtime, corridor, now } = question;
  const environment = environmentName(runtime);
  const evidence = await listGateEvidence(db, environment, corridor);
  return evaluateGates(evidence, { environment, corridors: corridor === undefined ? CORRIDOR_IDS : [corridor] }, now);
}

/**
 * Evidence as a JSON array, for a statement that reads more than the gates; `evidenceOf` reads it.
 *
 * @param where a condition, in which `e` is the evidence
 */
export const gateEvidenceJson = (where: string): string =>
  jsonListSql(`
    SELECT json_build_object(
      'evidenceId', e.evidence_id, 'gate', e.gate, 'environment', e.environment, 'corridor', e.corridor,
      'reference', e.reference, 'sha256', encode(e.sha256, 'hex'), 'recordedBy', e.recorded_by,
      'recordedAt', e.recorded_at, 'expiresAt', e.expires_at, 'revokedAt', e.revoked_at, 'readAt', statement_timestamp(),
      'approvals', ${jsonListSql(`
        SELECT json_build_object('operator', a.operator, 'approvedAt', a.approved_at)
        FROM launch_gate_approvals a WHERE a.evidence_id = e.evidence_id ORDER BY a.approved_at`)})
    FROM launch_gate_evidence e WHERE ${where} ORDER BY e.recorded_at, e.evidence_id`);

/**
 * The evidence of one corridor.
 *
 * @param environment the parameter that holds the environment's name; `corridor` likewise
 */
export const gateEvidenceSql = (environment: string, corridor: string): string =>
  gateEvidenceJson(`e.environment = ${environment} AND e.corridor = ${corridor}`);

export const evidenceOf = (aggregated: readonly Aggregated<GateEvidence>[]): GateEvidence[] =>
  aggregated.map(({ recordedAt, expiresAt, revokedAt, readAt, approvals, ...rest }) => ({
    ...rest,
    recordedAt: new Date(recordedAt),
    expiresAt: new Date(expiresAt),
    revokedAt: revokedAt === null ? null : new Date(revokedAt),
    readAt: new Date(readAt),
    approvals: approvals.map(({ operator, approvedAt }) => ({ operator, approvedAt: new Date(approvedAt) })),
  }));

const listStatement = statement<
  [environment: EnvironmentName, corridor: CorridorId | null],
  { readonly evidence: readonly Aggregated<GateEvidence>[] }
>(
  'list_gate_evidence',
  `SELECT ${gateEvidenceJson('e.environment = $1 AND coalesce(e.corridor = $2, true)')} AS evidence`,
);

/**
 * All evidence of an environment, or of one corridor of it, oldest first; one statement.
 *
 * @throws whatever the database throws: the caller decides that unreadable means closed
 */
export async function listGateEvidence(
  db: Queryable,
  environment: EnvironmentName,
  corridor?: CorridorId,
): Promise<GateEvidence[]> {
  const [row] = await listStatement(db, environment, corridor ?? null);
  return evidenceOf(row?.evidence ?? []);
}

/**
 * The gates that forbid a step that moves value in this corridor; empty if none does.
 *
 * @param aggregated evidence of the process's environment and of this corridor
 */
export function forbiddingGatesOfCorridor(
  aggregated: readonly Aggregated<GateEvidence>[],
  { runtime, corridor, now }: GateQuestion & { readonly corridor: CorridorId },
): readonly ClosedGate[] {
  const verdicts = evaluateGates(
    evidenceOf(aggregated),
    { environment: environmentName(runtime), corridors: [corridor] },
    now,
  );
  return forbiddingGates(verdicts, runtime);
}

/**
 * The gates that forbid a settlement's next step that moves value; empty if none does.
 *
 * @param evidence of the settlement's environment and corridor
 * @param at `now` is real time. A settlement's own clock may be ahead, and a repeated step carries the time of its
 *   first attempt.
 */
export const forbiddingGatesOfSettlement = (
  { environment, corridor }: Pick<Settlement, 'environment' | 'corridor'>,
  evidence: readonly Aggregated<GateEvidence>[],
  at: Pick<GateQuestion, 'runtime' | 'now'>,
): readonly ClosedGate[] =>
  environment === environmentName(at.runtime)
    ? forbiddingGatesOfCorridor(evidence, { ...at, corridor })
    : forbiddingGates(allClosed('other_environment'), at.runtime);

/**
 * The advisory lock of a corridor's gates. A decision shares it, so that the gates stay as they are until its
 * transaction ends; a change of the gates takes it alone.
 */
export const gateLockSql = (environment: string, corridor: string): string =>
  `hashtextextended('launch_gate ' || ${environment} || ' ' || ${corridor}, 0)`;

/** Waits for the decisions that share a corridor's gates, and blocks later ones until the transaction ends. */
export async function lockGates(tx: Tx, environment: string, corridor: string): Promise<void> {
  await lockGatesStatement(tx, environment, corridor);
}

const lockGatesStatement = statement<[environment: string, corridor: string], unknown>(
  'lock_gates',
  `SELECT pg_advisory_xact_lock(${gateLockSql('$1', '$2')})`,
);

type GateEvidenceRow = typeof launchGateEvidence.$inferSelect;

/** @returns the id of the evidence */
export async function insertGateEvidence(
  tx: Tx,
  evidence: Omit<GateEvidenceRow, 'evidenceId' | 'revokedBy' | 'revokedAt'>,
): Promise<string> {
  const evidenceId = newId();
  await tx.insert(launchGateEvidence).values({ evidenceId, ...evidence });
  return evidenceId;
}

/**
 * Locks the row, so that an approval and a revocation at the same moment are ordered.
 *
 * @throws DomainError `not_found`
 */
export async function lockGateEvidence(
  tx: Tx,
  environment: EnvironmentName,
  evidenceId: string,
): Promise<GateEvidenceRow> {
  const [row] = await tx
    .select()
    .from(launchGateEvidence)
    .where(and(eq(launchGateEvidence.evidenceId, evidenceId), eq(launchGateEvidence.environment, environment)))
    .for('update');
  if (!row) throw new DomainError('not_found');
  return row;
}

/** Approves evidence in the name of one operator; false when the operator has approved it before. */
export async function insertGateApproval(tx: Tx, evidenceId: string, operator: string, at: Date): Promise<boolean> {
  const inserted = await tx
    .insert(launchGateApprovals)
    .values({ evidenceId, operator, approvedAt: at })
    .onConflictDoNothing()
    .returning({ operator: launchGateApprovals.operator });
  return inserted.length === 1;
}

/** Marks locked evidence as revoked. */
export async function setGateEvidenceRevoked(tx: Tx, evidenceId: string, operator: string, at: Date): Promise<void> {
  await tx
    .update(launchGateEvidence)
    .set({ revokedBy: operator, revokedAt: at })
    .where(eq(launchGateEvidence.evidenceId, evidenceId));
}
