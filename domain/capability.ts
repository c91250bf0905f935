/**
 * The catalog of what the service offers, and in which state (contract §14). No capability is `live` or in
 * `maintenance`; written code or an endpoint that answers does not make it so.
 */
import type { CapabilityState } from './capability-state.ts';
import type { Gate } from './gate.ts';
import type { EnvironmentName } from './runtime.ts';

export const CAPABILITY_CATEGORIES = [
  'developer',
  'recipients',
  'identity',
  'quotes',
  'payins',
  'payouts',
  'balances',
  'compliance',
  'evidence',
  'events',
  'reports',
  'reconciliation',
  'exceptions',
  'batch',
  'onchain',
] as const;
type CapabilityCategory = (typeof CAPABILITY_CATEGORIES)[number];

export const CAPABILITY_ENVIRONMENTS = [
  'public',
  'local sandbox',
  'remote sandbox',
  'production',
] as const satisfies readonly ('public' | EnvironmentName)[];
type CapabilityEnvironment = (typeof CAPABILITY_ENVIRONMENTS)[number];

export const CAPABILITY_AUDIENCES = ['public', 'authenticated partner'] as const;
type CapabilityAudience = (typeof CAPABILITY_AUDIENCES)[number];

export const EVIDENCE_LEVELS = ['locally tested', 'documented'] as const;
type EvidenceLevel = (typeof EVIDENCE_LEVELS)[number];

export type Capability = {
  readonly id: string;
  readonly name: string;
  readonly category: CapabilityCategory;
  readonly description: string;
  readonly state: Exclude<CapabilityState, 'live' | 'maintenance'>;
  /** Where it is offered, or where it would belong. */
  readonly environment: CapabilityEnvironment;
  /** `public` only where no key is, or would be, needed. */
  readonly audience: CapabilityAudience;
  /** The operations that offer it, or a few words if there are none. */
  readonly surface: string;
  readonly evidenceLevel: EvidenceLevel;
  /** The tests that prove it, each as `<file> › <name of the test>`; none for a documented capability. */
  readonly evidence: readonly string[];
  /** The launch gate that must open before its next state. */
  readonly nextGate: Gate;
  /** RFC 3339, UTC, milliseconds. */
  readonly reviewedAt: string;
};

export type CapabilityCatalog = {
  readonly schemaVersion: string;
  readonly updatedAt: string;
  readonly services: readonly Capability[];
};
