/** The capability catalog (contract §14). */
import { z } from 'zod';
import {
  CAPABILITY_AUDIENCES,
  CAPABILITY_CATEGORIES,
  CAPABILITY_ENVIRONMENTS,
  EVIDENCE_LEVELS,
} from '../../domain/capability.ts';
import { closedEnum, openEnum, outputText, timestamp } from './common.ts';
import { gateName } from './launch-gate.ts';
import { CapabilityState, capabilityState } from './payment-method.ts';

const Category = openEnum('CapabilityCategory', CAPABILITY_CATEGORIES, 'What a capability is about.');
const Audience = closedEnum('CapabilityAudience', CAPABILITY_AUDIENCES, '`public`: without a key.');
const EvidenceLevel = openEnum('EvidenceLevel', EVIDENCE_LEVELS, 'How an entry of the catalog is proved.');
const CapabilityEnvironment = closedEnum('CapabilityEnvironment', CAPABILITY_ENVIRONMENTS, '`public`: everywhere.');

const CapabilityEntry = z
  .object({
    id: outputText('The id of the entry.', 'settlement-simulation'),
    name: outputText('For people.', 'Settlement simulation'),
    category: Category.meta({ description: 'What the capability is about.' }),
    description: outputText('What the capability is.', 'Settlements with simulated collection and payout.'),
    state: capabilityState(),
    environment: CapabilityEnvironment.meta({ description: 'Where the capability is, or would belong.' }),
    audience: Audience.meta({ description: 'For whom the capability is, or would be.' }),
    surface: outputText('Where it is found: an operation, a page or a document.', 'POST /v2/settle'),
    evidence_level: EvidenceLevel.meta({ description: 'How the entry is proved.' }),
    evidence: z.array(z.string()).meta({ description: 'The tests that prove the entry.' }),
    next_gate: gateName('What must be shown before the state can change.'),
    reviewed_at: timestamp('When the entry was last reviewed.'),
  })
  .meta({ id: 'CapabilityEntry', description: 'An entry of the capability catalog.' });

export const CapabilitiesResponse = z
  .object({
    schema_version: outputText('The version of this form.', '1.0'),
    updated_at: timestamp('When the catalog was last changed.'),
    states: z.array(CapabilityState).meta({ description: 'Every state that an entry can have.' }),
    services: z.array(CapabilityEntry).meta({ description: 'The entries that the caller may see.' }),
  })
  .meta({ id: 'CapabilitiesResponse' });
