import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { removeAbandoned } from './released.ts';

test('what an interrupted build of a released version left is removed; a complete or a running one stays', async ({
  onTestFinished,
}) => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'released-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const { pid: ended } = spawnSync(process.execPath, ['--version']);
  for (const name of ['c0ffee', `c0ffee.${process.pid}`, `c0ffee.${ended}`, `0ld.${ended}`])
    mkdirSync(path.join(directory, name, 'api'), { recursive: true });
  for (const name of [`c0ffee.${process.pid}.tar`, `c0ffee.${ended}.tar`])
    writeFileSync(path.join(directory, name), '');
  await removeAbandoned(directory);
  const kept = ['c0ffee', `c0ffee.${process.pid}`, `c0ffee.${process.pid}.tar`];
  expect(readdirSync(directory).toSorted()).toEqual(kept);
  await removeAbandoned(path.join(directory, 'missing'));
});
