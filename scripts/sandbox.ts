/** `npm run sandbox -- <command> …`: the local sandbox from the command line, against the stack that `npm start` runs. */
import type { SandboxCommand } from './sandbox/command.ts';
import { event } from './sandbox/event.ts';
import { listen } from './sandbox/listen.ts';
import { resolve } from './sandbox/resolve.ts';

const COMMANDS: Readonly<Record<string, SandboxCommand>> = { event, listen, resolve };

const [name = '', ...args] = process.argv.slice(2);
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
const isUsageError = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');

try {
  if (command) process.exitCode = await command.run(args);
} catch (error) {
  if (!isUsageError(error)) throw error;
  console.error(`${error.message}\nUsage: npm run sandbox -- ${command?.usage}`);
  process.exitCode = 1;
}
if (!command) {
  console.error(['Usage:', ...Object.values(COMMANDS).map(({ usage }) => `  npm run sandbox -- ${usage}`)].join('\n'));
  process.exitCode = 1;
}
