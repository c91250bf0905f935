/**
 * The bill of materials in CycloneDX 1.6: every package that the product installs (`npm ci --omit=dev`), read from
 * package-lock.json. It has no time and no random serial number, so the same lock gives the same file. A package whose
 * licence nobody has accepted makes it fail, and with it `npm run check`.
 */
import { z } from 'zod';
import { CommandError, EXIT } from '../../ops/command-line/program.ts';

const Versions = z.record(z.string(), z.string()).default({});
const LockedPackage = z.object({
  version: z.string(),
  integrity: z.string(),
  license: z.string().optional(),
  dev: z.boolean().default(false),
  optional: z.boolean().default(false),
  dependencies: Versions,
  optionalDependencies: Versions,
  peerDependencies: Versions,
});
const Root = z.object({ name: z.string(), version: z.string(), license: z.string(), dependencies: Versions });
const Lock = z.object({
  lockfileVersion: z.literal(3),
  packages: z.looseObject({ '': Root }),
});
type LockedPackage = z.infer<typeof LockedPackage>;
/** By path: `node_modules/a/node_modules/b`. */
type Packages = ReadonlyMap<string, LockedPackage>;

/** Permissive licences, as SPDX writes them: none asks for the source of what uses the package. */
const ACCEPTED_LICENCES: readonly string[] = [
  ...['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'Apache-2.0', 'Unlicense'],
  ...['Apache-2.0 AND MIT', '(MIT OR CC0-1.0)'],
];

/** Packages that a person has looked at, in exactly this version, with the licence that was found. */
const REVIEWED_LICENCES: Readonly<Record<string, string>> = {
  // Its package.json names no licence; its file LICENSE is the text of MIT.
  'png-js@2.0.0': 'MIT',
  // Its package.json names no licence; its file LICENSE is the text of the Unlicense.
  'unionfs@4.6.0': 'Unlicense',
};

/** Packages whose licence is not accepted in general, in any version, with the reason for accepting it here. */
const ACCEPTED_PACKAGES: Readonly<Record<string, string>> = {
  // A table of browsers for webpack, which bundles the workflows. It is used as published; the bundle has none of it.
  'caniuse-lite': 'CC-BY-4.0',
};

/**
 * @param lockText the text of package-lock.json
 * @throws CommandError with a line for each package whose licence is missing or not accepted
 */
export function billOfMaterials(lockText: string): string {
  const { packages } = Lock.parse(JSON.parse(lockText));
  const { '': root, ...locked } = packages;
  const product: Packages = new Map(
    Object.entries(locked)
      .map(([at, entry]) => [at, LockedPackage.parse(entry)] as const)
      .filter(([, { dev }]) => !dev),
  );
  const faults = [...product].flatMap(([at, entry]) => licenceFault(nameAt(at), entry));
  if (faults.length > 0) throw new CommandError(EXIT.refused, faults.join('\n'));
  return [
    '{',
    '"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",',
    '"bomFormat": "CycloneDX",',
    '"specVersion": "1.6",',
    '"version": 1,',
    `"metadata": ${JSON.stringify({ component: productComponent(root) })},`,
    `"components": [\n${lines([...product].map(([at, entry]) => component(at, entry)))}\n],`,
    `"dependencies": [\n${lines(dependencyGraph(root, product))}\n]`,
    '}\n',
  ].join('\n');
}

/** One line for each package, so that a change of a version is one line of a diff. */
const lines = (items: readonly object[]): string => items.map((item) => JSON.stringify(item)).join(',\n');

const MODULES = 'node_modules/';

const nameAt = (at: string): string => at.slice(at.lastIndexOf(MODULES) + MODULES.length);

const licenceOf = (name: string, { version, license }: LockedPackage): string | undefined =>
  license ?? REVIEWED_LICENCES[`${name}@${version}`];

function licenceFault(name: string, entry: LockedPackage): string[] {
  const licence = licenceOf(name, entry);
  const title = `${name}@${entry.version}`;
  if (licence === undefined) return [`${title} names no licence: read its files, then add it to REVIEWED_LICENCES`];
  if (ACCEPTED_LICENCES.includes(licence) || ACCEPTED_PACKAGES[name] === licence) return [];
  return [`${title} has the licence ${licence}, which is not accepted`];
}

const productComponent = ({ name, version, license }: z.infer<typeof Root>) => ({
  type: 'application',
  'bom-ref': name,
  name,
  version,
  licenses: [{ license: { name: license } }],
});

/** A package's path is its reference: one version of a package can be installed at several places. */
function component(at: string, entry: LockedPackage) {
  const { version, integrity, optional } = entry;
  const [scope, name] = splitScope(nameAt(at));
  const licence = licenceOf(nameAt(at), entry) ?? '';
  return {
    type: 'library',
    'bom-ref': at,
    ...(scope === undefined ? {} : { group: scope }),
    name,
    version,
    scope: optional ? 'optional' : 'required',
    hashes: [hashOf(integrity)],
    licenses: [licence.includes(' ') ? { expression: licence } : { license: { id: licence } }],
    purl: `pkg:npm/${scope === undefined ? '' : `${encodeURIComponent(scope)}/`}${name}@${version}`,
  };
}

function splitScope(fullName: string): readonly [scope: string | undefined, name: string] {
  const [first = '', second] = fullName.split('/');
  return second === undefined ? [undefined, first] : [first, second];
}

/** npm writes the digest of a package's archive in base64, and CycloneDX in hexadecimal digits. */
function hashOf(integrity: string) {
  const [algorithm = '', digest = ''] = integrity.split('-', 2);
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') };
}

function dependencyGraph({ name, dependencies }: z.infer<typeof Root>, product: Packages) {
  const needs = [...product].map(([at, entry]) => {
    const wanted = { ...entry.dependencies, ...entry.optionalDependencies, ...entry.peerDependencies };
    return { ref: at, dependsOn: resolveAll(Object.keys(wanted), at, product) };
  });
  return [{ ref: name, dependsOn: resolveAll(Object.keys(dependencies), '', product) }, ...needs];
}

/** Optional packages that are not in the lock are left out. */
const resolveAll = (names: readonly string[], from: string, product: Packages): string[] =>
  [...new Set(names)].sort().flatMap((name) => resolve(name, from, product));

/** As Node finds a package: in the folder of the one that needs it, then in each folder above. */
function resolve(name: string, from: string, product: Packages): string[] {
  const at = `${from === '' ? '' : `${from}/`}${MODULES}${name}`;
  if (product.has(at)) return [at];
  return from === '' ? [] : resolve(name, from.slice(0, Math.max(0, from.lastIndexOf(MODULES) - 1)), product);
}
