/** Gate evidence as operators record it, inserted directly. */
import type pg from 'pg';
import type { Database } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { launchGateApprovals, launchGateEvidence } from '../../db/schema/index.ts';
import { CORRIDOR_IDS } from '../../domain/corridor.ts';
import { GATES } from '../../domain/gate.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';

const DAY_MS = 86_400_000;

type EvidenceRow = typeof launchGateEvidence.$inferInsert;

/** Evidence that opens each gate in each corridor, unless `changes` make it insufficient. */
export async function insertGateEvidence(
  db: Database,
  environment: EnvironmentName,
  options: {
    gates?: readonly string[];
    corridors?: readonly string[];
    operators?: readonly string[];
    changes?: Partial<EvidenceRow>;
  } = {},
): Promise<string[]> {
  const { gates = GATES, corridors = CORRIDOR_IDS, operators = ['ana', 'bo'], changes = {} } = options;
  const recordedAt = new Date(Date.now() - DAY_MS);
  const rows = gates.flatMap((gate) =>
    corridors.map((corridor) => ({
      evidenceId: newId(),
      gate,
      environment,
      corridor,
      reference: 'review.pdf',
      sha256: Buffer.alloc(32, 7),
      recordedBy: 'ana',
      recordedAt,
      expiresAt: new Date(Date.now() + DAY_MS),
      ...changes,
    })),
  );
  await db.insert(launchGateEvidence).values(rows);
  const approvals = rows.flatMap(({ evidenceId }) =>
    operators.map((operator) => ({ evidenceId, operator, approvedAt: recordedAt })),
  );
  if (approvals.length > 0) await db.insert(launchGateApprovals).values(approvals);
  return rows.map(({ evidenceId }) => evidenceId);
}

/** Makes the store of the gates unreadable while `run` runs. */
export async function withoutGateStore<T>(owner: pg.Pool, run: () => Promise<T>): Promise<T> {
  await owner.query('ALTER TABLE launch_gate_evidence RENAME TO launch_gate_evidence_away');
  try {
    return await run();
  } finally {
    await owner.query('ALTER TABLE launch_gate_evidence_away RENAME TO launch_gate_evidence');
  }
}
