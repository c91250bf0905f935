import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { repositoryRoot } from '../../process/local/place.ts';
import { findProcess } from '../../process/local/process-record.ts';

test('npm test -- <arguments> runs only Vitest, with these arguments, and fails when Vitest fails', async () => {
  const args = ['--import', 'tsx', 'scripts/test.ts', '--no-such-option'];
  const { exitCode, all } = await execa('node', args, { cwd: repositoryRoot, reject: false, all: true });
  expect(exitCode).toBe(1);
  expect(all).toContain('Unknown option');
  expect(all).not.toContain('npm run check');
});

test('a killed test run leaves no process, neither a server nor what a test started detached', async () => {
  const options = { cwd: repositoryRoot, preferLocal: true, reject: false } as const;
  const run = execa('vitest', ['run', '--config', 'test/fixtures/endless.config.ts'], options);
  let pids: number[] = [];
  for await (const line of createInterface({ input: run.stdout })) {
    const [, list] = /^Pids (.*)/.exec(line) ?? [];
    if (list === undefined) continue;
    pids = z.array(z.int()).length(5).parse(JSON.parse(list));
    run.kill('SIGKILL');
    break;
  }
  expect(pids).toContain(run.pid);
  await run;
  await expect.poll(() => pids.filter((pid) => findProcess(pid))).toEqual([]);
});

test.each(['SIGINT', 'SIGKILL'] as const)(
  'a command that runs a stack of its own and ends by %s leaves no process and no file',
  async (signal) => {
    expect.hasAssertions();
    const command = `import { spawn } from 'node:child_process';
      import { mkdtempSync } from 'node:fs';
      import os from 'node:os';
      import { inRunFolder } from ${JSON.stringify(path.join(repositoryRoot, 'test/support/run-folder.ts'))};
      await inRunFolder(async () => {
        const { pid } = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
        console.log(JSON.stringify([pid, mkdtempSync(os.tmpdir() + '/stack-')]));
        await new Promise(() => undefined);
      });`;
    const args = ['--import', 'tsx', '--input-type', 'module', '--eval', command];
    const run = execa('node', args, { cwd: repositoryRoot, reject: false });
    for await (const line of createInterface({ input: run.stdout })) {
      const [pid, folder] = z.tuple([z.int(), z.string()]).parse(JSON.parse(line));
      expect([existsSync(folder), findProcess(pid)?.pid]).toEqual([true, pid]);
      run.kill(signal);
      await run;
      await expect.poll(() => [existsSync(folder), findProcess(pid)]).toEqual([false, undefined]);
    }
  },
);

test('a test run on a machine that is ten times as busy has limits that are ten times as long', async () => {
  const limits = `import config from ${JSON.stringify(path.join(repositoryRoot, 'vitest.config.ts'))};
    console.log(JSON.stringify([config.test.testTimeout, config.test.expect.poll.timeout]));`;
  const args = ['--import', 'tsx', '--input-type', 'module', '--eval', limits];
  const { stdout } = await execa('node', args, { cwd: repositoryRoot, env: { SETTLEMENT_TEST_SLOWNESS: '10' } });
  expect(JSON.parse(stdout)).toEqual([10 * 600_000, 10 * 30_000]);
});
