/**
 * `npm run cluster`: the service as it is deployed, on one machine: a Temporal cluster on PostgreSQL, three API processes
 * and three workers. Ctrl-C stops everything in order. After a kill, the next start recovers.
 */
import { loadConfig } from '../../config/load.ts';
import { flag, type ValuesOf, wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import { command, EXIT, runProgram, standardOutput } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { complain, stopInOrder, watch, withDefaults } from '../../scripts/stack/lifetime.ts';
import { checkMachine } from '../../scripts/stack/preflight.ts';
import { createSupervisor } from '../../scripts/stack/supervisor.ts';
import { rehearse } from './rehearsal.ts';
import { type Cluster, clusterDirectory, logDirectory, startCluster } from './steps.ts';

/** Far above what two processes can serve. One partner sends more than the usual limit allows. */
const UNLIMITED_PER_MINUTE = '1000000';
const SETTLEMENTS_MIN = 50;
const SETTLEMENTS_MAX = 1_000_000;

const TAKES = {
  isRehearsal: flag(
    '--rehearse',
    'settle while the version is upgraded, processes are killed and PostgreSQL fails over, report, and stop; exits with 1 when something was lost or doubled',
  ),
  settlements: withDefault('--settlements <n>', 'how many', wholeNumber(SETTLEMENTS_MIN, SETTLEMENTS_MAX), '500'),
};

async function main(given: NodeJS.ProcessEnv, { isRehearsal, settlements }: ValuesOf<typeof TAKES>): Promise<void> {
  await checkMachine(console.log);
  const env = withDefaults({ ...given, ...(isRehearsal && { RATE_LIMIT_PER_MINUTE: UNLIMITED_PER_MINUTE }) });
  const config = loadConfig({ ...env, DATABASE_URL: 'postgresql://127.0.0.1' }, localDirectory);
  const supervisor = await createSupervisor({ embedsDatabase: !isRehearsal, directory: clusterDirectory });
  const { signal, stop } = stopInOrder(
    supervisor,
    isRehearsal ? new Error('the rehearsal was interrupted.') : undefined,
  );
  try {
    const cluster = await startCluster({ env, config, supervisor, signal, isRehearsal });
    const [apiUrl = ''] = cluster.apiUrls;
    const { databaseUrl, migrationUrl, temporalAddress } = cluster;
    supervisor.announce({ apiUrl, databaseUrl, migrationUrl, temporalAddress });
    console.log(`\n${addresses(cluster)}\n`);
    if (!isRehearsal) return watch(supervisor, stop, env);
    const passed = await rehearse(cluster, { settlements, print: console.log, signal });
    stop(passed ? undefined : new Error(`the rehearsal failed; its logs are in ${logDirectory}.`));
  } catch (error) {
    stop(error);
  }
}

const addresses = ({ apiUrls, temporalAddress }: Cluster): string =>
  [
    `  APIs      ${apiUrls.join('   ')}`,
    `  Temporal  ${temporalAddress}, namespace settlement`,
    `  Logs      ${logDirectory}`,
    '  Stop      Ctrl-C',
  ].join('\n');

const program = command({
  name: 'cluster',
  description: 'Starts a Temporal cluster, three APIs and three workers on this machine. Ctrl-C stops all in order.',
  takes: TAKES,
  json: false,
  run: async (env: NodeJS.ProcessEnv, values) => {
    try {
      await main(env, values);
      return EXIT.done;
    } catch (error) {
      complain(error);
      return EXIT.refused;
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act) => act(process.env));
