import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { withLock } from '../../scripts/stack/installation.ts';
import { stretched } from '../support/patience.ts';
import { until } from '../support/wait.ts';

const STALL_MS = 400;
let stallMs = 0;
let binDirectory: string;

vi.mock('node:fs/promises', async (importOriginal) => {
  const original = await importOriginal<typeof import('node:fs/promises')>();
  const removeLate: typeof rm = async (...args) => {
    const ms = stallMs;
    stallMs = 0;
    if (ms > 0) await delay(ms);
    await original.rm(...args);
  };
  return { ...original, rm: removeLate };
});

beforeEach(() => {
  binDirectory = mkdtempSync(path.join(os.tmpdir(), 'lock-'));
});
afterEach(() => rmSync(binDirectory, { recursive: true, force: true }));

const MODULE = path.join(import.meta.dirname, '../../scripts/stack/installation.ts');

/** A process that takes the lock, and does this work. */
const lockedProcess = (work: string) =>
  spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', `${PREAMBLE}await withLock('work', { binDirectory }, ${work});`],
    { env: { ...process.env, MODULE, BIN: binDirectory }, stdio: ['ignore', 'inherit', 'inherit'] },
  );
const PREAMBLE = `import { appendFileSync } from 'node:fs';
  const { withLock } = await import(process.env.MODULE);
  const binDirectory = process.env.BIN;
  const note = (line) => appendFileSync(binDirectory + '/notes', line + '\\n');
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
`;
const notes = (): string => readFileSync(path.join(binDirectory, 'notes'), { encoding: 'utf8', flag: 'a+' });

test('after the process with the lock was killed, one of the others works at a time, also if one is slow to remove the lock', async () => {
  const killed = lockedProcess(`async () => { note('begun'); await sleep(60_000); }`);
  await until('work of the process', () => notes().includes('begun'), { timeoutMs: stretched(10_000) });
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  stallMs = STALL_MS;
  let [working, most] = [0, 0];
  const work = async () => {
    working += 1;
    most = Math.max(most, working);
    await delay(2 * STALL_MS);
    working -= 1;
  };
  await Promise.all([1, 2, 3].map(() => withLock('work', { binDirectory }, work)));
  expect(most).toBe(1);
  expect(readdirSync(binDirectory)).toEqual(['notes']);
});

test('of several processes, one works at a time', async () => {
  const processes = [1, 2, 3, 4].map(() =>
    lockedProcess(`async () => { note('begun'); await sleep(50); note('done'); }`),
  );
  await Promise.all(processes.map((child) => once(child, 'exit')));
  expect(notes()).toBe('begun\ndone\n'.repeat(processes.length));
  expect(readdirSync(binDirectory)).toEqual(['notes']);
});
