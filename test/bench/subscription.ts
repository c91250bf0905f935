/**
 * `subscriber`: settlements per second with one subscriber to all of their events, compared with settlements without
 * one. A turn ends when the last settlement is settled and the last delivery is made.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg } from 'node:os';
import pg from 'pg';
import { loadConfig } from '../../config/load.ts';
import { flag } from '../../ops/command-line/parameter.ts';
import { command, EXIT, type ExitCode, type Printer } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { clusterDirectory } from '../rehearsal/steps.ts';
import { type Bench, count, inParallel, report } from './bench.ts';
import type { Processes } from './contender.ts';
import { cpuMs } from './cpu.ts';
import { ratios, spreadOf } from './figure.ts';
import { createPayer, type Payer } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';
import { waitUntil } from './wait.ts';

const AT_ONCE = 16;
const WARM_UP = 20;

type Turn = { readonly perSecond: number; readonly cpuMsEach: Readonly<Record<string, number>> };
type Contender = { readonly name: string; readonly payer: Payer; readonly turns: Turn[] };

export const subscriber: Bench = command({
  name: 'subscriber',
  description: 'Settlements per second with one subscriber to their events, compared with settlements without one.',
  takes: {
    rounds: count('--rounds <count>', 'how often each contender is measured', 5),
    settlements: count('--settlements <count>', 'how many settlements a turn has', 60),
    cluster: flag('--cluster', 'on the cluster that `npm run cluster` runs in this clone, with a raised rate limit'),
  },
  run: (printer: Printer, { rounds, settlements, cluster }) =>
    (cluster ? withCluster : withOwnProcesses)(async (stack, processes) => {
      const receiver = await startReceiver();
      try {
        const contenders: Contender[] = [];
        for (const name of ['without a subscriber', 'with one subscriber'])
          contenders.push({ name, payer: await createPayer(stack, 'Marcia Brown'), turns: [] });
        await contenders[1]?.payer.subscribe(receiver.url);
        for (const { payer } of contenders) await takeTurn(stack, payer, WARM_UP);
        for (let round = 0; round < rounds; round += 1) {
          for (const { payer, turns } of contenders)
            turns.push(await measureTurn(stack, payer, settlements, processes));
          printer.warn(`round ${round + 1} of ${rounds}, load ${loadavg()[0]?.toFixed(1)}`);
        }
        reportTurns(printer, contenders, receiver.count() / (rounds * settlements + WARM_UP));
        return EXIT.done;
      } finally {
        receiver.close();
      }
    }),
});

/** Answers every request at once. */
export async function startReceiver() {
  let received = 0;
  const server = createServer((incoming, response) => {
    incoming.resume();
    incoming.on('end', () => {
      received += 1;
      response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, count: () => received, close };
}

/** What a turn needs of a stack. */
type Stack = Pick<BenchStack, 'apiUrl' | 'database' | 'cardprocSecret'>;
type Measure = (stack: Stack, processes: Processes) => Promise<ExitCode>;

const withOwnProcesses = (measure: Measure): Promise<ExitCode> =>
  withBenchStack(async (stack) => {
    const api = await stack.start('api', 'api/main.ts', 'API ready');
    const worker = await stack.start('worker', 'worker/main.ts', 'worker ready');
    const { Temporal, PostgreSQL } = processesOf(readStack());
    return await measure(stack, { API: [api.pid], worker: [worker.pid], Temporal, PostgreSQL });
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
  return await measure(stack, processesOf(running)).finally(() => database.end());
}

function processesOf(running: ReturnType<typeof readStack>) {
  const pidsOf = (...names: string[]) => names.flatMap((name) => running?.processes[name]?.pid ?? []);
  return {
    API: pidsOf('API 1', 'API 2'),
    worker: pidsOf('worker 1', 'worker 2'),
    Temporal: pidsOf('Temporal'),
    PostgreSQL: pidsOf('PostgreSQL'),
  };
}

async function measureTurn(stack: Stack, payer: Payer, size: number, processes: Processes): Promise<Turn> {
  const used = (): [string, number][] => Object.entries(processes).map(([name, pids]) => [name, cpuMs(pids)]);
  const before = new Map(used());
  const perSecond = await takeTurn(stack, payer, size);
  const each = used().map(([name, ms]) => [name, (ms - (before.get(name) ?? Number.NaN)) / size]);
  return { perSecond, cpuMsEach: Object.fromEntries(each) };
}

/** @returns settlements per second, to the last delivery */
async function takeTurn({ database }: Stack, payer: Payer, size: number): Promise<number> {
  const ended = `SELECT count(*)::int AS settled,
    EXISTS (SELECT FROM webhook_deliveries WHERE status = 'pending') AS pending
    FROM settlement_transitions WHERE to_status = 'settled'`;
  const { rows: before } = await database.query(ended);
  const startedMs = performance.now();
  await inParallel(size, AT_ONCE, async () => payer.pay(await payer.settle()));
  await waitUntil('the last delivery', async () => {
    const { rows } = await database.query(ended);
    return rows[0].settled >= before[0].settled + size && !rows[0].pending;
  });
  return size / ((performance.now() - startedMs) / 1_000);
}

function reportTurns(printer: Printer, contenders: readonly Contender[], deliveriesEach: number): void {
  const [without] = contenders;
  const rateOf = (contender: Contender | undefined) => (contender?.turns ?? []).map(({ perSecond }) => perSecond);
  const figures = contenders.map((contender) => {
    const names = Object.keys(contender.turns[0]?.cpuMsEach ?? {});
    const cpu = names.map((name) => contender.turns.map(({ cpuMsEach }) => cpuMsEach[name] ?? Number.NaN));
    const ratio = contender === without ? undefined : ratios(rateOf(contender), rateOf(without));
    return { what: contender.name, perSecond: rateOf(contender), ratio, names, cpu };
  });
  const names = figures[0]?.names ?? [];
  const tables = [
    {
      head: ['settlements', '/s to the last delivery', 'ratio'],
      rows: figures.map(({ what, perSecond, ratio }) => [what, perSecond, ratio ?? '']),
    },
    { head: ['CPU ms each', ...names], rows: figures.map(({ what, cpu }) => [what, ...cpu]) },
  ];
  report(printer, 'subscriber', tables, {
    deliveries_each: deliveriesEach,
    contenders: figures.map(({ what, perSecond, ratio, cpu }) => ({
      what,
      per_second: spreadOf(perSecond),
      ratio: ratio ? spreadOf(ratio) : null,
      cpu_ms_each: Object.fromEntries(names.map((name, index) => [name.toLowerCase(), spreadOf(cpu[index] ?? [])])),
    })),
  });
}
