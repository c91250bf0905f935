/**
 * The stack that `npm start` runs in this clone, as `.local/stack.json` describes it: where it is reached, and which
 * processes belong to it. Commands read it to find the stack; only `scripts/stack/` writes it.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { RuntimeEnvironment } from '../domain/runtime.ts';
import { localDirectory } from './place.ts';
import { isRunning } from './process-record.ts';

const Process = z.object({ pid: z.number(), startedAt: z.string(), command: z.string() });

const Addresses = z.object({
  apiUrl: z.string(),
  databaseUrl: z.string(),
  temporalAddress: z.string(),
  /** Absent when the Temporal server is not the embedded one. */
  temporalUiUrl: z.string().optional(),
});

const Stack = z.object({
  supervisor: Process,
  processes: z.record(z.string(), Process),
  /** Absent until everything is ready. */
  addresses: Addresses.optional(),
});

export type StackAddresses = z.infer<typeof Addresses>;
export type StackState = z.infer<typeof Stack>;

/** The only runtime that `npm start` brings up by itself. */
const LOCAL_SANDBOX: RuntimeEnvironment = 'local-sandbox';

/** The file of a stack whose data lies in `directory`. */
export const stackFile = (directory: string): string => path.join(directory, 'stack.json');

/** Where the stack of this clone is reached; undefined when none is ready. For scripts that talk to it. */
export function findRunningStack(): StackAddresses | undefined {
  const state = readStack();
  return state && isRunning(state.supervisor) ? state.addresses : undefined;
}

/** As `findRunningStack`, and says which: for commands that a person may have meant for another one. */
export function nameRunningStack(
  say: (line: string) => void = (line) => void process.stderr.write(`${line}\n`),
): StackAddresses | undefined {
  const stack = findRunningStack();
  if (stack) say(`On the stack that runs in this clone, ${stack.apiUrl}.`);
  return stack;
}

/**
 * The environment of a command, completed from the stack of this clone where it names no database. What is given wins,
 * and an environment that is not the local sandbox's is left as it is.
 *
 * @param find asked only where something is missing
 */
export function completeEnvironment(
  given: NodeJS.ProcessEnv,
  find: () => StackAddresses | undefined = nameRunningStack,
): NodeJS.ProcessEnv {
  const runtime = given['RUNTIME_ENVIRONMENT'] || LOCAL_SANDBOX;
  const stack = given['DATABASE_URL'] || runtime !== LOCAL_SANDBOX ? undefined : find();
  if (!stack) return given;
  const TEMPORAL_ADDRESS = given['TEMPORAL_ADDRESS'] || stack.temporalAddress;
  return { ...given, RUNTIME_ENVIRONMENT: runtime, DATABASE_URL: stack.databaseUrl, TEMPORAL_ADDRESS };
}

/** What the file says, whether or not it is still true; undefined when there is none or it cannot be understood. */
export function readStack(directory = localDirectory): StackState | undefined {
  try {
    return Stack.parse(JSON.parse(readFileSync(stackFile(directory), 'utf8')));
  } catch {
    return undefined;
  }
}
