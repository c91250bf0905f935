/** The bill of materials: complete, in the form of CycloneDX 1.6, and refused when a licence is not accepted. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CommandError } from '../../ops/command-line/program.ts';
import { billOfMaterials } from '../../scripts/generate/sbom.ts';
import { readSource } from '../support/source.ts';

const LOCK = readSource('package-lock.json');
const MODULES = 'node_modules/';

/** What the schema of CycloneDX 1.6 requires of the fields that are used. The strict objects allow no other field. */
const Licence = z.union([
  z.strictObject({ license: z.strictObject({ id: z.string().regex(/^[A-Za-z0-9.-]+$/) }) }),
  z.strictObject({ expression: z.string().regex(/ (AND|OR) /) }),
]);
const Component = z.strictObject({
  type: z.literal('library'),
  'bom-ref': z.string().startsWith(MODULES),
  group: z.string().startsWith('@').optional(),
  name: z.string().regex(/^[a-z0-9._-]+$/i),
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  scope: z.enum(['required', 'optional']),
  hashes: z.tuple([z.strictObject({ alg: z.literal('SHA-512'), content: z.string().regex(/^[0-9a-f]{128}$/) })]),
  licenses: z.tuple([Licence]),
  purl: z.string().regex(/^pkg:npm\/(%40[^/@]+\/)?[^/@]+@\d/),
});
const Bill = z.strictObject({
  $schema: z.literal('http://cyclonedx.org/schema/bom-1.6.schema.json'),
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.literal('1.6'),
  version: z.literal(1),
  metadata: z.strictObject({ component: z.looseObject({ type: z.literal('application'), 'bom-ref': z.string() }) }),
  components: z.array(Component),
  dependencies: z.array(z.strictObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

const LockedPackages = z.record(
  z.string(),
  z.looseObject({ dev: z.boolean().default(false), dependencies: z.record(z.string(), z.string()).default({}) }),
);

const bill = Bill.parse(JSON.parse(billOfMaterials(LOCK)));
const locked = z.object({ packages: LockedPackages }).parse(JSON.parse(LOCK)).packages;
const references = bill.components.map((component) => component['bom-ref']);
const dependsOn = new Map(bill.dependencies.map((entry) => [entry.ref, entry.dependsOn]));

/** The bill of a product that has this one package. */
const billOf = (at: string, fields: object): string =>
  billOfMaterials(
    JSON.stringify({
      lockfileVersion: 3,
      packages: {
        '': { name: 'product', version: '1.0.0', license: 'UNLICENSED' },
        [at]: { version: '1.0.0', integrity: 'sha512-AAAA', ...fields },
      },
    }),
  );

describe('the bill of materials', () => {
  test('has every locked package that is not only for development, once', () => {
    const expected = Object.entries(locked).filter(([at, { dev }]) => at !== '' && !dev);
    expect(expected.length).toBeGreaterThan(200);
    expect(references).toEqual(expected.map(([at]) => at));
    expect(new Set(references).size).toBe(references.length);
  });

  test('has every dependency of every package, and nothing else', () => {
    const nameOf = (at: string) => at.slice(at.lastIndexOf(MODULES) + MODULES.length);
    const missing = Object.entries(locked).flatMap(([at, { dependencies }]) => {
      const found = dependsOn.get(at === '' ? bill.metadata.component['bom-ref'] : at)?.map(nameOf);
      return Object.keys(dependencies).filter((name) => found !== undefined && !found.includes(name));
    });
    expect(missing).toEqual([]);
    expect([...dependsOn.keys()]).toEqual([bill.metadata.component['bom-ref'], ...references]);
    expect([...dependsOn.values()].flat().filter((at) => !references.includes(at))).toEqual([]);
  });

  test('reaches every package from the product', () => {
    const reached = new Set([bill.metadata.component['bom-ref']]);
    for (const reference of reached) for (const next of dependsOn.get(reference) ?? []) reached.add(next);
    expect(references.filter((reference) => !reached.has(reference))).toEqual([]);
  });

  test('names a nested package by its own folder, and its scope apart', () => {
    const nested = Bill.parse(
      JSON.parse(
        billOf('node_modules/a/node_modules/@scope/b', { license: 'MIT', integrity: `sha512-${'A'.repeat(86)}==` }),
      ),
    );
    expect(nested.components).toMatchObject([{ group: '@scope', name: 'b', purl: 'pkg:npm/%40scope/b@1.0.0' }]);
  });
});

describe('a package of the product', () => {
  test.each(['MIT', 'Apache-2.0 AND MIT', '(MIT OR CC0-1.0)'])('may have the licence %s', (license) => {
    expect(() => billOf('node_modules/some', { license })).not.toThrow();
  });

  test.each(['GPL-3.0-only', 'AGPL-3.0-or-later', 'MPL-2.0', 'CC-BY-4.0', 'SEE LICENSE IN LICENSE', 'UNLICENSED', ''])(
    'is refused with the licence "%s"',
    (license) => {
      expect(() => billOf('node_modules/some', { license })).toThrow(CommandError);
      expect(() => billOf('node_modules/some', { license })).toThrow(/^some@1\.0\.0 has the licence .*not accepted$/);
    },
  );

  test('is refused without a licence, also when another version of it was reviewed', () => {
    expect(() => billOf('node_modules/png-js', {})).toThrow(/^png-js@1\.0\.0 names no licence/);
    expect(() => billOf('node_modules/png-js', { version: '2.0.0' })).not.toThrow();
  });

  test('may have any licence when only development needs it', () => {
    expect(() => billOf('node_modules/some', { license: 'GPL-3.0-only', dev: true })).not.toThrow();
  });
});
