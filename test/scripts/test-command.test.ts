import { execa } from 'execa';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../process/place.ts';

test('npm test -- <arguments> runs only Vitest, with these arguments, and fails when Vitest fails', async () => {
  const args = ['--import', 'tsx', 'scripts/test.ts', '--no-such-option'];
  const { exitCode, all } = await execa('node', args, { cwd: repositoryRoot, reject: false, all: true });
  expect(exitCode).toBe(1);
  expect(all).toContain('Unknown option');
  // The check before the tests would have printed this.
  expect(all).not.toContain('Checked');
}, 30_000);
