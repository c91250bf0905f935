/** The launch gates (contract §14). */
import { z } from 'zod';
import { GATE_REASONS, GATES } from '../../domain/gate.ts';
import { environment, flag, openEnum, outputTextOrNull, timestampOrNull } from './common.ts';

const GateName = openEnum('LaunchGateName', GATES, 'What must be shown before value may move.');
const GateReason = openEnum('LaunchGateReason', GATE_REASONS, 'Why a gate is closed.');
export const gateName = (description: string) => GateName.meta({ description });

const LaunchGate = z
  .object({
    gate: gateName('The gate.'),
    open: flag('Whether the gate is open.'),
    reason: GateReason.nullable().meta({ description: 'Why the gate is closed; null if it is open.' }),
    evidence: outputTextOrNull('The digest of the evidence that decides whether the gate is open.', null),
    expires_at: timestampOrNull('When that evidence expires.'),
  })
  .meta({ id: 'LaunchGate', description: 'The state of a launch gate.' });

export const LaunchGatesResponse = z
  .object({
    environment: environment(),
    open: flag('Whether every gate is open. Even then, nothing moves value outside the local sandbox.'),
    gates: z.array(LaunchGate).meta({ description: 'Every gate.' }),
  })
  .meta({ id: 'LaunchGatesResponse' });

/** As the problem `launch_gates_closed` lists it. */
export const ClosedGate = z
  .object({ gate: gateName('The gate.'), reason: GateReason.meta({ description: 'Why it is closed.' }) })
  .meta({ id: 'ClosedLaunchGate', description: 'A closed launch gate.' });
