/**
 * `complete`: settlements per second from `POST /v2/settle` through the card processor's signed event to `settled`,
 * and the same with one subscriber to all events, and of five organizations with five subscribers each, to the last
 * delivery. They are compared with a bare workflow on the same servers: one signal, and three local activities that
 * insert a row each.
 *
 * A turn has two parts. First all settlements (or workflows) are started, until all of them wait for money (or for the
 * signal). Then all of them are paid (or signalled), until the last one is done.
 *
 * Afterwards settlements begin at a steady rate, without a subscriber and of the five organizations: how long each takes.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { withReceiver } from '../support/http-server.ts';
import { inParallel } from '../support/parallel.ts';
import { until } from '../support/wait.ts';
import { type Bench, count, ROUNDS, report, untilNone } from './bench.ts';
import { type Contender, compare, type Turn } from './contender.ts';
import { startDrive, untilSettled } from './drive.ts';
import { createPayer } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';

const AT_ONCE = 16;
const REACHED = { timeoutMs: 180_000, everyMs: 25 };
const MANY = 5;
/** Temporal works for half a second after the last workflow has ended. The next turn would pay for it. */
const REST_MS = 2_000;
const STEADY = { perSecond: 5, ms: 20_000 } as const;

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

type Settlements = Subject & {
  /** A statement with one row, `p50` and `p99`: ms from acceptance to `settled`, of those accepted from `$1` on. */
  readonly lives: string;
};

export const complete: Bench = command({
  name: 'complete',
  description: 'Settlements per second from acceptance to settled, without and with a subscriber.',
  takes: {
    rounds: ROUNDS,
    settlements: count('--settlements <count>', 'how many settlements a turn has', 100),
  },
  run: (printer: Printer, { rounds, settlements }) =>
    withBenchStack((stack) =>
      withReceiver(async (url) => {
        const { processes: product, worker } = await stack.startProduct();
        const bareWorker = await stack.start('test/bench/bare-worker.ts');
        const processes = { ...product, worker: [worker.pid, bareWorker.pid] };
        const rest = () => delay(REST_MS);
        const burst = (subject: Subject, ...against: readonly Contender[]): Contender => ({
          ...{ labels: [subject.name], processes, against },
          take: () => takeTurn(stack, subject, settlements),
          rest,
        });
        const steady = (subject: Settlements, ...against: readonly Contender[]): Contender => ({
          ...{ labels: [subject.name], processes, against },
          take: () => takeSteadyTurn(stack, subject),
          rest,
        });
        const none = await settlement(stack, 'card settlement', []);
        const one = await settlement(stack, 'the same with one subscriber', [url]);
        const urls = Array.from({ length: MANY }, (_, n) => `${url}/${n}`);
        const many = await settlement(stack, `of ${MANY} organizations with ${MANY} subscribers each`, urls, MANY);
        const bare = burst(bareWorkflow(stack));
        const alone = burst(none, bare);
        const bursts = [alone, burst(one, alone), burst(many, alone), bare];
        const { table: inBursts } = await compare(printer, { rounds, labels: ['what'] }, bursts);
        const unsent = steady(none);
        const labels = [`at ${STEADY.perSecond} a second`];
        const { table: atRate } = await compare(printer, { rounds, labels }, [unsent, steady(many, unsent)]);
        report(printer, 'complete', [inBursts, atRate]);
        return EXIT.done;
      }),
    ),
});

async function takeTurn({ database }: BenchStack, subject: Subject, size: number): Promise<Turn> {
  const { name, begin, resume, waiting, ended, left } = subject;
  const counted = async (statement: string) => Number((await database.query(statement)).rows[0].count);
  const wanted = { waiting: size + (await counted(waiting)), ended: size + (await counted(ended)) };
  const beginMs = performance.now();
  const ids = await inParallel(Array(size).keys(), AT_ONCE, begin);
  await until(`wait of every ${name}`, async () => (await counted(waiting)) >= wanted.waiting, REACHED);
  const resumeMs = performance.now();
  await inParallel(ids, AT_ONCE, resume);
  await until(`end of every ${name}`, async () => (await counted(ended)) >= wanted.ended, REACHED);
  if (left) await untilNone(database, 'end of the rest', left, REACHED);
  const perSecond = (fromMs: number) => size / ((performance.now() - fromMs) / 1_000);
  return {
    done: size,
    figures: { 'whole life /s': perSecond(beginMs), 'from the event to the end /s': perSecond(resumeMs) },
  };
}

async function takeSteadyTurn({ database }: BenchStack, { begin, resume, lives }: Settlements): Promise<Turn> {
  const from = new Date();
  const drive = startDrive([{ settle: begin, pay: resume }], STEADY.perSecond, performance.now() + STEADY.ms);
  const { paid, skipped, failed } = await drive.done;
  if (skipped + failed > 0) throw new Error(`${skipped} requests were left out, and ${failed} failed.`);
  await untilSettled(database);
  const [life] = (await database.query<{ p50: number; p99: number }>(lives, [from])).rows;
  return { done: paid, figures: { 'p50 ms': life?.p50 ?? Number.NaN, 'p99 ms': life?.p99 ?? Number.NaN } };
}

/** @param urls of each organization's subscribers to all events */
async function settlement(
  stack: BenchStack,
  name: string,
  urls: readonly string[],
  organizations = 1,
): Promise<Settlements> {
  const first = await createPayer(stack);
  const payers = [first];
  while (payers.length < organizations) payers.push(await createPayer(stack));
  for (const { subscribe } of payers) for (const url of urls) await subscribe(url);
  const among = payers.map(({ orgId }) => `'${orgId}'`).join();
  /** Asked forty times a second, so it reads one index. */
  const inStatus = (status: string): string =>
    `SELECT count(*) FROM settlements WHERE org_id IN (${among}) AND status = '${status}'`;
  let begun = 0;
  return {
    name,
    begin: () => {
      begun += 1;
      return (payers[begun % payers.length] ?? first).settle();
    },
    resume: first.pay,
    waiting: inStatus('awaiting_funds'),
    ended: inStatus('settled'),
    left: `SELECT FROM webhook_deliveries WHERE status = 'pending' LIMIT 1`,
    lives: `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS p50, percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) AS p99
      FROM (SELECT extract(epoch FROM at - created_at)::float8 * 1000 AS ms
        FROM settlements JOIN settlement_transitions USING (settlement_id)
        WHERE to_status = 'settled' AND org_id IN (${among}) AND created_at >= $1) lives`,
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
