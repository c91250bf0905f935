/**
 * `worker`: how long a worker takes from its start until it is ready, its memory, idle and with waiting settlements,
 * and how soon one of these settles once it is paid: in the cache, and where its history is read and replayed first.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../../clients/typescript/index.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { workerMetricsPort } from '../../process/metrics.ts';
import { cardSettlementBody } from '../../scripts/sandbox/partner.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { inParallel } from '../support/parallel.ts';
import { bankledgerBody, bankledgerSignature, PROVIDER_SECRETS } from '../support/provider-event.ts';
import { until } from '../support/wait.ts';
import { type Bench, type Cell, count, percentile, report, untilNone } from './bench.ts';
import { startCpu, usageOf } from './cpu.ts';
import { createPayer, type Payer, type Settler } from './payer.ts';
import { type BenchStack, type Started, withBenchStack } from './stack.ts';

const AT_ONCE = 16;
const PART = 1_000;
const REPORTED = 10 * PART;
const SETTLE_DOWN_MS = 3_000;
const WAIT = { timeoutMs: 900_000, everyMs: 500 };
/** Of the newest, and of the oldest. */
const PAID = 100;
/** Of the SDK: tasks of workflows that were not in the cache. */
const REPLAYS = 'temporal_sticky_cache_miss_total';
const SETTLED = { timeoutMs: 30_000, everyMs: 5 };

export const worker: Bench = command({
  name: 'worker',
  description: 'How long a worker takes until it is ready, its memory, and what many open settlements cost it.',
  takes: {
    starts: count('--starts <count>', 'how often the worker is started', 5),
    settlements: count('--settlements <count>', 'how many settlements wait when the memory is read', 2_000),
  },
  run: (printer: Printer, { starts, settlements }) =>
    withBenchStack(async (stack) => {
      const metricsPort = await freePort();
      const times: number[] = [];
      const idle: number[] = [];
      let last: Started | undefined;
      for (let start = 0; start < starts; start += 1) {
        await last?.stop();
        const startedMs = performance.now();
        last = await stack.start('worker/main.ts', { METRICS_PORT: String(metricsPort) });
        times.push(performance.now() - startedMs);
        idle.push(await residentMib(last));
      }
      if (!last) throw new Error('No worker was started.');
      await stack.start('api/main.ts');
      const payer = byWire(await createPayer(stack), stack);
      const openedMs = performance.now();
      const ids = await open(stack, payer, settlements, printer.warn);
      const openSeconds = (performance.now() - openedMs) / 1_000;
      const rows = [
        ['start to ready, ms', times],
        ['resident idle, MiB', idle],
        [`resident with ${settlements} waiting settlements, MiB`, [await residentMib(last)]],
        ['settlements opened a second', [ids.length / openSeconds]],
      ] as const;
      const cost = { worker: last.pid, metricsUrl: `http://127.0.0.1:${workerMetricsPort(metricsPort)}/metrics` };
      const newest = await settleEach(stack, payer, cost, ids.slice(-PAID));
      const oldest = await settleEach(stack, payer, cost, ids.slice(0, PAID));
      const head = ['one after the other', 'histories replayed', 'p50 ms', 'p99 ms', 'CPU ms of the worker'];
      report(printer, 'worker', [
        { head: ['worker', 'value'], rows },
        {
          head,
          rows: [
            [`the newest ${PAID}`, ...newest],
            [`the oldest ${PAID}`, ...oldest],
          ],
        },
      ]);
      return EXIT.done;
    }),
});

/** By wire a settlement waits for ten days. By card it expires after 30 minutes, before 100 000 of them are open. */
function byWire({ client, recipientId }: Payer, { apiUrl }: BenchStack): Settler {
  const body = cardSettlementBody(recipientId, { payment_method: 'wire', card_token: null });
  const bankledger = createClient({ baseUrl: apiUrl, attemptsMax: 1 });
  return {
    settle: async () => (await client.settlements.create(body)).settlement_id,
    pay: async (settlementId) => {
      const event = bankledgerBody(settlementId);
      const signature = bankledgerSignature(JSON.stringify(event), PROVIDER_SECRETS.bankledger);
      const headers = { 'x-signature': signature };
      await bankledger.request('POST', '/v2/webhooks/bankledger', { headers, body: event });
    },
  };
}

async function residentMib({ pid }: Started): Promise<number> {
  await delay(SETTLE_DOWN_MS);
  return usageOf([pid]).residentMib;
}

/**
 * Opens settlements that wait for money, a part at a time: the API refuses new ones while too many are not dispatched.
 */
async function open({ database }: BenchStack, { settle }: Settler, wanted: number, warn: Printer['warn']) {
  const left = `SELECT FROM outbox UNION ALL SELECT FROM settlements WHERE status <> 'awaiting_funds' LIMIT 1`;
  const ids: string[] = [];
  while (ids.length < wanted) {
    const part = Math.min(PART, wanted - ids.length);
    ids.push(...(await inParallel(Array(part).keys(), AT_ONCE, settle)));
    await untilNone(database, 'wait of every settlement', left, WAIT);
    if (ids.length % REPORTED === 0) warn(`${ids.length} settlements wait`);
  }
  return ids;
}

/** Pays one after the other, and waits until each has settled. @returns the cells of a row after its name */
async function settleEach(
  { database }: BenchStack,
  { pay }: Settler,
  { worker, metricsUrl }: { readonly worker: number; readonly metricsUrl: string },
  ids: readonly string[],
): Promise<readonly Cell[]> {
  const replayed = async () => sumOf(await (await fetch(metricsUrl)).text(), REPLAYS);
  const before = await replayed();
  const cpu = startCpu({ worker: [worker] });
  const times: number[] = [];
  for (const id of ids) {
    const paidMs = performance.now();
    await pay(id);
    const settled = `SELECT FROM settlements WHERE settlement_id = $1 AND status = 'settled'`;
    await until('end of a settlement', async () => (await database.query(settled, [id])).rowCount === 1, SETTLED);
    times.push(performance.now() - paidMs);
  }
  const { worker: cpuMs = Number.NaN } = cpu(ids.length);
  return [[(await replayed()) - before], [percentile(times, 0.5)], [percentile(times, 0.99)], [cpuMs]];
}

/** Of all labels. */
const sumOf = (metrics: string, name: string): number =>
  metrics
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
