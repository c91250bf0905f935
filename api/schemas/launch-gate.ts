/** The launch gates (contract §14). */
import { z } from 'zod';
import { GATE_REASONS, GATES } from '../../domain/gate.ts';
import { environment, timestamp } from './common.ts';

const LaunchGate = z
  .object({
    gate: z.enum(GATES),
    open: z.boolean(),
    reason: z.enum(GATE_REASONS).nullable().meta({ description: 'Why the gate is closed.', example: 'no_evidence' }),
    evidence: z
      .string()
      .nullable()
      .meta({ description: 'The digest of the evidence that decides whether the gate is open.', example: null }),
    expires_at: timestamp().nullable().meta({ example: null }),
  })
  .meta({ id: 'LaunchGate' });

export const LaunchGatesResponse = z
  .object({ environment: environment(), open: z.boolean().meta({ example: false }), gates: z.array(LaunchGate) })
  .meta({ id: 'LaunchGatesResponse' });
