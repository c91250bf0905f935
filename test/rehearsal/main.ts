/**
 * `npm run cluster`: the service as it is deployed, on one machine: a Temporal cluster on PostgreSQL, three API
 * processes and three workers. Ctrl-C stops everything in order. After a kill, the next start recovers.
 */
import { flag, type ValuesOf, wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import { runStackProgram, watch } from '../../scripts/stack/lifetime.ts';
import { rehearse } from './rehearsal.ts';
import { type Cluster, logDirectory, withCluster } from './steps.ts';

const SETTLEMENTS_MIN = 50;
const SETTLEMENTS_MAX = 1_000_000;

const TAKES = {
  isRehearsal: flag(
    '--rehearse',
    'settle while the version is upgraded, processes are killed and PostgreSQL fails over, report, and stop; exits with 1 when something was lost or doubled',
  ),
  settlements: withDefault('--settlements <n>', 'how many', wholeNumber(SETTLEMENTS_MIN, SETTLEMENTS_MAX), '500'),
};

const main = (given: NodeJS.ProcessEnv, { isRehearsal, settlements }: ValuesOf<typeof TAKES>): Promise<void> => {
  const interrupted = isRehearsal ? new Error('the rehearsal was interrupted.') : undefined;
  const options = { isRehearsal, isUnlimited: isRehearsal, interrupted };
  return withCluster(given, options, async ({ cluster, supervisor, env, signal, stop }) => {
    const [apiUrl = ''] = cluster.apiUrls;
    const { databaseUrl, migrationUrl, temporalAddress } = cluster;
    supervisor.announce({ apiUrl, databaseUrl, migrationUrl, temporalAddress });
    console.log(`\n${addresses(cluster)}\n`);
    if (!isRehearsal) return watch(supervisor, stop, env);
    const passed = await rehearse(cluster, { settlements, print: console.log, signal });
    stop(passed ? undefined : new Error(`the rehearsal failed; its logs are in ${logDirectory}.`));
  });
};

const addresses = ({ apiUrls, temporalAddress }: Cluster): string =>
  [
    `  APIs      ${apiUrls.join('   ')}`,
    `  Temporal  ${temporalAddress}, namespace settlement`,
    `  Logs      ${logDirectory}`,
    '  Stop      Ctrl-C',
  ].join('\n');

const description =
  'Starts a Temporal cluster, three APIs and three workers on this machine. Ctrl-C stops all in order.';

await runStackProgram({ name: 'cluster', description, takes: TAKES }, main);
