/**
 * `shares`: how long another tenant's single requests take beside a greedy tenant, compared with the same tenant alone,
 * for each way to be greedy. Calls of a bare route at the same times show what the busy machine alone does to a
 * request. Rate limits are those of a default configuration.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { z } from 'zod';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { cardSettlementBody, recipientBody } from '../../scripts/sandbox/partner.ts';
import { type Bench, type Cell, count, percentile, report } from './bench.ts';
import { jsonOf, openCallers, type Tenant } from './greedy.ts';
import { PROBES } from './probe.ts';
import { type BenchStack, withBenchStack } from './stack.ts';

const RATIO_MAX = 3;
/** A modest tenant stays within its budget, also with the requests of the probe before. */
const CALL_EVERY_MS = 100;
const MODEST_CONNECTIONS = 8;
const OK_MAX = 299;
/** The greedy tenant prepares for as long as it takes. */
const NO_TIMEOUT = { headersTimeout: 0 } as const;
const MEDIAN = 0.5;
const PERCENTILE = 0.99;
/** The default of the service. `npm run bench` sets another one. */
const LIMITED = { RATE_LIMIT_PER_MINUTE: '1200', TRUSTED_PROXIES: '127.0.0.1' } as const;
const WARM_UP_CALLS = 20;

type Call = (index: number) => Promise<number>;
/** Times in ms, of the same number of calls alone and beside the greedy tenant. */
type Times = { readonly alone: readonly number[]; readonly beside: readonly number[] };
/** `refused`: the modest tenant's own requests. */
type Shared = {
  readonly modest: Times;
  readonly bare: Times;
  readonly refused: number;
  readonly greedy: z.infer<typeof GreedyRate>;
};
/** Of the greedy tenant, in a second. */
const GreedyRate = z.object({ accepted: z.number(), refused: z.number() });
const HEAD = [
  ...['greedy tenant', 'p50 alone, ms', 'p50 beside it, ms', 'p99 alone, ms', 'p99 beside it, ms', 'ratio of p99'],
  ...['of a bare route', 'refused', 'its own: accepted/s', 'refused/s'],
];

export const shares: Bench = command({
  name: 'shares',
  description: `Another tenant's p99 beside a greedy one ÷ alone, for each way to be greedy. Exits with 1 above ${RATIO_MAX}.`,
  takes: {
    seconds: count('--seconds <count>', 'how long each measurement takes', 20),
    connections: count('--connections <count>', 'of the greedy tenant', 16),
  },
  run: (printer: Printer, { seconds, connections }) =>
    withBenchStack(async (stack) => {
      await stack.startProduct(LIMITED);
      const { log } = await stack.start('test/bench/bare-route.ts');
      const bare = bareCalls(log.match(/http:\S+/)?.[0] ?? '');
      const rows: Cell[][] = [];
      let isFair = true;
      for (const [index, probe] of PROBES.entries()) {
        const { modest, refused, ...others } = await measure(stack, index, { seconds, connections, bare });
        const ratio = ratioOf(modest);
        isFair &&= ratio <= RATIO_MAX && refused === 0;
        const times = [MEDIAN, PERCENTILE].flatMap((part) =>
          [modest.alone, modest.beside].map((some) => [percentile(some, part)]),
        );
        const ratios = [[ratio], [ratioOf(others.bare)]];
        const its = [[others.greedy.accepted], [others.greedy.refused]];
        rows.push([probe.name, ...times, ...ratios, String(refused), ...its]);
        printer.warn(probe.name);
      }
      report(printer, 'shares', [{ head: HEAD, rows }]);
      return isFair ? EXIT.done : EXIT.refused;
    }),
});

const ratioOf = ({ alone, beside }: Times): number => percentile(beside, PERCENTILE) / percentile(alone, PERCENTILE);

type Load = { readonly seconds: number; readonly connections: number; readonly bare: Call };

async function measure(stack: BenchStack, probe: number, { seconds, connections, bare }: Load): Promise<Shared> {
  const greedy = await stack.start('test/bench/greedy-tenant.ts', {
    PROBE: String(probe),
    CONNECTIONS: String(connections),
  });
  const [url = ''] = greedy.log.match(/http:\S+/) ?? [];
  const ask = async (path: string): Promise<string> => {
    const { statusCode, body } = await request(`${url}${path}`, NO_TIMEOUT);
    if (statusCode > OK_MAX) throw new Error(`the greedy tenant answered ${statusCode}: ${await body.text()}`);
    return await body.text();
  };
  const modest = openCallers(stack.apiUrl, MODEST_CONNECTIONS, PROBES.length + probe);
  try {
    await ask('/prepare');
    const call = await singleCalls(await modest.signUp());
    for (let n = 0; n < WARM_UP_CALLS; n += 1) await Promise.all([call(n), bare(n)]);
    const calls = (seconds * 1_000) / CALL_EVERY_MS;
    const paceBoth = () => Promise.all([pace(call, calls), pace(bare, calls)]);
    const [alone, bareAlone] = await paceBoth();
    await ask('/begin');
    const [beside, bareBeside] = await paceBoth();
    return {
      modest: { alone: alone.times, beside: beside.times },
      bare: { alone: bareAlone.times, beside: bareBeside.times },
      refused: alone.refused + beside.refused,
      greedy: GreedyRate.parse(JSON.parse(await ask('/end'))),
    };
  } finally {
    await modest.close();
    await greedy.stop();
  }
}

/** A read and a settlement in turn. @returns the status */
async function singleCalls({ call }: Tenant): Promise<Call> {
  const { recipient_id: id } = jsonOf(await call('POST', '/v1/recipients', recipientBody(SANDBOX_NAMES.screeningHit)));
  const settlement = cardSettlementBody(id);
  return async (index) =>
    (await (index % 2 === 0 ? call('GET', `/v1/recipients/${id}`) : call('POST', '/v2/settle', settlement))).status;
}

/** A read of a row by its key, and a row that is written, in turn. */
const bareCalls =
  (url: string): Call =>
  async (index) => {
    const headers = { 'x-api-key': 'bench', 'idempotency-key': randomUUID(), 'content-type': 'application/json' };
    const { statusCode, body } = await (index % 2 === 0
      ? request(`${url}/bare/none`)
      : request(`${url}/bare`, { method: 'POST', headers, body: '{"amount":"250.00"}' }));
    await body.dump();
    return statusCode;
  };

/** Makes calls one after another's time, whatever their answers take. */
async function pace(call: Call, calls: number) {
  const times: number[] = [];
  let refused = 0;
  const make = async (index: number): Promise<void> => {
    await delay(index * CALL_EVERY_MS);
    const startedMs = performance.now();
    const status = await call(index);
    times.push(performance.now() - startedMs);
    if (status > 299) refused += 1;
  };
  await Promise.all(Array.from({ length: calls }, (_call, index) => make(index)));
  return { times, refused };
}
