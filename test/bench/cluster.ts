/**
 * `cluster`: what a card settlement with one subscriber to all events costs on a Temporal cluster on PostgreSQL, with
 * three, two and one APIs and workers, at three rates each, compared with the plan of docs/scaling.md.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { COST } from '../../scripts/generate/plan.ts';
import { APIS, WORKERS } from '../rehearsal/member.ts';
import { type Cluster, clusterDirectory, type Opened, withCluster } from '../rehearsal/steps.ts';
import { withReceiver } from '../support/http-server.ts';
import { type Bench, type Cell, count, report } from './bench.ts';
import { type CpuMsEach, type Processes, startCpu } from './cpu.ts';
import { startDrive, untilSettled } from './drive.ts';
import { createPayer } from './payer.ts';

/** How many APIs and workers, and how many settlements a second. */
const SIZES = [3, 2, 1] as const;
const RATES = [2, 5, 10] as const;
/**
 * Before the measurements of a size, multiplied by it: the APIs and workers share the calls, and V8 must have compiled in
 * each of them what runs often.
 */
const WARM_UP_S = 90;
const NAMES = ['API', 'worker', 'Temporal', 'PostgreSQL'] as const;
const { api, worker, temporal, postgres } = COST.cpuMs;
const PLANNED_MS = api + worker + temporal + postgres;
const HEAD = ['APIs and workers', 'settlements/s', 'CPU ms each', '÷ plan', ...NAMES, 'left out', 'failed'];

export const cluster: Bench = command({
  name: 'cluster',
  description: 'CPU of a settlement on a Temporal cluster, with 1 to 3 APIs and workers at three rates, and the plan.',
  takes: { seconds: count('--seconds <count>', 'how long each measurement takes', 30) },
  run: async (printer: Printer, { seconds }) => {
    const interrupted = new Error('the benchmark was interrupted.');
    await withCluster(process.env, { isRehearsal: false, isUnlimited: true, interrupted }, async (opened) => {
      report(printer, 'cluster', [{ head: HEAD, rows: await measure(printer, opened, seconds) }]);
      opened.stop();
    });
    return EXIT.done;
  },
});

async function measure({ warn }: Printer, { cluster: started, config }: Opened, seconds: number): Promise<Cell[][]> {
  const [cardprocSecret = ''] = config.cardprocWebhookSecrets;
  const database = new pg.Pool({ connectionString: started.migrationUrl, max: 2 });
  const measured = withReceiver(async (url) => {
    const payers = await Promise.all(
      started.apiUrls.map(async (apiUrl) => {
        const payer = await createPayer({ apiUrl, cardprocSecret });
        await payer.subscribe(`${url}/`);
        return payer;
      }),
    );
    const drive = async (size: number, rate: number, forSeconds: number) => {
      const driven = await startDrive(payers.slice(0, size), rate, performance.now() + forSeconds * 1_000).done;
      await untilSettled(database);
      return driven;
    };
    const rows: Cell[][] = [];
    for (const size of SIZES) {
      await shrinkTo(size, started);
      const processes = processesOf(size);
      await drive(size, Math.max(...RATES), WARM_UP_S * size);
      const idle = startCpu(processes);
      await delay(seconds * 1_000);
      rows.push([...rowOf(size, 'none: ms a second', idle(seconds)), '', '']);
      for (const rate of RATES) {
        const cpu = startCpu(processes);
        const { paid, skipped, failed } = await drive(size, rate, seconds);
        rows.push([...rowOf(size, String(rate), cpu(paid), PLANNED_MS), String(skipped), String(failed)]);
      }
      warn(`${size} of each`);
    }
    return rows;
  });
  return await measured.finally(() => database.end());
}

function rowOf(size: number, rate: string, each: CpuMsEach, plannedMs?: number): Cell[] {
  const total = NAMES.reduce((sum, name) => sum + (each[name] ?? Number.NaN), 0);
  const ratio = plannedMs === undefined ? '' : [total / plannedMs];
  return [String(size), rate, [total], ratio, ...NAMES.map((name) => [each[name] ?? Number.NaN])];
}

/** Stops the API and the worker that only the larger size has. */
async function shrinkTo(size: number, { members }: Cluster): Promise<void> {
  for (const name of [APIS[size], WORKERS[size]]) if (name) await members.stop(name);
}

function pidsOf(...names: readonly string[]): number[] {
  const running = readStack(clusterDirectory)?.processes ?? {};
  return names.map((name) => {
    const { pid } = running[name] ?? {};
    if (pid === undefined) throw new Error(`The cluster has no process ${name}.`);
    return pid;
  });
}

/** As the processes of the product are named to operators. */
const productOf = (members: readonly string[]): string[] => members.map((name) => `The ${name}`);

const processesOf = (size: number): Processes => ({
  API: pidsOf(...productOf(APIS.slice(0, size))),
  worker: pidsOf(...productOf(WORKERS.slice(0, size))),
  Temporal: pidsOf('Temporal'),
  PostgreSQL: pidsOf('PostgreSQL'),
});
