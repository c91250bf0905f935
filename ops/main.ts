/**
 * `npm run ops -- <command> …`: the operators' commands. They work in the configured environment, or on the stack that
 * runs in this clone. Each change and its audit entry are one transaction.
 */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Config, loadConfig } from '../config/load.ts';
import { connect } from '../db/client.ts';
import { NO_DISPATCHER } from '../db/commands/commit.ts';
import { createCrash } from '../process/crash.ts';
import { localDirectory } from '../process/local/place.ts';
import { completeEnvironment } from '../process/local/running-stack.ts';
import { findUnservedQueues } from '../process/pollers.ts';
import { createRuns, describeRun, listRuns } from '../process/runs.ts';
import { connectTemporal, type TemporalClient } from '../process/temporal.ts';
import { checkTemporal } from '../process/temporal-health.ts';
import { apiKeyCommands } from './api-key.ts';
import { auditCommands } from './audit.ts';
import type { OpsDeps } from './command.ts';
import { type ExitCode, group, type Output, type Provide, runProgram, standardOutput } from './command-line/program.ts';
import { configCommands } from './config.ts';
import { deliveryCommands } from './delivery.ts';
import { withCommandErrors } from './failure.ts';
import { gateCommands } from './gate.ts';
import { keysCommands } from './keys.ts';
import { limitCommands } from './limit.ts';
import { listCommands } from './list.ts';
import { operatorCommands } from './operator.ts';
import { organizationCommands } from './organization.ts';
import { partitionsCommand } from './partition.ts';
import { eraseCommand, exportCommand } from './recipient.ts';
import { reconcileCommand } from './reconcile.ts';
import { settlementCommands } from './settlement.ts';
import { showCommand } from './show.ts';
import { waitingCommands } from './waiting.ts';
import { webhookCommands } from './webhook.ts';

const program = group<OpsDeps>(
  'ops',
  'Shows what waits and what is stuck, and makes the changes that only operators may make.',
  [
    showCommand,
    ...waitingCommands,
    reconcileCommand,
    listCommands,
    ...settlementCommands,
    ...deliveryCommands,
    webhookCommands,
    organizationCommands,
    eraseCommand,
    exportCommand,
    limitCommands,
    apiKeyCommands,
    operatorCommands,
    auditCommands,
    keysCommands,
    configCommands,
    partitionsCommand,
    gateCommands,
  ],
);

/** Runs one command line with the given dependencies. */
export const runOps = (
  deps: Omit<OpsDeps, 'printData' | 'dispatcher' | keyof RunReads> & Partial<RunReads>,
  args: readonly string[],
): Promise<ExitCode> =>
  runProgram(program, args, deps, (act, printer) =>
    withCommandErrors(() => act({ ...runReadsOf(deps.client), ...deps, ...printer, dispatcher: NO_DISPATCHER })),
  );

type RunReads = Pick<OpsDeps, 'runs' | 'listRuns' | 'describeRun' | 'temporalHealth' | 'unservedQueues'>;

/** Connects to Temporal when it is asked. */
const runReadsOf = (client: OpsDeps['client']): RunReads => ({
  runs: { findRunning: (workflowIds) => createRuns(client()).findRunning(workflowIds) },
  listRuns: (since) => listRuns(client(), since),
  describeRun: (workflowId) => describeRun(client(), workflowId),
  temporalHealth: () => checkTemporal({ connection: client().connection, namespace: client().options.namespace }),
  unservedQueues: (now) => findUnservedQueues(client(), now),
});

/** Connects to what is configured. `--help` and a wrong command line need no configuration. */
const provideConfigured: Provide<OpsDeps> = (act, printer) =>
  withCommandErrors(async () => {
    const env = completeEnvironment(process.env);
    if (!env['RUNTIME_ENVIRONMENT'] && !env['DATABASE_URL'] && !env['DATABASE_URL_FILE'])
      printer.warn('No stack is running in this clone (npm start), and DATABASE_URL names no other database.');
    const config = loadConfig(env, localDirectory);
    const { runtime, databaseUrl, databaseIsPooled: isPooled } = config;
    let temporal: TemporalClient | undefined;
    const connected = () => {
      temporal ??= connectTemporal(config);
      return temporal;
    };
    const client = () => connected().client;
    const connection = connect(databaseUrl, {
      poolSizeMax: 1,
      name: 'settlement-ops',
      onIdleError: () => undefined,
      refusesOwner: runtime !== 'local-sandbox',
      isPooled,
    });
    try {
      return await act({
        ...printer,
        runtime,
        db: connection.db,
        dispatcher: NO_DISPATCHER,
        crash: createCrash(config.crashAt),
        keys: config,
        rateLimitPerMinute: config.rateLimitPerMinute,
        retentionDays: config.retentionDays,
        operatorToken: config.operatorToken,
        client,
        ...runReadsOf(client),
        temporalHealth: () => connected().health(),
        temporalUi: uiPage(config),
        runbookUrl: config.runbookUrl,
        now: () => new Date(),
      });
    } finally {
      await Promise.all([temporal?.close(), connection.close()]);
    }
  });

const uiPage = ({ temporalUiUrl, temporal }: Pick<Config, 'temporalUiUrl' | 'temporal'>): string | undefined =>
  temporalUiUrl && `${temporalUiUrl}/namespaces/${temporal.namespace ?? 'default'}`;

/** Runs one command line in the configured environment, or on the stack that runs in this clone. */
export const runConfigured = (args: readonly string[], output: Output): Promise<ExitCode> =>
  runProgram(program, args, output, provideConfigured);

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = await runConfigured(process.argv.slice(2), standardOutput());
