/** The licences of the packages that the product installs, read from package-lock.json. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readSource } from '../support/source.ts';

/** Permissive licences, as SPDX writes them: none asks for the source of what uses the package. */
const ACCEPTED = [
  ...['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'Apache-2.0', 'Unlicense'],
  ...['Apache-2.0 AND MIT', '(MIT OR CC0-1.0)'],
];
/** What a person has looked at, in exactly this version. Their package.json names no licence; their files do. */
const REVIEWED = ['png-js@2.0.0: none', 'unionfs@4.6.0: none'];
/** A table of browsers for webpack, which bundles the workflows. The bundle has none of it. */
const BUILD_ONLY = /^caniuse-lite@.*: CC-BY-4\.0$/;

const Lock = z.object({
  packages: z.record(
    z.string(),
    z.looseObject({ version: z.string(), license: z.string().default('none'), dev: z.boolean().default(false) }),
  ),
});

const isAccepted = (found: string): boolean =>
  ACCEPTED.some((licence) => found.endsWith(`: ${licence}`)) || REVIEWED.includes(found) || BUILD_ONLY.test(found);

test('every package of the product has an accepted licence', () => {
  const { '': _product, ...packages } = Lock.parse(JSON.parse(readSource('package-lock.json'))).packages;
  const found = Object.entries(packages)
    .filter(([, { dev }]) => !dev)
    .map(([at, { version, license }]) => `${at.split('node_modules/').at(-1)}@${version}: ${license}`);
  expect(found.length).toBeGreaterThan(200);
  expect(found.filter((entry) => !isAccepted(entry))).toEqual([]);
});

test.each(['some@1.0.0: GPL-3.0-only', 'some@1.0.0: AGPL-3.0-or-later', 'png-js@2.1.0: none', 'some@1.0.0: CC-BY-4.0'])(
  'the licence of %s is not accepted',
  (entry) => expect(isAccepted(entry)).toBe(false),
);
