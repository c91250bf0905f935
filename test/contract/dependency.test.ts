/**
 * Which folder imports which, read from the imports of every file: values and types. Biome refuses forbidden imports
 * file by file; this test also refuses cycles, and keeps the picture in docs/architecture.md.
 */
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { LAYERS } from '../../scripts/generate/layer.ts';
import { readSource, sourceFiles } from '../support/source.ts';

/** What each folder may import. `(types)` allows nothing but types. Tests may import everything. */
const TABLE = Object.entries(LAYERS).flatMap(([name, { mayImport }]) =>
  name === 'test' ? [] : [[name, mayImport] as const],
);

type Import = { readonly from: string; readonly to: string; readonly isType: boolean };

const IMPORT =
  /^\s*(?:import|export)\s+(type\s)?(?:[^;'"]*?from\s*)?'(\.[^']+)'|(typeof\s+)?import\(\s*'(\.[^']+)'\s*\)/gm;

const importsOf = (file: string): Import[] =>
  [...readSource(file).matchAll(IMPORT)].map(([, type, from = '', typeOf, dynamic = '']) => ({
    from: file,
    to: path.join(path.dirname(file), from || dynamic),
    isType: type !== undefined || typeOf !== undefined,
  }));

const imports = sourceFiles('.ts')
  .filter((file) => file.includes('/'))
  .flatMap(importsOf);

/**
 * The top folder, or the file itself at the root. Others may import the workflows' contract, so it counts on its own.
 */
const unitOf = (file: string): string => file.split('/')[0] ?? file;
const targetOf = (file: string): string => (file === 'workflows/contract.ts' ? file : unitOf(file));

/** The arrows of a folder, sorted; `(types)` where it imports nothing but types. */
function arrowsOf(unit: string): string[] {
  const outgoing = imports.filter(({ from, to }) => unitOf(from) === unit && unitOf(to) !== unit);
  const values = new Set(outgoing.filter(({ isType }) => !isType).map(({ to }) => targetOf(to)));
  const types = outgoing.map(({ to }) => targetOf(to)).filter((target) => !values.has(target));
  return [...values, ...new Set(types.map((target) => `${target} (types)`))].sort();
}

/** The folders whose imports lead back to themselves. */
function cyclesOf(arrows: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const reached = (start: string): Set<string> => {
    const seen = new Set<string>();
    const open = [start];
    for (let unit = open.pop(); unit !== undefined; unit = open.pop())
      for (const next of arrows.get(unit) ?? []) if (!seen.has(next)) open.push(next) && seen.add(next);
    return seen;
  };
  return [...arrows.keys()].filter((unit) => reached(unit).has(unit));
}

function graphOf(edges: readonly Import[], nodeOf: (file: string) => string): Map<string, Set<string>> {
  const arrows = new Map<string, Set<string>>();
  for (const { from, to } of edges) {
    const [start, end] = [nodeOf(from), nodeOf(to)];
    if (start !== end) arrows.set(start, (arrows.get(start) ?? new Set()).add(end));
  }
  return arrows;
}

/** One line for each folder, the highest first. Types are marked only where the table allows nothing else. */
const picture = TABLE.toReversed()
  .map(([unit, allowed]) => {
    const shown = arrowsOf(unit).map((arrow) => (allowed.includes(arrow) ? arrow : arrow.replace(' (types)', '')));
    return `${unit.padEnd(10)} → ${shown.join(', ') || 'nothing'}`;
  })
  .join('\n');

test('imports of values, of types and in expressions are read', () => {
  expect(imports.length).toBeGreaterThan(1_000);
  expect(imports).toContainEqual({ from: 'api/main.ts', to: 'api/app.ts', isType: false });
  expect(imports).toContainEqual({ from: 'activities/otp.ts', to: 'workflows/contract.ts', isType: true });
});

describe.each(TABLE)('%s', (unit, allowed) => {
  test('imports only what the table allows', () => {
    const isAllowed = (arrow: string) =>
      allowed.includes(arrow) || allowed.includes(arrow.replace(' (types)', '')) || arrow === unit;
    expect(arrowsOf(unit).filter((arrow) => !isAllowed(arrow))).toEqual([]);
  });
});

test('every folder with TypeScript is in the table, and nothing but test imports test', () => {
  const units = new Set(imports.map(({ from }) => unitOf(from)));
  expect([...units].filter((unit) => !(unit in LAYERS))).toEqual([]);
  expect(imports.filter(({ from, to }) => unitOf(to) === 'test' && unitOf(from) !== 'test')).toEqual([]);
});

test('no cycle between folders, but for the types of activities that workflows call', () => {
  expect(
    cyclesOf(
      graphOf(
        imports.filter(({ isType }) => !isType),
        unitOf,
      ),
    ),
  ).toEqual([]);
  const others = imports.filter(({ to, isType }) => !(isType && unitOf(to) === 'activities'));
  expect(cyclesOf(graphOf(others, unitOf))).toEqual([]);
});

test('no cycle between the folders inside one folder', () => {
  // Files directly in the outer folder are the composition root, or what all of its folders use.
  const folderOf = (file: string) => file.split('/').slice(0, 2).join('/');
  const isInside = (file: string) => file.split('/').length > 2;
  const inside = imports.filter(
    ({ from, to }) => unitOf(from) === unitOf(to) && unitOf(from) !== 'test' && isInside(from) && isInside(to),
  );
  expect(cyclesOf(graphOf(inside, folderOf))).toEqual([]);
});

test('docs/architecture.md shows the imports as they are', () => {
  const block = /<!-- imports -->\n```\n([\s\S]*?)\n```/.exec(readSource('docs/architecture.md'))?.[1];
  expect(block).toBe(picture);
});
