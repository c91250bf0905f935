/**
 * `accept`: acceptances (202) per second of `POST /v2/settle`. They are compared with a bare route, which looks up a
 * key and inserts one row, and with bare starts of an empty workflow on the same Temporal.
 *
 * Screening rejects these settlements right after their acceptance. Acceptance costs the same, and little work is left
 * after each turn. The next turn begins when that work is done. With `--burst` no row of the outbox is due, so nothing
 * is dispatched and the acceptance itself is seen.
 */
import { randomUUID } from 'node:crypto';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import { flag } from '../../ops/command-line/parameter.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { type Bench, count, ROUNDS, report, untilNone } from './bench.ts';
import { type Contender, compare, load, loadHttp, type Turn } from './contender.ts';
import type { Processes } from './cpu.ts';
import { createPayer } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';

const CONNECTIONS = [1, 16, 64] as const;
const ACCEPTED = 202;
const SWEEP_MS = 50;
const DONE = { timeoutMs: 180_000, everyMs: 200 };
/** No worker polls this queue, so these workflows stay as they are until their namespace is deleted. */
const IDLE_TASK_QUEUE = 'bench-idle';

/** What is accepted and not rejected yet. */
export const UNDISPATCHED = `SELECT FROM outbox UNION ALL SELECT FROM settlements WHERE status = 'accepted' LIMIT 1`;

/** What is measured with each number of connections. */
type Subject = {
  readonly name: string;
  readonly processes: Processes;
  measure(connections: number, durationMs: number): Promise<Turn>;
  rest?(): Promise<void>;
};

export const accept: Bench = command({
  name: 'accept',
  description: 'Acceptances per second, compared with a bare route and bare starts of an empty workflow.',
  takes: {
    rounds: ROUNDS,
    turnMs: count('--turn-ms <ms>', 'how long each measurement takes', 1_500),
    burst: flag('--burst', 'hold the dispatch back, and leave the bare starts out'),
  },
  run: (printer: Printer, { rounds, turnMs, burst }) =>
    withBenchStack(async (stack) => {
      if (burst) await holdDispatch(stack);
      const api = await stack.start('api/main.ts');
      if (!burst) await stack.start('worker/main.ts');
      const ours = await acceptance(stack, api.pid, burst);
      const bare = [await bareRoute(stack), ...(burst ? [] : [bareStart(stack)])];
      const contenders = CONNECTIONS.flatMap((connections) => {
        const contender = ({ name, processes, measure, rest }: Subject): Contender => ({
          ...{ labels: [String(connections), name], processes, ...(rest && { rest }) },
          take: () => measure(connections, turnMs),
        });
        const against = bare.map(contender);
        return [{ ...contender(ours), against }, ...against];
      });
      const { table } = await compare(printer, { rounds, labels: ['connections', 'what'] }, contenders);
      report(printer, burst ? 'accept-burst' : 'accept', [table]);
      return EXIT.done;
    }),
});

/**
 * Rows are written as always, and are due only after the benchmark. They are deleted as a dispatch would delete them:
 * each look of a dispatcher would read all of those that wait, which cost a quarter of the rate.
 */
async function holdDispatch({ database }: BenchStack): Promise<void> {
  await database.query("ALTER TABLE outbox ALTER COLUMN due_at SET DEFAULT now() + interval '1 day'");
}

async function acceptance({ database, ...stack }: BenchStack, pid: number, burst: boolean): Promise<Subject> {
  const call = post('/v2/settle', await createPayer(stack, SANDBOX_NAMES.screeningHit));
  return {
    name: '`POST /v2/settle`',
    processes: { API: [pid], ...stack.servers },
    measure: async (connections, durationMs) => {
      const sweep = burst ? setInterval(() => database.query('DELETE FROM outbox'), SWEEP_MS) : undefined;
      return await loadHttp(stack.apiUrl, call, connections, durationMs).finally(() => clearInterval(sweep));
    },
    rest: async () => {
      if (burst) await database.query('TRUNCATE outbox');
      else await untilNone(database, 'end of every settlement', UNDISPATCHED, DONE);
    },
  };
}

async function bareRoute(stack: BenchStack): Promise<Subject> {
  const { pid, log } = await stack.start('test/bench/bare-route.ts');
  const url = /http:\S+/.exec(log)?.[0] ?? '';
  const settleBody = JSON.stringify({ amount: '250.00', corridor: 'US-JM', metadata: {} });
  const call = post('/bare', { apiKey: 'bench', settleBody });
  return {
    name: 'bare route: lookup and INSERT',
    processes: { API: [pid], ...stack.servers },
    measure: (connections, durationMs) => loadHttp(url, call, connections, durationMs),
  };
}

const post = (path: string, { apiKey, settleBody }: { readonly apiKey: string; readonly settleBody: string }) => ({
  method: 'POST' as const,
  path,
  status: ACCEPTED,
  headers: () => ({ 'content-type': 'application/json', 'x-api-key': apiKey, 'idempotency-key': randomUUID() }),
  body: settleBody,
});

function bareStart({ temporal, servers }: BenchStack): Subject {
  const call = async (): Promise<void> => {
    await temporal.client.workflow.start('empty', { taskQueue: IDLE_TASK_QUEUE, workflowId: `bench:${randomUUID()}` });
  };
  return {
    name: 'bare `workflow.start`',
    processes: servers,
    measure: (connections, durationMs) => load(connections, durationMs, call),
  };
}
