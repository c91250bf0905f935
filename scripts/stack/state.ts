/**
 * `.local/stack.json`: which stack of this clone is running, where it is reached, and which processes belong to it.
 * It holds the database's password, so only its owner can read it. It is there from the first start to the clean stop;
 * found without its supervisor, it tells the next start what a kill left behind.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';
import { localDirectory } from './place.ts';
import { isRunning } from './process.ts';

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

const fileIn = (directory: string): string => path.join(directory, 'stack.json');

/** Where the stack of this clone is reached; undefined when none is ready. For scripts that talk to it. */
export function findRunningStack(): StackAddresses | undefined {
  const state = readStack();
  return state && isRunning(state.supervisor) ? state.addresses : undefined;
}

/** As `findRunningStack`, and says which: for commands that a person may have meant for another one. */
export function nameRunningStack(say: (line: string) => void = console.error): StackAddresses | undefined {
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
export function completeEnvironment(given: NodeJS.ProcessEnv, find: () => StackAddresses | undefined = nameRunningStack): NodeJS.ProcessEnv {
  const runtime = given['RUNTIME_ENVIRONMENT'] || LOCAL_SANDBOX;
  const stack = given['DATABASE_URL'] || runtime !== LOCAL_SANDBOX ? undefined : find();
  if (!stack) return given;
  const TEMPORAL_ADDRESS = given['TEMPORAL_ADDRESS'] || stack.temporalAddress;
  return { ...given, RUNTIME_ENVIRONMENT: runtime, DATABASE_URL: stack.databaseUrl, TEMPORAL_ADDRESS };
}

/** What the file says, whether or not it is still true; undefined when there is none or it cannot be understood. */
export function readStack(directory = localDirectory): StackState | undefined {
  try {
    return Stack.parse(JSON.parse(readFileSync(fileIn(directory), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Replaces the file in one step, so that nobody reads half of it. */
export function writeStack(state: StackState, directory = localDirectory): void {
  const file = fileIn(directory);
  mkdirSync(directory, { recursive: true });
  const temporary = `${file}.${process.pid}`;
  writeFileSync(temporary, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}

export const removeStack = (directory = localDirectory): void => rmSync(fileIn(directory), { force: true });
