/**
 * `read`: reads per second of one settlement, a page of settlements, an estimate and the catalog, compared with a bare
 * route that selects one row by its key and a bare route without a statement.
 */
import { randomUUID } from 'node:crypto';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { inParallel } from '../support/parallel.ts';
import { type Bench, count, ROUNDS, report } from './bench.ts';
import { type Contender, compare, type HttpCall, loadHttp } from './contender.ts';
import { createPayer } from './payer.ts';
import { withBenchStack } from './stack.ts';

const CONNECTIONS = [1, 16] as const;
const SETTLEMENTS = 200;
const AT_ONCE = 8;

type Calls = Readonly<Record<string, Omit<HttpCall, 'status'>>>;

export const read: Bench = command({
  name: 'read',
  description: 'Reads per second, compared with a bare route with and without one SELECT.',
  takes: { rounds: ROUNDS, turnMs: count('--turn-ms <ms>', 'how long each measurement takes', 1_000) },
  run: (printer: Printer, { rounds, turnMs }) =>
    withBenchStack(async (stack) => {
      const api = await stack.start('api/main.ts');
      const { settle, apiKey } = await createPayer(stack, SANDBOX_NAMES.screeningHit);
      const [settlementId = ''] = await inParallel(Array(SETTLEMENTS).keys(), AT_ONCE, settle);
      const bare = await stack.start('test/bench/bare-route.ts');
      const bareUrl = /http:\S+/.exec(bare.log)?.[0] ?? '';
      const rowId = randomUUID();
      await stack.database.query('INSERT INTO bare_row VALUES ($1, $2, $3)', [rowId, 'bench', { amount: '250.00' }]);
      const contenders = CONNECTIONS.flatMap((connections) => {
        const contendersOf = (pid: number, url: string, calls: Calls): Contender[] =>
          Object.entries(calls).map(([name, call]) => ({
            labels: [String(connections), name],
            processes: { API: [pid], ...stack.servers },
            take: () => loadHttp(url, { ...call, status: 200 }, connections, turnMs),
          }));
        const against = contendersOf(bare.pid, bareUrl, bareCalls(rowId));
        const ours = contendersOf(api.pid, stack.apiUrl, readCalls(settlementId, apiKey));
        return [...ours.map((contender) => ({ ...contender, against })), ...against];
      });
      const { table } = await compare(printer, { rounds, labels: ['connections', 'what'] }, contenders);
      report(printer, 'read', [table]);
      return EXIT.done;
    }),
});

function readCalls(settlementId: string, apiKey: string): Calls {
  const headers = () => ({ 'x-api-key': apiKey });
  const form = { corridor: 'US-JM', amount: '250.00', payment_method: 'card', payout_rail: 'bank_transfer' };
  return {
    settlement: { method: 'GET', path: `/v2/settle/${settlementId}`, headers },
    'page of 20 settlements': { method: 'GET', path: '/v1/caribbean/settlements?limit=20', headers },
    estimate: {
      method: 'POST',
      path: '/v2/estimate',
      headers: () => ({ ...headers(), 'content-type': 'application/json' }),
      body: JSON.stringify(form),
    },
    'catalog with a key': { method: 'GET', path: '/v2/capabilities', headers },
    'catalog without a key': { method: 'GET', path: '/v2/capabilities' },
  };
}

const bareCalls = (rowId: string): Calls => ({
  'bare route: SELECT by key': { method: 'GET', path: `/bare/${rowId}` },
  'bare route': { method: 'GET', path: '/bare' },
});
