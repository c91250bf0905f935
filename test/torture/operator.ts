/** Operators' commands, each as a process of its own. */
import { execa } from 'execa';
import { EXIT } from '../../ops/command-line/program.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { stretched } from '../support/patience.ts';
import type { ProcessStack } from '../support/process-stack.ts';

/** How a command ended. `unknown`: it may have done its work, or may not. */
export type Outcome = 'done' | 'refused' | 'unknown';

/** A command without `--operator`, `--note` and `--yes`. */
export type Operate = (args: readonly string[]) => Promise<Outcome>;

const TIMEOUT_MS = stretched(60_000);

export const runOperator = (
  { programFile, env }: Pick<ProcessStack, 'programFile' | 'env'>,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
) =>
  execa('node', [programFile('ops'), ...args], {
    cwd: repositoryRoot,
    env: { ...env, ...more },
    reject: false,
    all: true,
    timeout: TIMEOUT_MS,
  } as const);

/** How a command with this exit code ended. */
export function outcomeOf(exitCode: number | undefined): Outcome {
  if (exitCode === EXIT.done) return 'done';
  return exitCode === EXIT.refused ? 'refused' : 'unknown';
}

export const operatorOf =
  (stack: ProcessStack): Operate =>
  async (args) =>
    outcomeOf((await runOperator(stack, [...args, '--operator', 'oracle', '--note', 'torture', '--yes'])).exitCode);
