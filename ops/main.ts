/**
 * `npm run ops -- <command> …`: what operators see and decide by hand, in the environment that is configured, or on the
 * stack that runs in this clone. Each act and its audit entry are one transaction.
 */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../config.ts';
import { connect } from '../db/client.ts';
import { NO_DISPATCHER } from '../db/commands/commit.ts';
import { DomainError } from '../domain/error.ts';
import { RESOLUTION_OUTCOMES } from '../domain/review.ts';
import { localDirectory } from '../process/place.ts';
import { completeEnvironment } from '../process/running-stack.ts';
import { connectTemporal, type TemporalClient } from '../process/temporal.ts';
import { type OpsDeps, UsageError } from './command.ts';
import { retryDelivery } from './delivery.ts';
import { DEPLOYMENT_USAGE, deploymentCommand } from './deployment.ts';
import { GATE_USAGE, gateCommand } from './gate.ts';
import { KEYS_USAGE, keysCommand } from './keys.ts';
import { cancel, redispatch, resolve } from './settlement.ts';
import { stuck, waiting } from './waiting.ts';

type Command = {
  /** @returns whether it was done */
  readonly run: (deps: OpsDeps, args: readonly string[]) => Promise<boolean>;
  readonly usage: readonly string[];
};

const done =
  (run: (deps: OpsDeps, args: readonly string[]) => Promise<void>): Command['run'] =>
  async (deps, args) => {
    await run(deps, args);
    return true;
  };

const COMMANDS = new Map<string, Command>([
  ['waiting', { run: done(waiting), usage: ['waiting'] }],
  ['stuck', { run: done(stuck), usage: ['stuck'] }],
  ['redispatch', { run: done(redispatch), usage: ['redispatch <settlement id>|--all --operator <name> --note <why>'] }],
  ['cancel', { run: done(cancel), usage: ['cancel <settlement id> --operator <name> --note <why>'] }],
  [
    'resolve',
    {
      run: resolve,
      usage: [`resolve <settlement id> ${RESOLUTION_OUTCOMES.join('|')} --operator <name> --note <how it is known>`],
    },
  ],
  [
    'retry-delivery',
    { run: done(retryDelivery), usage: ['retry-delivery <delivery id> --operator <name> --note <why>'] },
  ],
  ['deployment', { run: done(deploymentCommand), usage: DEPLOYMENT_USAGE }],
  ['keys', { run: keysCommand, usage: KEYS_USAGE }],
  ['gate', { run: done(gateCommand), usage: GATE_USAGE }],
]);

const USAGE = [...COMMANDS.values()].flatMap(({ usage }) => usage).map((line) => `  npm run ops -- ${line}`);

/** @returns the exit code: 0 when it was done, 1 when it was refused and nothing was written */
export async function runOps(
  given: Omit<OpsDeps, 'dispatcher'>,
  [name = '', ...args]: readonly string[],
): Promise<number> {
  const deps: OpsDeps = { ...given, dispatcher: NO_DISPATCHER };
  try {
    const command = COMMANDS.get(name);
    if (!command) throw new UsageError([`There is no command ${JSON.stringify(name)}.`]);
    return (await command.run(deps, args)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof DomainError)) throw error;
    const lines =
      error instanceof UsageError ? [...error.faults, 'Usage:', ...USAGE] : [`Refused, ${error.code}: ${error.detail}`];
    for (const line of lines) deps.print(line);
    return 1;
  }
}

async function main(args: readonly string[]): Promise<number> {
  const config = loadConfig(completeEnvironment(process.env), localDirectory);
  const { runtime, databaseUrl, workerDeployment } = config;
  let temporal: TemporalClient | undefined;
  const client = () => {
    temporal ??= connectTemporal(config);
    return temporal.client;
  };
  const connection = connect(databaseUrl, { poolSizeMax: 1, name: 'settlement-ops', onIdleError: () => undefined });
  try {
    return await runOps(
      { runtime, db: connection.db, keys: config, workerDeployment, client, now: () => new Date(), print: console.log },
      args,
    );
  } finally {
    await Promise.all([temporal?.close(), connection.close()]);
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = await main(process.argv.slice(2));
