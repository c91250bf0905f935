/** Runs a stack from its start to its stop: what `npm start` and `npm run dev` have in common. */
import { readGiven } from '../../config/given.ts';
import { loadConfig, localUrl } from '../../config/load.ts';
import { localDirectory } from '../../process/local/place.ts';
import { banner } from './banner.ts';
import { logDirectory } from './embedded.ts';
import { stopInOrder, watch, withDefaults } from './lifetime.ts';
import { checkMachine } from './preflight.ts';
import { type Findings, type Start, startAll } from './steps.ts';
import { createSupervisor } from './supervisor.ts';

/**
 * Starts everything and prints the banner. Ends with the process.
 *
 * @param afterReady what runs next to the stack
 * @throws Error of one sentence if it cannot begin
 */
export async function runStack(
  given: NodeJS.ProcessEnv,
  afterReady: (start: Start, findings: Findings) => void = () => undefined,
): Promise<void> {
  const startedAt = performance.now();
  await checkMachine(console.log);
  const env = withDefaults(readGiven(given).given);
  // An invalid configuration is reported before anything starts. The embedded database has no address yet.
  const config = loadConfig({ ...env, DATABASE_URL: env['DATABASE_URL'] || 'postgresql://127.0.0.1' }, localDirectory);
  const supervisor = await createSupervisor({ embedsDatabase: !env['DATABASE_URL'] });
  const { signal, stop } = stopInOrder(supervisor);
  try {
    const start = { env, config, supervisor, signal };
    const findings = await startAll(start);
    const { apiPort, dataDirectory, programs: _programs, ...servers } = findings;
    const addresses = { ...servers, apiUrl: localUrl(config.host, apiPort) };
    supervisor.announce(addresses);
    const seconds = (performance.now() - startedAt) / 1_000;
    console.log(`\n${banner({ ...addresses, dataDirectory, seconds, runtime: config.runtime, logDirectory })}\n`);
    watch(supervisor, stop, env);
    afterReady(start, findings);
  } catch (error) {
    stop(error);
  }
}
