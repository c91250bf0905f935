/**
 * A stack for a tool that tests the service: the running one, or one that is started for the tool and stopped after it.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { CommandError, EXIT } from '../../ops/command-line/program.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { findRunningStack } from '../../process/local/running-stack.ts';

const START_TIMEOUT_MS = 300_000;
const POLL_MS = 200;
/** Far above what one process can serve, so that no request of the tool is refused. */
const UNLIMITED_PER_MINUTE = 1_000_000;

export type BorrowedStack = {
  readonly baseUrl: string;
  /** Whether it was started for this tool. */
  readonly isOwn: boolean;
  /** Stops it if it was started for this tool. */
  giveBack(): Promise<void>;
};

/**
 * @param url a stack to use; undefined for the one of this clone
 * @throws CommandError when no stack runs and none can be started
 */
export async function borrowStack(url: string | undefined, say: (line: string) => void): Promise<BorrowedStack> {
  const running = url ?? findRunningStack()?.apiUrl;
  if (running !== undefined) return { baseUrl: running, isOwn: false, giveBack: async () => undefined };
  say('No stack is running in this clone. Starting one for this run.');
  const program = execa(process.execPath, ['--import', 'tsx', path.join('scripts', 'start.ts')], {
    cwd: repositoryRoot,
    env: { RUNTIME_ENVIRONMENT: 'local-sandbox', RATE_LIMIT_PER_MINUTE: String(UNLIMITED_PER_MINUTE) },
    reject: false,
    all: true,
  });
  const giveBack = async () => {
    program.kill('SIGTERM');
    await program;
  };
  const end = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const started = findRunningStack()?.apiUrl;
    if (started !== undefined) return { baseUrl: started, isOwn: true, giveBack };
    if (program.exitCode !== null || Date.now() > end) {
      await giveBack();
      throw new CommandError(EXIT.unavailable, `The stack did not start: ${(await program).all}`);
    }
    await delay(POLL_MS);
  }
}
