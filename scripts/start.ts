/**
 * `npm start`: the whole service on one machine. It also starts a PostgreSQL and a Temporal, unless DATABASE_URL and
 * TEMPORAL_ADDRESS name others. Ctrl-C stops everything in order. After a kill, the next start recovers.
 */
import { loadConfig } from '../config.ts';
import { command, EXIT, runProgram, standardOutput } from '../process/command-line.ts';
import { localDirectory } from '../process/place.ts';
import { banner } from './stack/banner.ts';
import { logDirectory } from './stack/embedded.ts';
import { complain, stopInOrder, watch, withDefaults } from './stack/lifetime.ts';
import { checkMachine } from './stack/preflight.ts';
import { apiUrl, startAll } from './stack/steps.ts';
import { createSupervisor } from './stack/supervisor.ts';

async function main(given: NodeJS.ProcessEnv): Promise<void> {
  const startedAt = performance.now();
  await checkMachine(console.log);
  const env = withDefaults(given);
  // An invalid configuration is reported before anything starts. The embedded database has no address yet.
  const config = loadConfig({ ...env, DATABASE_URL: env['DATABASE_URL'] || 'postgresql://127.0.0.1' }, localDirectory);
  const supervisor = await createSupervisor({ embedsDatabase: !env['DATABASE_URL'] });
  const { signal, stop } = stopInOrder(supervisor);
  try {
    const findings = await startAll({ env, config, supervisor, signal });
    const { apiPort, dataDirectory, ...servers } = findings;
    const addresses = { ...servers, apiUrl: apiUrl(config, apiPort) };
    supervisor.announce(addresses);
    const seconds = (performance.now() - startedAt) / 1_000;
    console.log(`\n${banner({ ...addresses, dataDirectory, seconds, runtime: config.runtime, logDirectory })}\n`);
    watch(supervisor, stop, env);
  } catch (error) {
    stop(error);
  }
}

const program = command({
  name: 'start',
  description: 'Starts PostgreSQL, Temporal, the worker and the API on this machine. Ctrl-C stops all in order.',
  takes: {},
  json: false,
  run: async (env: NodeJS.ProcessEnv) => {
    try {
      await main(env);
      return EXIT.done;
    } catch (error) {
      complain(error);
      return EXIT.refused;
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act) => act(process.env));
