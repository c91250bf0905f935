/** `npm run bench -- <name> …`: measures the stack that `npm start` runs beside something bare, in the same run, as a ratio. */
import { accept } from './accept.ts';
import type { Bench } from './bench.ts';
import { complete } from './complete.ts';
import { slowClients } from './slow-clients.ts';
import { webhooks } from './webhooks.ts';
import { worker } from './worker.ts';

const BENCHES: Readonly<Record<string, Bench>> = { accept, complete, worker, webhooks, 'slow-clients': slowClients };

const [name = '', ...args] = process.argv.slice(2);
const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
if (bench) process.exitCode = await bench.run(args);
else {
  console.error(['Usage:', ...Object.values(BENCHES).map(({ usage }) => `  npm run bench -- ${usage}`)].join('\n'));
  process.exitCode = 1;
}
