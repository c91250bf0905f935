/**
 * `shares`: how long another tenant's single requests take beside a greedy tenant, compared with the same tenant alone,
 * for each way to be greedy. Rate limits are those of a default configuration.
 */
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
const PERCENTILE = 0.99;
/** The default of the service. `npm run bench` sets another one. */
const LIMITED = { RATE_LIMIT_PER_MINUTE: '1200', TRUSTED_PROXIES: '127.0.0.1' } as const;
const WARM_UP_CALLS = 20;

/** Times in ms. `refused`: the modest tenant's own requests. */
type Shared = {
  readonly aloneMs: number;
  readonly besideMs: number;
  readonly refused: number;
  readonly greedy: z.infer<typeof GreedyRate>;
};
/** Of the greedy tenant, in a second. */
const GreedyRate = z.object({ accepted: z.number(), refused: z.number() });
const HEAD = [
  ...['greedy tenant', 'p99 alone, ms', 'p99 beside it, ms', 'ratio', 'refused'],
  ...['its own: accepted/s', 'refused/s'],
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
      const rows: Cell[][] = [];
      let isFair = true;
      for (const [index, probe] of PROBES.entries()) {
        const { aloneMs, besideMs, refused, greedy } = await measure(stack, index, { seconds, connections });
        const ratio = besideMs / aloneMs;
        isFair &&= ratio <= RATIO_MAX && refused === 0;
        const its = [[greedy.accepted], [greedy.refused]];
        rows.push([probe.name, [aloneMs], [besideMs], [ratio], String(refused), ...its]);
        printer.warn(probe.name);
      }
      report(printer, 'shares', [{ head: HEAD, rows }]);
      return isFair ? EXIT.done : EXIT.refused;
    }),
});

type Load = { readonly seconds: number; readonly connections: number };

async function measure(stack: BenchStack, probe: number, { seconds, connections }: Load): Promise<Shared> {
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
    for (let n = 0; n < WARM_UP_CALLS; n += 1) await call(n);
    const calls = (seconds * 1_000) / CALL_EVERY_MS;
    const alone = await pace(call, calls);
    await ask('/begin');
    const beside = await pace(call, calls);
    return {
      aloneMs: percentile(alone.times, PERCENTILE),
      besideMs: percentile(beside.times, PERCENTILE),
      refused: alone.refused + beside.refused,
      greedy: GreedyRate.parse(JSON.parse(await ask('/end'))),
    };
  } finally {
    await modest.close();
    await greedy.stop();
  }
}

/** A read and a settlement in turn. @returns the status */
async function singleCalls({ call }: Tenant): Promise<(index: number) => Promise<number>> {
  const { recipient_id: id } = jsonOf(await call('POST', '/v1/recipients', recipientBody(SANDBOX_NAMES.screeningHit)));
  const settlement = cardSettlementBody(id);
  return async (index) =>
    (await (index % 2 === 0 ? call('GET', `/v1/recipients/${id}`) : call('POST', '/v2/settle', settlement))).status;
}

/** Makes calls one after another's time, whatever their answers take. */
async function pace(call: (index: number) => Promise<number>, calls: number) {
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
