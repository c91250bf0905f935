/**
 * `subscriber`: settlements with one subscriber to all of their events, compared with settlements without one: as many
 * as can be made, to the last delivery, and at a slow pace by several organizations, from acceptance to `settled`.
 */
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { loadConfig } from '../../config/load.ts';
import { flag } from '../../ops/command-line/parameter.ts';
import { command, EXIT, type ExitCode, type Printer } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { clusterDirectory } from '../rehearsal/steps.ts';
import { type Bench, count, inParallel, percentile, report } from './bench.ts';
import { type CpuMsEach, type Processes, startCpu } from './cpu.ts';
import { ratios, spreadOf } from './figure.ts';
import { createPayer, type Payer } from './payer.ts';
import { startReceiver } from './receiver.ts';
import { type BenchStack, withBenchStack } from './stack.ts';
import { waitUntil } from './wait.ts';

const AT_ONCE = 16;
const WARM_UP = 20;
const PACED_ORGANIZATIONS = 5;
const PACED_EVERY_MS = 200;
const SUBSCRIBED = [false, true] as const;

/** `figure`: settlements per second, or the median seconds from acceptance to `settled`. */
type Turn = { readonly figure: number; readonly cpuMsEach: CpuMsEach };
type Contender = { readonly name: string; readonly payers: readonly Payer[]; readonly turns: Turn[] };
type TakeTurn = (stack: Stack, payers: readonly Payer[], settlements: number) => Promise<number>;

export const subscriber: Bench = command({
  name: 'subscriber',
  description: 'Settlements with one subscriber to their events, compared with settlements without one.',
  takes: {
    rounds: count('--rounds <count>', 'how often each contender is measured', 5),
    settlements: count('--settlements <count>', 'how many settlements a turn has', 60),
    cluster: flag('--cluster', 'on the cluster that `npm run cluster` runs in this clone, with a raised rate limit'),
  },
  run: (printer: Printer, { rounds, settlements, cluster }) =>
    (cluster ? withCluster : withOwnProcesses)(async (stack, processes) => {
      let received = 0;
      const receiver = await startReceiver(() => {
        received += 1;
        return 204;
      });
      const contendersOf = (organizations: number) =>
        Promise.all(
          SUBSCRIBED.map(async (isSubscribed): Promise<Contender> => {
            const payers: Payer[] = [];
            for (let n = 0; n < organizations; n += 1) payers.push(await createPayer(stack, 'Marcia Brown'));
            if (isSubscribed) for (const payer of payers) await payer.subscribe(receiver.base);
            const name = isSubscribed ? 'with one subscriber' : 'without a subscriber';
            return { name: organizations === 1 ? name : `${name} each`, payers, turns: [] };
          }),
        );
      const measure = async (contenders: readonly Contender[], takeTurn: TakeTurn): Promise<void> => {
        for (const { payers, turns } of contenders) {
          const cpu = startCpu(processes);
          const figure = await takeTurn(stack, payers, settlements);
          turns.push({ figure, cpuMsEach: cpu(settlements) });
        }
      };
      try {
        const fast = await contendersOf(1);
        const paced = await contendersOf(PACED_ORGANIZATIONS);
        for (const { payers } of [...fast, ...paced]) await takeFastTurn(stack, payers, WARM_UP);
        for (let round = 0; round < rounds; round += 1) {
          await measure(fast, takeFastTurn);
          await measure(paced, takePacedTurn);
          printer.warn(`round ${round + 1} of ${rounds}, load ${loadavg()[0]?.toFixed(1)}`);
        }
        const settled = 2 * (rounds * settlements + WARM_UP);
        reportTurns(printer, { fast, paced, deliveriesEach: received / settled });
        return EXIT.done;
      } finally {
        receiver.close();
      }
    }),
});

/** What a turn needs of a stack. */
type Stack = Pick<BenchStack, 'apiUrl' | 'database' | 'cardprocSecret'>;
type Measure = (stack: Stack, processes: Processes) => Promise<ExitCode>;

const withOwnProcesses = (measure: Measure): Promise<ExitCode> =>
  withBenchStack(async (stack) => {
    const api = await stack.start('api', 'api/main.ts', 'API ready');
    const worker = await stack.start('worker', 'worker/main.ts', 'worker ready');
    return await measure(stack, { API: [api.pid], worker: [worker.pid], ...stack.servers });
  });

async function withCluster(measure: Measure): Promise<ExitCode> {
  const running = readStack(clusterDirectory);
  const { addresses } = running ?? {};
  const [cardprocSecret] = loadConfig(
    { ...process.env, DATABASE_URL: addresses?.databaseUrl },
    localDirectory,
  ).cardprocWebhookSecrets;
  if (!addresses || cardprocSecret === undefined) throw new Error('No cluster runs here. Start it: npm run cluster');
  const database = new pg.Pool({ connectionString: addresses.migrationUrl, max: 2 });
  const stack = { apiUrl: addresses.apiUrl, database, cardprocSecret };
  const pidsOf = (...names: string[]) => names.flatMap((name) => running?.processes[name]?.pid ?? []);
  const processes = {
    API: pidsOf('API 1', 'API 2'),
    worker: pidsOf('worker 1', 'worker 2'),
    Temporal: pidsOf('Temporal'),
    PostgreSQL: pidsOf('PostgreSQL'),
  };
  return await measure(stack, processes).finally(() => database.end());
}

/** Settles one after the other of each caller. @returns settlements per second, to the last delivery */
async function takeFastTurn(stack: Stack, payers: readonly Payer[], size: number): Promise<number> {
  const startedMs = performance.now();
  await untilDelivered(stack, size, async () => {
    await inParallel(size, AT_ONCE, (index) => settle(payers, index));
  });
  return size / ((performance.now() - startedMs) / 1_000);
}

/** Settles five times a second, whatever the answers take. @returns the median of s from acceptance to `settled` */
async function takePacedTurn(stack: Stack, payers: readonly Payer[], size: number): Promise<number> {
  const { rows } = await stack.database.query('SELECT now() AS at');
  await untilDelivered(stack, size, async () => {
    const settleLater = async (_settlement: unknown, index: number): Promise<void> => {
      await delay(index * PACED_EVERY_MS);
      await settle(payers, index);
    };
    await Promise.all(Array.from({ length: size }, settleLater));
  });
  const { rows: settled } = await stack.database.query<{ seconds: number }>(
    `SELECT extract(epoch FROM t.at - s.created_at)::float8 AS seconds
    FROM settlements s JOIN settlement_transitions t USING (settlement_id)
    WHERE t.to_status = 'settled' AND s.created_at >= $1`,
    [rows[0].at],
  );
  return percentile(
    settled.map(({ seconds }) => seconds),
    0.5,
  );
}

async function settle(payers: readonly Payer[], index: number): Promise<void> {
  const payer = payers[index % payers.length];
  if (payer) await payer.pay(await payer.settle());
}

/** Runs what makes so many settlements, and waits until they are settled and nothing is to be delivered. */
async function untilDelivered({ database }: Stack, size: number, run: () => Promise<void>): Promise<void> {
  const ended = `SELECT count(*)::int AS settled,
    EXISTS (SELECT FROM webhook_deliveries WHERE status = 'pending') AS pending
    FROM settlement_transitions WHERE to_status = 'settled'`;
  const { rows: before } = await database.query(ended);
  await run();
  await waitUntil('the last delivery', async () => {
    const { rows } = await database.query(ended);
    return rows[0].settled >= before[0].settled + size && !rows[0].pending;
  });
}

type Results = {
  readonly fast: readonly Contender[];
  readonly paced: readonly Contender[];
  readonly deliveriesEach: number;
};

function reportTurns(printer: Printer, { fast, paced, deliveriesEach }: Results): void {
  const names = Object.keys(fast[0]?.turns[0]?.cpuMsEach ?? {});
  const figuresOf = (contenders: readonly Contender[]) => {
    const rows = contenders.map(({ name, turns }) => {
      const cpu = names.map((process) => turns.map(({ cpuMsEach }) => cpuMsEach[process] ?? Number.NaN));
      const total = turns.map((_turn, round) => cpu.reduce((sum, ofProcess) => sum + (ofProcess[round] ?? 0), 0));
      return { name, figure: turns.map(({ figure }) => figure), total, cpu };
    });
    const [without] = rows;
    return rows.map((row) => {
      const isCompared = row !== without;
      const ratio = isCompared ? ratios(row.figure, without?.figure ?? []) : undefined;
      return { ...row, ratio, cpuRatio: isCompared ? ratios(row.total, without?.total ?? []) : undefined };
    });
  };
  const ofFast = figuresOf(fast);
  const ofPaced = figuresOf(paced);
  const tableOf = (what: string, figure: string, rows: typeof ofFast) => ({
    head: [what, figure, 'ratio', 'CPU ms each', 'ratio', ...names],
    rows: rows.map(({ name, figure: values, ratio, total, cpuRatio, cpu }) => [
      ...[name, values, ratio ?? '', total, cpuRatio ?? ''],
      ...cpu,
    ]),
  });
  const dataOf = (rows: typeof ofFast) =>
    rows.map(({ name, figure, ratio, total, cpuRatio, cpu }) => ({
      ...{ what: name, figure: spreadOf(figure), ratio: ratio ? spreadOf(ratio) : null, cpu_ms: spreadOf(total) },
      cpu_ratio: cpuRatio ? spreadOf(cpuRatio) : null,
      cpu_ms_each: Object.fromEntries(names.map((name, index) => [name.toLowerCase(), spreadOf(cpu[index] ?? [])])),
    }));
  const pace = `settlements of ${PACED_ORGANIZATIONS} organizations, ${1_000 / PACED_EVERY_MS}/s`;
  const tables = [
    tableOf('settlements', '/s to the last delivery', ofFast),
    tableOf(pace, 'median s from acceptance to `settled`', ofPaced),
  ];
  const data = { deliveries_each: deliveriesEach, per_second: dataOf(ofFast), paced_seconds: dataOf(ofPaced) };
  report(printer, 'subscriber', tables, data);
}
