/**
 * `shares`: how long another tenant's single requests take beside a greedy tenant, compared with the same tenant alone,
 * for each way to be greedy. Rate limits are those of a default configuration.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { cardSettlementBody, recipientBody } from '../../scripts/sandbox/partner.ts';
import { startHttpServer } from '../support/http-server.ts';
import { type Bench, type Cell, count, percentile, report } from './bench.ts';
import { jsonOf, openCallers, type Tenant } from './greedy.ts';
import { PROBES, type Probe } from './probe.ts';
import { type BenchStack, withBenchStack } from './stack.ts';

const RATIO_MAX = 3;
/** A modest tenant stays within its budget, also with the requests of the probe before. */
const CALL_EVERY_MS = 100;
const MODEST_CONNECTIONS = 8;
const NO_CONTENT = 204;
const PERCENTILE = 0.99;
/** The default of the service. `npm run bench` sets another one. */
const LIMITED = { RATE_LIMIT_PER_MINUTE: '1200', TRUSTED_PROXIES: '127.0.0.1' } as const;
const WARM_UP_CALLS = 20;

/** Times in ms. `refused`: the modest tenant's own requests. */
type Shared = {
  readonly aloneMs: number;
  readonly besideMs: number;
  readonly refused: number;
  /** Of the greedy tenant, in a second. */
  readonly greedy: { readonly accepted: number; readonly refused: number };
};
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
      const receiver = await startHttpServer((response) => response.writeHead(NO_CONTENT).end());
      const rows: Cell[][] = [];
      let isFair = true;
      try {
        for (const probe of PROBES) {
          const shared = await measure(stack, probe, { seconds, connections, url: `${receiver.url}/` });
          const { aloneMs, besideMs, refused, greedy } = shared;
          const ratio = besideMs / aloneMs;
          isFair &&= ratio <= RATIO_MAX && refused === 0;
          const its = [[greedy.accepted], [greedy.refused]];
          rows.push([probe.name, [aloneMs], [besideMs], [ratio], String(refused), ...its]);
          printer.warn(probe.name);
        }
      } finally {
        await receiver.close();
      }
      report(printer, 'shares', [{ head: HEAD, rows }]);
      return isFair ? EXIT.done : EXIT.refused;
    }),
});

type Load = { readonly seconds: number; readonly connections: number; readonly url: string };

async function measure({ apiUrl }: BenchStack, probe: Probe, load: Load): Promise<Shared> {
  const [modest, greedy] = [openCallers(apiUrl, MODEST_CONNECTIONS), openCallers(apiUrl, load.connections)];
  try {
    const step = await probe.prepare(greedy, load.url);
    const call = await singleCalls(await modest.signUp());
    for (let n = 0; n < WARM_UP_CALLS; n += 1) await call(n);
    const calls = (load.seconds * 1_000) / CALL_EVERY_MS;
    const alone = await pace(call, calls);
    const greed = loop(step, load.connections);
    const beside = await pace(call, calls);
    return {
      aloneMs: percentile(alone.times, PERCENTILE),
      besideMs: percentile(beside.times, PERCENTILE),
      refused: alone.refused + beside.refused,
      greedy: await greed.stop(),
    };
  } finally {
    await Promise.all([modest.close(), greedy.close()]);
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

/** Repeats requests as fast as they are answered, refused or not. */
function loop(step: (index: number) => Promise<{ readonly status: number }>, atOnce: number) {
  const startedMs = performance.now();
  let isOver = false;
  let next = 0;
  let accepted = 0;
  let refused = 0;
  const lane = async (): Promise<void> => {
    while (!isOver) {
      const { status } = await step(next++);
      if (status > 299) refused += 1;
      else accepted += 1;
    }
  };
  const lanes = Promise.all(Array.from({ length: atOnce }, lane));
  return {
    stop: async () => {
      isOver = true;
      await lanes;
      const seconds = (performance.now() - startedMs) / 1_000;
      return { accepted: accepted / seconds, refused: refused / seconds };
    },
  };
}
