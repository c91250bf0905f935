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
import { readStack } from '../../process/local/running-stack.ts';
import { type Bench, count } from './bench.ts';
import { type Contender, loadHttp, reportTurns, takeTurns } from './contender.ts';
import { load } from './load.ts';
import { createPayer } from './payer.ts';
import { type BenchStack, type Started, withBenchStack } from './stack.ts';
import { waitUntil } from './wait.ts';

const CONNECTIONS = [1, 16, 64] as const;
const ACCEPTED = 202;
const SWEEP_MS = 50;
/** No worker polls this queue, so these workflows stay as they are until their namespace is deleted. */
const IDLE_TASK_QUEUE = 'bench-idle';

export const accept: Bench = command({
  name: 'accept',
  description: 'Acceptances per second, compared with a bare route and bare starts of an empty workflow.',
  takes: {
    rounds: count('--rounds <count>', 'how often each contender is measured', 5),
    turnMs: count('--turn-ms <ms>', 'how long each measurement takes', 1_500),
    burst: flag('--burst', 'hold the dispatch back, and leave the bare starts out'),
  },
  run: (printer: Printer, { rounds, turnMs, burst }) =>
    withBenchStack(async (stack) => {
      if (burst) await holdDispatch(stack);
      const api = await stack.start('api', 'api/main.ts', 'API ready');
      if (!burst) await stack.start('worker', 'worker/main.ts', 'worker ready');
      const ours = await acceptance(stack, api, burst);
      const bare = burst ? [await bareRoute(stack)] : [await bareRoute(stack), bareStart(stack)];
      const contenders = [ours, ...bare];
      const schedule = { connections: CONNECTIONS, rounds, turnMs };
      const turns = await takeTurns(printer, contenders, schedule);
      const names = { ours: [ours.name], bare: bare.map(({ name }) => name) };
      reportTurns(printer, burst ? 'accept-burst' : 'accept', { contenders, schedule, turns }, names);
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

async function acceptance(stack: BenchStack, api: Started, burst: boolean): Promise<Contender> {
  const payer = await createPayer(stack, SANDBOX_NAMES.screeningHit);
  const isDone = async (): Promise<boolean> => {
    const { rows } = await stack.database.query(
      "SELECT NOT EXISTS (SELECT FROM outbox) AND NOT EXISTS (SELECT FROM settlements WHERE status = 'accepted') AS done",
    );
    return rows[0].done;
  };
  return {
    name: '`POST /v2/settle`',
    processes: { API: [api.pid] },
    measure: async (connections, durationMs) => {
      const sweep = burst ? setInterval(() => stack.database.query('DELETE FROM outbox'), SWEEP_MS) : undefined;
      return await loadHttp(stack.apiUrl, post('/v2/settle', payer), connections, durationMs).finally(() =>
        clearInterval(sweep),
      );
    },
    settleDown: async () => {
      if (burst) await stack.database.query('TRUNCATE outbox');
      else await waitUntil('the end of every accepted settlement', isDone, { everyMs: 200 });
    },
  };
}

async function bareRoute(stack: BenchStack): Promise<Contender> {
  const { pid, log } = await stack.start('bare-route', 'test/bench/bare-route.ts', 'for the benchmark');
  const url = /http:\S+/.exec(log)?.[0] ?? '';
  const body = { apiKey: 'bench', settleBody: JSON.stringify({ amount: '250.00', corridor: 'US-JM', metadata: {} }) };
  return {
    name: 'bare route: lookup and INSERT',
    processes: { API: [pid] },
    measure: (connections, durationMs) => loadHttp(url, post('/bare', body), connections, durationMs),
  };
}

const post = (path: string, { apiKey, settleBody }: { readonly apiKey: string; readonly settleBody: string }) => ({
  method: 'POST' as const,
  path,
  status: ACCEPTED,
  headers: () => ({ 'content-type': 'application/json', 'x-api-key': apiKey, 'idempotency-key': randomUUID() }),
  body: settleBody,
});

function bareStart({ temporal }: BenchStack): Contender {
  const call = async (): Promise<void> => {
    await temporal.client.workflow.start('empty', { taskQueue: IDLE_TASK_QUEUE, workflowId: `bench:${randomUUID()}` });
  };
  return {
    name: 'bare `workflow.start`',
    processes: { Temporal: [readStack()?.processes['Temporal']?.pid ?? []].flat() },
    measure: (connections, durationMs) => load(connections, durationMs, call),
  };
}
