/** Runs a stack from its start to its stop: what `npm start` and `npm run dev` have in common. */
import { readGiven } from '../../config/given.ts';
import { loadConfig, localUrl } from '../../config/load.ts';
import { command, EXIT, runProgram, standardOutput } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { banner } from './banner.ts';
import { logDirectory } from './embedded.ts';
import { complain, stopInOrder, watch, withDefaults } from './lifetime.ts';
import { checkMachine } from './preflight.ts';
import { type Findings, type Start, startAll } from './steps.ts';
import { createSupervisor } from './supervisor.ts';

type AfterReady = (start: Start, findings: Findings) => void;

/**
 * The program `npm start` or `npm run dev`.
 *
 * @param afterReady what runs next to the stack
 */
export async function runStackProgram(name: string, description: string, afterReady?: AfterReady): Promise<void> {
  const program = command({
    name,
    description,
    takes: {},
    json: false,
    run: async (env: NodeJS.ProcessEnv) => {
      try {
        await runStack(env, afterReady);
        return EXIT.done;
      } catch (error) {
        complain(error);
        return EXIT.refused;
      }
    },
  });
  process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act) => act(process.env));
}

/** Starts everything and prints the banner. Ends with the process. @throws Error of one sentence if it cannot begin */
async function runStack(given: NodeJS.ProcessEnv, afterReady: AfterReady = () => undefined): Promise<void> {
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
