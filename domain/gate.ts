/** Launch gates (contract §14): closed unless proven open, and nothing here proves one open remotely. */
export const GATES = ['compliance_program', 'provider_evidence', 'rail_admission', 'ledger_reconciliation', 'dispute_accounting', 'operator_approval'] as const;
export type Gate = (typeof GATES)[number];

export type ClosedGate = { readonly gate: Gate; readonly reason: string };

/** What a remote runtime answers while no gate has evidence. */
export const CLOSED_GATES: readonly ClosedGate[] = GATES.map((gate) => ({ gate, reason: 'no_evidence' }));
