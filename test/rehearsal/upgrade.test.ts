import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { test as base, expect } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { releasedSources, whyNotReleased } from './released.ts';
import { rehearseUpgrade } from './upgrade.ts';

const test = base.extend('released', async ({ skip }) => {
  const missing = await whyNotReleased();
  if (missing !== undefined) skip(missing);
  return await releasedSources();
});

/** Of each activity: this version takes what the released one sends and returned, and sends what that one takes. */
const COMPARISON = `
import type { Activities as Now } from '${path.join(repositoryRoot, 'activities/index.ts')}';
import type { Activities as Released } from './activities/index.ts';
type Both = keyof Now & keyof Released;
type Input<Of, Name> = Name extends keyof Of ? (Of[Name] extends (...input: infer In) => unknown ? In : never) : never;
type Result<Of, Name> = Name extends keyof Of ? (Of[Name] extends (...input: never[]) => infer Out ? Out : never) : never;
type IsChanged<Name> = [Input<Released, Name>, Input<Now, Name>, Result<Released, Name>] extends
  [Input<Now, Name>, Input<Released, Name>, Result<Now, Name>] ? false : true;
type Listed<Names> = [Names] extends [never] ? 'none' : Names;
export const changed: Listed<{ [Name in Both]: IsChanged<Name> extends true ? Name : never }[Both]> = 'none';
export const missing: Listed<Exclude<keyof Released, keyof Now>> = 'none';
`;

test('an upgrade from the released version and the way back lose and double nothing, in every state', async ({
  released: _,
}) => {
  const { ways, violations } = await rehearseUpgrade({ extent: 'each state', say: () => undefined });
  expect(ways.flatMap(({ faults }) => faults)).toEqual([]);
  expect(violations).toEqual([]);
  expect([...new Set(ways.flatMap(({ rested }) => rested))].sort()).toEqual([
    'accepted',
    'awaiting_funds',
    'compliance_hold',
    'expired',
    'needs_review',
    'paying_out',
    'settled',
  ]);
});

test('no released migration is changed: a change of the schema is a migration of its own', async ({ released }) => {
  const folder = 'db/migrations';
  for (const name of (await readdir(path.join(released, folder))).filter((file) => file.endsWith('.sql'))) {
    const [before, now] = await Promise.all(
      [released, repositoryRoot].map((root) => readFile(path.join(root, folder, name), 'utf8')),
    );
    expect(now, name).toBe(before);
  }
});

test('no released activity has another input or result, or is missing: a new meaning gets a new name', async ({
  released,
}) => {
  const config = path.join(released, 'comparison.json');
  const extended = path.join(repositoryRoot, 'tsconfig.json');
  await writeFile(path.join(released, 'comparison.ts'), COMPARISON);
  await writeFile(config, JSON.stringify({ extends: extended, files: ['comparison.ts'], include: [] }));
  const { stdout, exitCode } = await execa('tsc', ['--singleThreaded', '-p', config], {
    preferLocal: true,
    cwd: repositoryRoot,
    reject: false,
  });
  expect([stdout, exitCode]).toEqual(['', 0]);
});
