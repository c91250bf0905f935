/** The capability catalog (contract §14). */
import { z } from 'zod';
import {
  CAPABILITY_AUDIENCES,
  CAPABILITY_CATEGORIES,
  CAPABILITY_ENVIRONMENTS,
  EVIDENCE_LEVELS,
} from '../../domain/capability.ts';
import { CAPABILITY_STATES } from '../../domain/capability-state.ts';
import { GATES } from '../../domain/gate.ts';
import { timestamp } from './common.ts';
import { capabilityState } from './payment-method.ts';

const CapabilityEntry = z
  .object({
    id: z.string().meta({ example: 'settlement-simulation' }),
    name: z.string().meta({ example: 'Settlement simulation' }),
    category: z.enum(CAPABILITY_CATEGORIES),
    description: z.string().meta({ example: 'Settlements with simulated collection and payout.' }),
    state: capabilityState(),
    environment: z.enum(CAPABILITY_ENVIRONMENTS),
    audience: z.enum(CAPABILITY_AUDIENCES),
    surface: z.string().meta({ example: 'POST /v2/settle' }),
    evidence_level: z.enum(EVIDENCE_LEVELS),
    evidence: z.array(z.string()).meta({ description: 'The tests that prove the entry.' }),
    next_gate: z.enum(GATES),
    reviewed_at: timestamp(),
  })
  .meta({ id: 'Capability' });

export const CapabilitiesResponse = z
  .object({
    schema_version: z.string().meta({ example: '1.0' }),
    updated_at: timestamp(),
    states: z.array(z.enum(CAPABILITY_STATES)),
    services: z.array(CapabilityEntry),
  })
  .meta({ id: 'CapabilitiesResponse' });

/** A loose object, because every request has other headers too. */
export const CatalogConditions = z.looseObject({
  'if-none-match': z
    .string()
    .optional()
    .meta({ description: 'If it contains the current ETag of the catalog, the answer is 304.' }),
});
