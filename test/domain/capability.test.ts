/** The catalog claims only what its table allows and the tests prove (contract §14). */
import { describe, expect, test } from 'vitest';
import {
  CAPABILITY_AUDIENCES,
  CAPABILITY_CATEGORIES,
  CAPABILITY_ENVIRONMENTS,
  type Capability,
  EVIDENCE_LEVELS,
} from '../../domain/capability.ts';
import { CAPABILITY_CATALOG } from '../../domain/capability-catalog.ts';
import { CAPABILITY_STATES } from '../../domain/capability-state.ts';
import { OPERATIONS } from '../contract/operations.ts';
import { hasTest, readSource } from '../support/source.ts';

const { services } = CAPABILITY_CATALOG;

/** The table, written out a second time. */
const SPECIFIED = readSource('test/contract/capability-states.csv')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => line.split(','));

describe('the catalog', () => {
  test('has the 25 entries of the table, each in its state', () => {
    expect(SPECIFIED).toHaveLength(25);
    const sorted = (rows: readonly (readonly string[])[]) =>
      rows.map((row) => row.join(': ')).sort((a, b) => a.localeCompare(b));
    expect(sorted(services.map(({ state, id }) => [state, id]))).toEqual(sorted(SPECIFIED));
  });

  test('has all texts of each entry, and names tests where an entry is called tested', () => {
    for (const { name, description, surface, evidenceLevel, evidence } of services) {
      for (const text of [name, description, surface]) expect(text).toMatch(/\S/);
      expect(evidence.length > 0).toBe(evidenceLevel === 'locally tested');
    }
  });

  test('was updated at its newest review', () => {
    const reviews = services.map(({ reviewedAt }) => reviewedAt).sort();
    expect(reviews.map((at) => new Date(at).toISOString())).toEqual(reviews);
    expect(CAPABILITY_CATALOG.updatedAt).toBe(reviews.at(-1));
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
});

const proofs = services.flatMap(({ id, evidence }: Capability) =>
  evidence.map((proof) => [id, ...proof.split(' › ')] as const),
);

describe('the evidence of an entry exists', () => {
  test.each(proofs)('%s: %s › %s', (_id, file = '', name = '') => {
    expect(hasTest(`${file.replace(/^test\/(.*)\.test\.ts$/, '$1')} > ${name}`)).toBe(true);
  });
});
