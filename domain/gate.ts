/**
 * Launch gates (contract §14). A gate is closed unless evidence proves it open: for this environment and this
 * corridor, not expired, not revoked, approved by two different operators. The newest evidence decides; older
 * evidence opens nothing. Every comparison is written so that an invalid date closes the gate.
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

/** Evidence as stored. Gate, environment and corridor are plain text: an unknown name opens nothing. */
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
  /** When it was read, by the database's clock: that of the process may be behind. */
  readonly readAt: Date;
};

/** Where a step would move value: its corridor, or all corridors if it is not known. */
export type GateScope = { readonly environment: EnvironmentName; readonly corridors: readonly CorridorId[] };

/** `reason` says why the gate is closed, and is null when it is open. `evidence` is the evidence that decided. */
export type GateVerdict = {
  readonly gate: Gate;
  readonly reason: GateReason | null;
  readonly evidence: GateEvidence | undefined;
};

export type ClosedGate = { readonly gate: Gate; readonly reason: GateReason };

/** How many different operators must have approved. */
export const APPROVALS_REQUIRED = 2;

/** The corridors with a live payout adapter. There is none (contract §14). */
const LIVE_ADAPTER_CORRIDORS: readonly CorridorId[] = [];

/**
 * Reasons that do not stop a simulation (contract §14): it moves no value, and it needs no live adapter. Revoked
 * evidence counts as absent.
 */
const NOT_NEEDED_TO_SIMULATE: readonly GateReason[] = ['no_evidence', 'revoked', 'no_live_adapter'];

/** Whether a closed gate lets a step pass in this runtime: only in the local sandbox, and only for some reasons. */
export const isForgiven = (reason: GateReason, runtime: RuntimeEnvironment): boolean =>
  !isRemote(runtime) && NOT_NEEDED_TO_SIMULATE.includes(reason);

/** An operator's name, normalized, so that each operator counts once. */
export const operatorName = (text: string): string => text.trim().toLowerCase();

/** A verdict for each gate. For several corridors, a gate is open if it is open in each of them. */
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

/**
 * Evidence that decides a gate, is approved, and expires within this time, or has expired within it. What newer
 * evidence replaced decides nothing.
 */
export const expiringEvidence = (
  evidence: readonly GateEvidence[],
  now: Date,
  withinMs: number,
): readonly GateEvidence[] =>
  evidence.filter(
    (item) =>
      item === newestOf(evidence, item) &&
      item.revokedAt === null &&
      reasonOfApprovals(item, now) === null &&
      Math.abs(item.expiresAt.getTime() - now.getTime()) <= withinMs,
  );

/** A verdict for each gate: closed for this reason. */
export const allClosed = (reason: GateReason): readonly GateVerdict[] =>
  GATES.map((gate) => ({ gate, reason, evidence: undefined }));

/**
 * The gates that forbid a value step in this runtime. The local sandbox differs only here: its steps are simulations,
 * so a gate without evidence does not stop them. Recorded evidence counts there too, until it is revoked.
 */
export function forbiddingGates(verdicts: readonly GateVerdict[], runtime: RuntimeEnvironment): readonly ClosedGate[] {
  return verdicts.flatMap(({ gate, reason }) =>
    reason === null || isForgiven(reason, runtime) ? [] : [{ gate, reason }],
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
  if (!(now < evidence.expiresAt && evidence.readAt < evidence.expiresAt)) return 'expired';
  return reasonOfApprovals(evidence, now);
}

function reasonOfApprovals(evidence: GateEvidence, now: Date): GateReason | null {
  if (!evidence.approvals.every(({ approvedAt }) => approvedAt <= now)) return 'clock_behind';
  const operators = new Set(
    evidence.approvals.map(({ operator }) => operatorName(operator)).filter((operator) => operator !== ''),
  );
  return operators.size >= APPROVALS_REQUIRED ? null : 'not_approved';
}

/** Rail admission needs more than evidence: a live adapter must exist. */
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
