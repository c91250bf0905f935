/**
 * `npm run ops -- <noun> <verb> …`: what operators decide by hand, in the environment that is configured. Each act and
 * its audit entry are one transaction.
 */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../config.ts';
import { connect } from '../db/client.ts';
import { DomainError } from '../domain/error.ts';
import { type OpsDeps, UsageError } from './ops/command.ts';
import { GATE_USAGE, gateCommand } from './ops/gate.ts';

type Command = { readonly run: (deps: OpsDeps, args: readonly string[]) => Promise<void>; readonly usage: readonly string[] };

const COMMANDS = new Map<string, Command>([['gate', { run: gateCommand, usage: GATE_USAGE }]]);

const USAGE = [...COMMANDS.values()].flatMap(({ usage }) => usage).map((line) => `  npm run ops -- ${line}`);

/** @returns the exit code: 0 when it was done, 1 when it was refused and nothing was written */
export async function runOps(deps: OpsDeps, [noun = '', ...args]: readonly string[]): Promise<number> {
  try {
    const command = COMMANDS.get(noun);
    if (!command) throw new UsageError([`There is no command ${JSON.stringify(noun)}.`]);
    await command.run(deps, args);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof DomainError)) throw error;
    const lines = error instanceof UsageError ? [...error.faults, 'Usage:', ...USAGE] : [`Refused, ${error.code}: ${error.detail}`];
    for (const line of lines) deps.print(line);
    return 1;
  }
}

async function main(args: readonly string[]): Promise<number> {
  const { runtime, databaseUrl } = loadConfig();
  const connection = connect(databaseUrl, { poolSizeMax: 1, name: 'settlement-ops', onIdleError: () => undefined });
  try {
    return await runOps({ runtime, db: connection.db, now: () => new Date(), print: console.log }, args);
  } finally {
    await connection.close();
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
