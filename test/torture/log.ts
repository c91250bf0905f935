/** What the logs of a run say about its programs. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { STOPPED_BY_ERROR } from '../../process/shutdown.ts';
import { PROGRAMS } from '../support/process-stack.ts';
import type { Violation } from './violation.ts';

/**
 * A program that cannot start may end: its supervisor starts it again. One that has started ends by a signal only.
 *
 * @param folder of the stack, which has a log of each program
 */
export async function checkLogs(folder: string): Promise<Violation[]> {
  const found = await Promise.all(
    PROGRAMS.map(async (program) => {
      const lines = (await readFile(path.join(folder, `${program}.log`), 'utf8')).split('\n');
      return lines
        .filter((line) => line.includes(`"${STOPPED_BY_ERROR}"`))
        .map((line) => ({ rule: 'no program that has started ends by an error', detail: `${program}: ${line}` }));
    }),
  );
  return found.flat();
}
