/**
 * `complete`: settlements per second from `POST /v2/settle` through the card processor's signed event to `settled`,
 * and the same with one subscriber to all events, to the last delivery. They are compared with a bare workflow on the
 * same servers: one signal, and three local activities that insert a row each.
 *
 * A turn has two parts. First all settlements (or workflows) are started, until all of them wait for money (or for the
 * signal). Then all of them are paid (or signalled), until the last one is done.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { loadConfig } from '../../config/load.ts';
import { flag } from '../../ops/command-line/parameter.ts';
import { command, EXIT, type ExitCode, type Printer } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { clusterDirectory } from '../rehearsal/steps.ts';
import { startHttpServer } from '../support/http-server.ts';
import { inParallel } from '../support/parallel.ts';
import { until } from '../support/wait.ts';
import { type Bench, count, ROUNDS, report } from './bench.ts';
import { type Contender, compare, type Turn } from './contender.ts';
import type { Processes } from './cpu.ts';
import { createPayer, type PayerStack } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';

const AT_ONCE = 16;
const REACHED = { timeoutMs: 180_000, everyMs: 25 };
const NO_CONTENT = 204;

/** What is begun and resumed. The counts are of all turns together. */
type Subject = {
  readonly name: string;
  /** @returns the id of a new settlement or workflow */
  begin(): Promise<string>;
  /** Sends the event or the signal that it waits for. */
  resume(id: string): Promise<void>;
  /** Statements with one row, `count`. */
  readonly waiting: string;
  readonly ended: string;
  /** Finds what must be done when all have ended. */
  readonly left?: string;
};

type Stack = PayerStack & Pick<BenchStack, 'database'>;

export const complete: Bench = command({
  name: 'complete',
  description: 'Settlements per second from acceptance to settled, without and with a subscriber.',
  takes: {
    rounds: ROUNDS,
    settlements: count('--settlements <count>', 'how many settlements a turn has', 100),
    cluster: flag('--cluster', 'on the cluster that `npm run cluster` runs in this clone, with a raised rate limit'),
  },
  run: (printer: Printer, { rounds, settlements, cluster }) => {
    const measure = async (stack: Stack, processes: Processes, bare?: Subject): Promise<ExitCode> => {
      const receiver = await startHttpServer((response) => response.writeHead(NO_CONTENT).end());
      try {
        const contender = (subject: Subject, ...against: readonly Contender[]): Contender => ({
          ...{ labels: [subject.name], processes, against },
          take: () => takeTurn(stack, subject, settlements),
        });
        const bares = bare ? [contender(bare)] : [];
        const alone = contender(await settlement(stack), ...bares);
        const subscribed = contender(await settlement(stack, receiver.url), alone);
        const { table } = await compare(printer, { rounds, labels: ['what'] }, [alone, subscribed, ...bares]);
        report(printer, 'complete', [table]);
        return EXIT.done;
      } finally {
        await receiver.close();
      }
    };
    if (cluster) return onCluster(measure);
    return withBenchStack(async (stack) => {
      const { processes, worker } = await stack.startProduct();
      const bareWorker = await stack.start('test/bench/bare-worker.ts');
      const all = { ...processes, worker: [worker.pid, bareWorker.pid] };
      return await measure(stack, all, bareWorkflow(stack));
    });
  },
});

async function takeTurn({ database }: Stack, subject: Subject, size: number): Promise<Turn> {
  const { name, begin, resume, waiting, ended, left } = subject;
  const counted = async (statement: string) => Number((await database.query(statement)).rows[0].count);
  const wanted = { waiting: size + (await counted(waiting)), ended: size + (await counted(ended)) };
  const beginMs = performance.now();
  const ids = await inParallel(Array(size).keys(), AT_ONCE, begin);
  await until(`wait of every ${name}`, async () => (await counted(waiting)) >= wanted.waiting, REACHED);
  const resumeMs = performance.now();
  await inParallel(ids, AT_ONCE, resume);
  await until(`end of every ${name}`, async () => (await counted(ended)) >= wanted.ended, REACHED);
  if (left) await until('end of the rest', async () => (await database.query(left)).rowCount === 0, REACHED);
  const perSecond = (fromMs: number) => size / ((performance.now() - fromMs) / 1_000);
  return {
    done: size,
    figures: { 'whole life /s': perSecond(beginMs), 'from the event to the end /s': perSecond(resumeMs) },
  };
}

async function onCluster(measure: (stack: Stack, processes: Processes) => Promise<ExitCode>): Promise<ExitCode> {
  const running = readStack(clusterDirectory);
  const { addresses } = running ?? {};
  const env = { ...process.env, DATABASE_URL: addresses?.databaseUrl };
  const [cardprocSecret] = loadConfig(env, localDirectory).cardprocWebhookSecrets;
  if (!addresses || cardprocSecret === undefined) throw new Error('No cluster runs here. Start it: npm run cluster');
  const database = new pg.Pool({ connectionString: addresses.migrationUrl, max: 2 });
  const pidsOf = (...names: string[]) => names.flatMap((name) => running?.processes[name]?.pid ?? []);
  const processes = {
    API: pidsOf('API 1', 'API 2', 'API 3'),
    worker: pidsOf('worker 1', 'worker 2', 'worker 3'),
    Temporal: pidsOf('Temporal'),
    PostgreSQL: pidsOf('PostgreSQL'),
  };
  const stack = { apiUrl: addresses.apiUrl, database, cardprocSecret };
  return await measure(stack, processes).finally(() => database.end());
}

/** @param subscriber the address of one to all events */
async function settlement(stack: Stack, subscriber?: string): Promise<Subject> {
  const { orgId, settle, pay, subscribe } = await createPayer(stack);
  if (subscriber !== undefined) await subscribe(subscriber);
  const reached = (status: string): string =>
    `SELECT count(*) FROM settlement_transitions JOIN settlements USING (settlement_id)
     WHERE to_status = '${status}' AND org_id = '${orgId}'`;
  return {
    name: subscriber === undefined ? 'card settlement' : 'the same with one subscriber',
    begin: settle,
    resume: pay,
    waiting: reached('awaiting_funds'),
    ended: reached('settled'),
    left: `SELECT FROM webhook_deliveries WHERE status = 'pending' LIMIT 1`,
  };
}

function bareWorkflow({ temporal: { client } }: BenchStack): Subject {
  const stored = (step: number) => `SELECT count(*) FROM bare_step WHERE step = ${step}`;
  const begin = async (): Promise<string> => {
    const workflowId = `bench:${randomUUID()}`;
    await client.workflow.start('bare', { taskQueue: 'bench-bare', workflowId, args: [workflowId] });
    return workflowId;
  };
  return {
    name: 'bare workflow',
    begin,
    resume: (id) => client.workflow.getHandle(id).signal('resumed'),
    waiting: stored(1),
    ended: stored(3),
  };
}
