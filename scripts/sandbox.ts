/** `npm run sandbox -- <command> …`: the local sandbox from the command line, against the stack that `npm start` runs. */
import type { SandboxCommand } from './sandbox/command.ts';
import { event } from './sandbox/event.ts';
import { listen } from './sandbox/listen.ts';
import { resolve } from './sandbox/resolve.ts';

const COMMANDS: Readonly<Record<string, SandboxCommand>> = { event, listen, resolve };

const [name = '', ...args] = process.argv.slice(2);
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (command) process.exitCode = await command.run(args);
else {
  console.error(['Usage:', ...Object.values(COMMANDS).map(({ usage }) => `  npm run sandbox -- ${usage}`)].join('\n'));
  process.exitCode = 1;
}
