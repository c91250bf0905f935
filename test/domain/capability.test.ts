/** The catalog claims only what its table allows and the tests prove (contract §14). */
import { describe, expect, test } from 'vitest';
import {
  CAPABILITY_AUDIENCES,
  CAPABILITY_CATEGORIES,
  CAPABILITY_ENVIRONMENTS,
  type Capability,
  type CapabilityCatalog,
  catalogFaults,
  EVIDENCE_LEVELS,
  requireValidCatalog,
} from '../../domain/capability.ts';
import { CAPABILITY_CATALOG } from '../../domain/capability-catalog.ts';
import { CAPABILITY_STATES } from '../../domain/capability-state.ts';
import { catalogResource } from '../../domain/resource/capability.ts';
import { OPERATIONS } from '../contract/operations.ts';
import { hasTest, readSource } from '../support/source.ts';

const { services } = CAPABILITY_CATALOG;

/** The table, written out a second time. */
const SPECIFIED = readSource('test/contract/capability-states.csv')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => line.split(','));

/** The catalog with one entry changed. */
const withEntry = (id: string, changes: Readonly<Record<string, unknown>>): CapabilityCatalog => ({
  ...CAPABILITY_CATALOG,
  services: services.map((entry) => (entry.id === id ? { ...entry, ...changes } : entry)),
});
const ANY = 'settlement-simulation';

describe('a catalog is invalid', () => {
  test.each(['live', 'maintenance'])('any entry is %s', (state) => {
    for (const { id } of services)
      expect(() => requireValidCatalog(withEntry(id, { state }))).toThrow(`${id} is ${state}`);
  });

  test('an entry has another state than the specified one', () => {
    for (const { id, state } of services) {
      for (const other of CAPABILITY_STATES.filter((candidate) => candidate !== state)) {
        expect(catalogFaults(withEntry(id, { state: other }))).toEqual([`${id} is ${other}, not ${state}`]);
      }
    }
  });

  test('an entry is missing, unknown or there twice', () => {
    for (const { id } of services) {
      expect(catalogFaults({ ...CAPABILITY_CATALOG, services: services.filter((entry) => entry.id !== id) })).toEqual([
        `${id} is missing`,
      ]);
    }
    expect(catalogFaults({ ...CAPABILITY_CATALOG, services: [...services, ...services.slice(0, 1)] })).toHaveLength(1);
    expect(catalogFaults(withEntry(ANY, { id: 'instant-payouts' }))).toContain(
      'instant-payouts has no state in the table',
    );
  });

  test.each([
    ['category', 'payments'],
    ['environment', 'local-sandbox'],
    ['audience', 'everyone'],
    ['evidenceLevel', 'certified'],
    ['nextGate', 'none'],
    ['name', ''],
    ['description', ' '],
    ['surface', ''],
    ['reviewedAt', '2026-02-30'],
    ['reviewedAt', '2026-11-21'],
    ['evidence', []],
    ['evidence', ['all tests']],
    ['evidence', ['domain/gate.ts › GATES']],
    ['evidenceLevel', 'documented'],
  ])('an entry has %s %j', (field, value) => {
    expect(() => requireValidCatalog(withEntry(ANY, { [field]: value }))).toThrow(ANY);
  });

  test('it is older or newer than its newest review', () => {
    expect(catalogFaults({ ...CAPABILITY_CATALOG, updatedAt: '2026-11-22T08:00:00.000Z' })).toHaveLength(1);
    expect(catalogFaults(withEntry(ANY, { reviewedAt: '2026-11-22T08:00:00.000Z' }))).toHaveLength(1);
  });
});

describe('the catalog', () => {
  test('has the 25 entries of the table, each in its state', () => {
    expect(SPECIFIED).toHaveLength(25);
    const sorted = (rows: readonly (readonly string[])[]) =>
      rows.map((row) => row.join(': ')).sort((a, b) => a.localeCompare(b));
    expect(sorted(services.map(({ state, id }) => [state, id]))).toEqual(sorted(SPECIFIED));
  });

  test('is valid', () => {
    expect(() => requireValidCatalog(CAPABILITY_CATALOG)).not.toThrow();
  });

  test('uses every category, and no value that the table does not list', () => {
    expect(new Set(services.map(({ category }) => category))).toEqual(new Set(CAPABILITY_CATEGORIES));
    expect(CAPABILITY_ENVIRONMENTS).toEqual(['public', 'local sandbox', 'remote sandbox', 'production']);
    expect(CAPABILITY_AUDIENCES).toEqual(['public', 'authenticated partner']);
    expect(EVIDENCE_LEVELS).toEqual(['locally tested', 'documented']);
    expect(CAPABILITY_STATES).toEqual(['live', 'local sandbox', 'gated', 'maintenance', 'unavailable']);
  });

  test('is for everyone only where no operation takes a key', () => {
    const keyed = OPERATIONS.filter(({ auth }) => auth === 'api_key').map(({ path: address }) => address);
    const open = services.filter(({ audience }) => audience === 'public');
    expect(open.length).toBeGreaterThan(2);
    const addresses = (surface: string) => surface.match(/\/[a-z0-9{}/_.-]+/g) ?? [];
    expect(open.filter(({ surface }) => addresses(surface).some((address) => keyed.includes(address)))).toEqual([]);
  });

  test('shows partners every entry, and everyone else the public ones', () => {
    const everyone = catalogResource(CAPABILITY_CATALOG, false).services;
    expect(new Set(everyone.map(({ audience }) => audience))).toEqual(new Set(['public']));
    expect(catalogResource(CAPABILITY_CATALOG, true).services).toHaveLength(25);
    expect(everyone.length).toBeLessThan(25);
  });
});

const proofs = services.flatMap(({ id, evidence }: Capability) =>
  evidence.map((proof) => [id, ...proof.split(' › ')] as const),
);

describe('the evidence of an entry exists', () => {
  test.each(proofs)('%s: %s › %s', (_id, file = '', name = '') => {
    expect(hasTest(`${file.replace(/^test\/(.*)\.test\.ts$/, '$1')} > ${name}`)).toBe(true);
  });
});
