/**
 * Launch gates (contract §14). A gate is closed unless evidence proves it open: for this environment and this
 * corridor, not expired, not revoked, approved by two different operators. The newest evidence decides; older
 * evidence opens nothing. Every comparison is written so that what cannot be compared closes.
 */
import type { CorridorId } from './corridor.ts';
import { type EnvironmentName, isRemote, type RuntimeEnvironment } from './runtime.ts';

export const GATES = [
  'compliance_program',
  'provider_evidence',
  'rail_admission',
  'ledger_reconciliation',
  'dispute_accounting',
  'operator_approval',
] as const;
export type Gate = (typeof GATES)[number];

export const GATE_REASONS = [
  'no_evidence',
  'revoked',
  'clock_behind',
  'expired',
  'not_approved',
  'no_live_adapter',
  'other_environment',
  'unreadable',
] as const;
export type GateReason = (typeof GATE_REASONS)[number];

export type GateApproval = { readonly operator: string; readonly approvedAt: Date };

/** Evidence as stored. What it names is text: a name that the code does not know opens nothing. */
export type GateEvidence = {
  readonly evidenceId: string;
  readonly gate: string;
  readonly environment: string;
  readonly corridor: string;
  readonly reference: string;
  /** Of the document that was reviewed, in hex. */
  readonly sha256: string;
  readonly recordedBy: string;
  readonly recordedAt: Date;
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
  readonly approvals: readonly GateApproval[];
};

/** Where a step would move value; all corridors where it is not known which. */
export type GateScope = { readonly environment: EnvironmentName; readonly corridors: readonly CorridorId[] };

/** `reason` says why the gate is closed, and is null when it is open; `evidence` is what decided. */
export type GateVerdict = {
  readonly gate: Gate;
  readonly reason: GateReason | null;
  readonly evidence: GateEvidence | undefined;
};

export type ClosedGate = { readonly gate: Gate; readonly reason: GateReason };

/** Operators who must have approved, each counted once. */
export const APPROVALS_REQUIRED = 2;

/** The corridors to which a live adapter pays out: none (contract §14). */
const LIVE_ADAPTER_CORRIDORS: readonly CorridorId[] = [];

/** What a simulation needs no proof of: it moves nothing, by an adapter that is none. */
const NOT_NEEDED_TO_SIMULATE: readonly GateReason[] = ['no_evidence', 'no_live_adapter'];

/** An operator's name, one spelling for each. */
export const operatorName = (text: string): string => text.trim().toLowerCase();

/** One verdict a gate. For several corridors a gate is open when it is open in each of them. */
export function evaluateGates(evidence: readonly GateEvidence[], scope: GateScope, now: Date): readonly GateVerdict[] {
  return GATES.map((gate) => {
    const verdicts = scope.corridors.map((corridor) =>
      judge(gate, corridor, newestOf(evidence, { gate, environment: scope.environment, corridor }), now),
    );
    return (
      verdicts.find(({ reason }) => reason !== null) ??
      soonestToExpire(verdicts) ?? { gate, reason: 'no_evidence', evidence: undefined }
    );
  });
}

/** Every gate closed for one reason. */
export const allClosed = (reason: GateReason): readonly GateVerdict[] =>
  GATES.map((gate) => ({ gate, reason, evidence: undefined }));

/**
 * The gates that forbid a value step in this runtime. This is the one place where the local sandbox differs: its steps
 * are simulations, so that a gate which nobody recorded evidence for is open to them. Evidence that was recorded there
 * is judged like any other: revoke it, and the simulation stops.
 */
export function forbiddingGates(verdicts: readonly GateVerdict[], runtime: RuntimeEnvironment): readonly ClosedGate[] {
  return verdicts.flatMap(({ gate, reason }) =>
    reason === null || (!isRemote(runtime) && NOT_NEEDED_TO_SIMULATE.includes(reason)) ? [] : [{ gate, reason }],
  );
}

function judge(gate: Gate, corridor: CorridorId, evidence: GateEvidence | undefined, now: Date): GateVerdict {
  return {
    gate,
    reason: evidence ? (reasonToClose(evidence, now) ?? missingAdapter(gate, corridor)) : 'no_evidence',
    evidence,
  };
}

function reasonToClose(evidence: GateEvidence, now: Date): GateReason | null {
  if (evidence.revokedAt !== null) return 'revoked';
  if (!(evidence.recordedAt <= now)) return 'clock_behind';
  if (!(now < evidence.expiresAt)) return 'expired';
  if (!evidence.approvals.every(({ approvedAt }) => approvedAt <= now)) return 'clock_behind';
  const operators = new Set(
    evidence.approvals.map(({ operator }) => operatorName(operator)).filter((operator) => operator !== ''),
  );
  return operators.size >= APPROVALS_REQUIRED ? null : 'not_approved';
}

/** Admission to a rail is more than paper: there must be something to send with. */
const missingAdapter = (gate: Gate, corridor: CorridorId): GateReason | null =>
  gate === 'rail_admission' && !LIVE_ADAPTER_CORRIDORS.includes(corridor) ? 'no_live_adapter' : null;

function newestOf(
  evidence: readonly GateEvidence[],
  wanted: Pick<GateEvidence, 'gate' | 'environment' | 'corridor'>,
): GateEvidence | undefined {
  return evidence
    .filter(
      ({ gate, environment, corridor }) =>
        gate === wanted.gate && environment === wanted.environment && corridor === wanted.corridor,
    )
    .toSorted((a, b) => b.recordedAt.getTime() - a.recordedAt.getTime() || (a.evidenceId < b.evidenceId ? 1 : -1))[0];
}

const soonestToExpire = (verdicts: readonly GateVerdict[]): GateVerdict | undefined =>
  verdicts.toSorted((a, b) => (a.evidence?.expiresAt.getTime() ?? 0) - (b.evidence?.expiresAt.getTime() ?? 0))[0];
