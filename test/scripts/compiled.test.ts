import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test, vi } from 'vitest';
import { nameBuilt } from '../../process/local/content-hash.ts';
import { compiledPrograms } from '../../scripts/stack/compiled.ts';

test.each(['own code', 'with packages'] as const)(
  'a program built for a fast start (%s) runs as its source does, and is built once for the same sources',
  async (extent) => {
    const [{ ops }, { ops: meanwhile }] = await Promise.all([
      compiledPrograms(['ops'], extent),
      compiledPrograms(['ops'], extent),
    ]);
    expect(meanwhile).toBe(ops);
    const builtAt = statSync(ops).mtimeMs;
    const { stdout } = await execa(process.execPath, [ops, '--help']);
    expect(stdout).toContain('Usage: npm run ops -- ');
    await compiledPrograms(['ops'], extent);
    expect(statSync(ops).mtimeMs).toBe(builtAt);
  },
);

test('what is built is on the disk before it has its name: after a power cut, no name stands for empty files', async ({
  onTestFinished,
}) => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'built-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [built, name] = ['built', 'name'].map((folder) => path.join(directory, folder));
  if (!built || !name) return expect.unreachable();
  mkdirSync(path.join(built, 'below'), { recursive: true });
  for (const file of ['main.mjs', 'below/part.mjs']) writeFileSync(path.join(built, file), 'code');
  const file = await open(path.join(built, 'main.mjs'));
  const flush = vi.spyOn(Object.getPrototypeOf(file) as typeof file, 'sync');
  onTestFinished(() => void flush.mockRestore());
  await file.close();
  const named: boolean[] = [];
  flush.mockImplementation(async () => void named.push(existsSync(name)));
  await nameBuilt(built, name);
  expect([named, existsSync(path.join(name, 'below/part.mjs'))]).toEqual([[false, false], true]);
});
