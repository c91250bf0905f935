/**
 * `read`: reads per second of one settlement, a page of settlements, an estimate and the catalog, compared with a bare
 * route that selects one row by its key and a bare route without a statement.
 */
import { randomUUID } from 'node:crypto';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { type Bench, count, inParallel } from './bench.ts';
import { type Contender, type HttpCall, loadHttp, reportTurns, takeTurns } from './contender.ts';
import { createPayer } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';

const CONNECTIONS = [1, 16] as const;
const SETTLEMENTS = 200;
const AT_ONCE = 8;
const SELECT = 'bare route: SELECT by key';
const EMPTY = 'bare route';

export const read: Bench = command({
  name: 'read',
  description: 'Reads per second, compared with a bare route with and without one SELECT.',
  takes: {
    rounds: count('--rounds <count>', 'how often each contender is measured', 5),
    turnMs: count('--turn-ms <ms>', 'how long each measurement takes', 1_000),
  },
  run: (printer: Printer, { rounds, turnMs }) =>
    withBenchStack(async (stack) => {
      const [ours, bare] = [await reads(stack), await bareRoutes(stack)];
      const contenders = [...ours, ...bare];
      const schedule = { connections: CONNECTIONS, rounds, turnMs };
      const turns = await takeTurns(printer, contenders, schedule);
      const names = { ours: ours.map(({ name }) => name), bare: bare.map(({ name }) => name) };
      reportTurns(printer, 'read', { contenders, schedule, turns }, names);
      return EXIT.done;
    }),
});

async function reads(stack: BenchStack): Promise<Contender[]> {
  const { pid } = await stack.start('api', 'api/main.ts', 'API ready');
  const payer = await createPayer(stack, SANDBOX_NAMES.screeningHit);
  const ids: string[] = [];
  await inParallel(SETTLEMENTS, AT_ONCE, async () => void ids.push(await payer.settle()));
  const key = { 'x-api-key': payer.apiKey };
  const form = { corridor: 'US-JM', amount: '250.00', payment_method: 'card', payout_rail: 'bank_transfer' };
  const calls: Record<string, Omit<HttpCall, 'status'>> = {
    settlement: { method: 'GET', path: `/v2/settle/${ids[0]}`, headers: () => key },
    'page of 20 settlements': { method: 'GET', path: '/v1/caribbean/settlements?limit=20', headers: () => key },
    estimate: {
      method: 'POST',
      path: '/v2/estimate',
      headers: () => ({ ...key, 'content-type': 'application/json' }),
      body: JSON.stringify(form),
    },
    'catalog with a key': { method: 'GET', path: '/v2/capabilities', headers: () => key },
    'catalog without a key': { method: 'GET', path: '/v2/capabilities' },
  };
  return Object.entries(calls).map(([name, call]) => ({
    name,
    processes: { API: [pid] },
    measure: (connections, durationMs) => loadHttp(stack.apiUrl, { ...call, status: 200 }, connections, durationMs),
  }));
}

async function bareRoutes(stack: BenchStack): Promise<Contender[]> {
  const { pid, log } = await stack.start('bare-route', 'test/bench/bare-route.ts', 'for the benchmark');
  const url = /http:\S+/.exec(log)?.[0] ?? '';
  const id = randomUUID();
  await stack.database.query('INSERT INTO bare_row VALUES ($1, $2, $3)', [id, 'bench', { amount: '250.00' }]);
  const contender = (name: string, path: string): Contender => ({
    name,
    processes: { API: [pid] },
    measure: (connections, durationMs) => loadHttp(url, { method: 'GET', path, status: 200 }, connections, durationMs),
  });
  return [contender(SELECT, `/bare/${id}`), contender(EMPTY, '/bare')];
}
