/**
 * The stack that `npm start` runs in this clone, as `.local/stack.json` describes it: its addresses and its processes.
 * Commands read this file to find the stack. Only `scripts/stack/` writes it.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';
import { localDirectory } from './place.ts';
import { isRunning } from './process-record.ts';

const Process = z.object({ pid: z.number(), startedAt: z.string(), command: z.string() });

const Addresses = z.object({
  apiUrl: z.string(),
  databaseUrl: z.string(),
  /** Of the role that owns the tables. */
  migrationUrl: z.string(),
  temporalAddress: z.string(),
  /** Absent when the Temporal server is not the embedded one, which has a user interface. */
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

/** The runtime that `npm start` starts. */
const LOCAL_SANDBOX: RuntimeEnvironment = 'local-sandbox';

/** The file of a stack whose data is in `directory`. */
export const stackFile = (directory: string): string => path.join(directory, 'stack.json');

/** The addresses of this clone's stack; undefined when no stack is ready. For scripts that use it. */
export function findRunningStack(): StackAddresses | undefined {
  const state = readStack();
  return state && isRunning(state.supervisor) ? state.addresses : undefined;
}

/** As `findRunningStack`, and prints which stack it is: a person may have meant the command for another one. */
export function nameRunningStack(
  say: (line: string) => void = (line) => void process.stderr.write(`${line}\n`),
): StackAddresses | undefined {
  const stack = findRunningStack();
  if (stack) say(`Using the stack that runs in this clone: ${stack.apiUrl}.`);
  return stack;
}

/**
 * The environment of a command. When it names no database and its runtime is the local sandbox, or no runtime, it gets
 * the missing variables from the stack of this clone. Variables that are set are not replaced.
 *
 * @param find is called only when the database is missing
 */
export function completeEnvironment(
  given: NodeJS.ProcessEnv,
  find: () => StackAddresses | undefined = nameRunningStack,
): NodeJS.ProcessEnv {
  const runtime = given['RUNTIME_ENVIRONMENT'] || LOCAL_SANDBOX;
  const isNamed = given['DATABASE_URL'] || given['DATABASE_URL_FILE'];
  const stack = isNamed || runtime !== LOCAL_SANDBOX ? undefined : find();
  if (!stack) return given;
  const TEMPORAL_ADDRESS = given['TEMPORAL_ADDRESS'] || stack.temporalAddress;
  const uiUrl = given['TEMPORAL_UI_URL'] || stack.temporalUiUrl;
  return {
    ...given,
    RUNTIME_ENVIRONMENT: runtime,
    DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS,
    ...(uiUrl === undefined ? {} : { TEMPORAL_UI_URL: uiUrl }),
  };
}

/**
 * The contents of the file, whether or not the stack still runs; undefined when the file is missing or invalid.
 *
 * @throws Error when the file cannot be read: a stack that another account has started may run
 */
export function readStack(directory = localDirectory): StackState | undefined {
  let text: string;
  try {
    text = readFileSync(stackFile(directory), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return Stack.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
