/**
 * `npm run bench -- <name> …`: measures the service on the stack that `npm start` runs, and something bare on the same
 * servers in the same run. The ratio of the two depends on the code, not on the machine.
 */
import { group, type Printer, runProgram, standardOutput } from '../../ops/command-line/program.ts';
import { accept } from './accept.ts';
import { cluster } from './cluster.ts';
import { complete } from './complete.ts';
import { read } from './read.ts';
import { scale } from './scale.ts';
import { shares } from './shares.ts';
import { soak } from './soak.ts';
import { storage } from './storage.ts';
import { upgrade } from './upgrade.ts';
import { webhooks } from './webhooks.ts';
import { worker } from './worker.ts';
import { year } from './year.ts';

const benches = [...[accept, read, complete, worker, webhooks, soak, shares, storage, scale, upgrade, year, cluster]];
const program = group<Printer>('bench', 'Compares the service with the least that it could cost.', benches);

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
