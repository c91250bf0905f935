import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createLogger } from '../../process/logger.ts';
import { STOPPED_BY_ERROR } from '../../process/shutdown.ts';
import { checkLogs } from './log.ts';

test('an error that ends a program after its start breaks a promise; a failed start breaks none', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'torture-log-'));
  const lines: string[] = [];
  const log = createLogger({ level: 'warn', name: 'worker' }, { write: (line) => void lines.push(line) });
  log.fatal({ err: new Error() }, 'the process could not start');
  await writeFile(path.join(folder, 'api.log'), lines.join(''));
  log.error({ err: new RangeError() }, STOPPED_BY_ERROR);
  await writeFile(path.join(folder, 'worker.log'), lines.join(''));
  const found = await checkLogs(folder);
  await rm(folder, { recursive: true });
  expect(found).toEqual([
    { rule: 'no program that has started ends by an error', detail: expect.stringMatching(/^worker: .*RangeError/) },
  ]);
});
