/**
 * `npm run cluster`: the service as it is deployed, on one machine: a Temporal cluster on PostgreSQL, two API processes
 * and two workers. Ctrl-C stops everything in order. After a kill, the next start recovers.
 *
 * `--rehearse`: settles through both APIs while processes are killed and restarted, reports, and stops. Exits 1 when
 * something was lost or doubled, or a request failed that may not be repeated. `--settlements <n>` (500) sets how many.
 */
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config.ts';
import { localDirectory } from '../../process/place.ts';
import { checkNode, complain, stopInOrder, watch, withDefaults } from '../../scripts/stack/lifetime.ts';
import { createSupervisor } from '../../scripts/stack/supervisor.ts';
import { rehearse } from './rehearsal.ts';
import { type Cluster, clusterDirectory, logDirectory, startCluster } from './steps.ts';

/** Far above what two processes can serve. One partner sends more than the usual limit allows. */
const UNLIMITED_PER_MINUTE = '1000000';
const SETTLEMENTS_MIN = 50;

const { values } = parseArgs({
  options: { rehearse: { type: 'boolean', default: false }, settlements: { type: 'string', default: '500' } },
});

async function main(given: NodeJS.ProcessEnv): Promise<void> {
  checkNode();
  const settlements = Number(values.settlements);
  if (!(settlements >= SETTLEMENTS_MIN))
    throw new Error(`--settlements must be a number of at least ${SETTLEMENTS_MIN}.`);
  const env = withDefaults({ ...given, ...(values.rehearse && { RATE_LIMIT_PER_MINUTE: UNLIMITED_PER_MINUTE }) });
  const config = loadConfig({ ...env, DATABASE_URL: 'postgresql://127.0.0.1' }, localDirectory);
  const supervisor = await createSupervisor({ embedsDatabase: true, directory: clusterDirectory });
  const { signal, stop } = stopInOrder(
    supervisor,
    values.rehearse ? new Error('the rehearsal was interrupted.') : undefined,
  );
  try {
    const cluster = await startCluster({ env, config, supervisor, signal });
    const [apiUrl = ''] = cluster.apiUrls;
    const { databaseUrl, migrationUrl, temporalAddress } = cluster;
    supervisor.announce({ apiUrl, databaseUrl, migrationUrl, temporalAddress });
    console.log(`\n${addresses(cluster)}\n`);
    if (!values.rehearse) return watch(supervisor, stop, env);
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

main(process.env).catch((error: unknown) => {
  complain(error);
  process.exitCode = 1;
});
