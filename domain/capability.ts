/**
 * The catalog of what the service offers, and in which state (contract §14). No capability is `live` or in
 * `maintenance`; written code or an endpoint that answers does not make it so. With an invalid catalog the service does
 * not start.
 */
import type { CapabilityState } from './capability-state.ts';
import { GATES, type Gate } from './gate.ts';
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
  readonly state: CapabilityState;
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

/** The states that entries of the catalog may have. Each entry of the catalog must agree with it. */
const SPECIFIED_STATES: Readonly<Record<Exclude<CapabilityState, 'live' | 'maintenance'>, readonly string[]>> = {
  'local sandbox': [
    'recipient-records',
    'quote-estimates',
    'payment-method-discovery',
    'settlement-simulation',
    'settlement-reads',
    'caribbean-corridor-metadata',
    'compliance-evidence',
    'evidence-certificates',
    'webhook-delivery-history',
  ],
  gated: [
    'partner-api-catalog',
    'sdk-packages',
    'recipient-creation',
    'kyb-kyc-orchestration',
    'ach-card-wire-collection',
    'public-certificate-verification',
    'webhook-subscriptions',
    'usage-reporting',
    'onchain-settlement-execution',
  ],
  unavailable: [
    'jmd-local-payout',
    'partner-balances',
    'three-way-reconciliation',
    'returns-refunds-disputes',
    'batch-payables',
    'published-certificate-anchor',
    'production-certification',
  ],
};

const EVIDENCE = /^test\/[a-z0-9/-]+\.test\.ts › \S.*$/;
const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

/** Every fault of a catalog, one sentence each; empty if the catalog is valid. */
export function catalogFaults({ updatedAt, services }: CapabilityCatalog): string[] {
  const specified = new Map(
    Object.entries(SPECIFIED_STATES).flatMap(([state, ids]) => ids.map((id) => [id, state] as const)),
  );
  const ids = services.map(({ id }) => id);
  const latest = services
    .map(({ reviewedAt }) => reviewedAt)
    .sort()
    .at(-1);
  return [
    ...[...specified.keys()].filter((id) => !ids.includes(id)).map((id) => `${id} is missing`),
    ...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `${id} is there twice`),
    ...(updatedAt === latest ? [] : ['updatedAt is not the time of the newest review']),
    ...services.flatMap((entry) => entryFaults(entry, specified.get(entry.id)).map((fault) => `${entry.id} ${fault}`)),
  ];
}

/** @throws Error naming every fault */
export function requireValidCatalog(catalog: CapabilityCatalog): void {
  const faults = catalogFaults(catalog);
  if (faults.length > 0) throw new Error(`The capability catalog is invalid: ${faults.join('; ')}.`);
}

function entryFaults(entry: Capability, specifiedState: string | undefined): string[] {
  const isTested = entry.evidenceLevel === 'locally tested';
  const checks: readonly (readonly [boolean, string])[] = [
    [specifiedState !== undefined, 'has no state in the table'],
    [specifiedState === undefined || entry.state === specifiedState, `is ${entry.state}, not ${specifiedState}`],
    [CAPABILITY_CATEGORIES.includes(entry.category), 'has an unknown category'],
    [CAPABILITY_ENVIRONMENTS.includes(entry.environment), 'has an unknown environment'],
    [CAPABILITY_AUDIENCES.includes(entry.audience), 'has an unknown audience'],
    [EVIDENCE_LEVELS.includes(entry.evidenceLevel), 'has an unknown evidence level'],
    [GATES.includes(entry.nextGate), 'has an unknown next gate'],
    [[entry.name, entry.description, entry.surface].every((text) => text.trim() !== ''), 'has an empty text'],
    [TIMESTAMP.test(entry.reviewedAt) && !Number.isNaN(Date.parse(entry.reviewedAt)), 'has an invalid review time'],
    [
      isTested === entry.evidence.length > 0,
      isTested ? 'is called tested but names no test' : 'names tests but is not called tested',
    ],
    [entry.evidence.every((test) => EVIDENCE.test(test)), 'names a test that is not of the form `<file> › <name>`'],
  ];
  return checks.filter(([valid]) => !valid).map(([, fault]) => fault);
}
