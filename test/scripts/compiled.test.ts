import { statSync } from 'node:fs';
import { execa } from 'execa';
import { expect, test } from 'vitest';
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
