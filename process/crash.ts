/** Ends the process at a crash point, for the torture suite. */
import { writeSync } from 'node:fs';
import type { Config } from '../config/load.ts';
import type { Crash } from '../domain/crash-point.ts';

const STDERR = 2;

/** @returns what ends this process as `kill -9` does, at the configured pass of the point; undefined without one */
export function createCrash(crashAt: Config['crashAt']): Crash | undefined {
  if (crashAt === undefined) return undefined;
  let passes = 0;
  return (point) => {
    if (point !== crashAt.point) return;
    passes += 1;
    if (passes < crashAt.nth) return;
    writeSync(STDERR, `crash at ${point}\n`);
    process.kill(process.pid, 'SIGKILL');
  };
}
