/**
 * `soak`: settlements with ten subscribers at half of the capacity, for as long as asked. One of the endpoints always
 * fails, each in turn. Reports the memory of API and worker, how far settlements, the outbox and the lanes are behind,
 * and the p99 of `POST /v2/settle`, over time. Exits with 1 when the most memory that a process used grew by more than
 * 5 %, or a row of the outbox became 2 s old.
 */
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { startHttpServer } from '../support/http-server.ts';
import { inParallel } from '../support/parallel.ts';
import { type Bench, count, percentile, report } from './bench.ts';
import { usageOf } from './cpu.ts';
import { type Driven, startDrive, untilSettled } from './drive.ts';
import { createPayer, type Payer } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';

const AT_ONCE = 16;
const CAPACITY_SETTLEMENTS = 200;
const ENDPOINTS = 10;
/** An endpoint fails for so long, then the next one. */
const FAILING_MS = 60_000;
const SAMPLE_MS = 5_000;
const PARTS = 10;
/** The parts before are the warm-up, in which caches fill. */
const FIRST_PART_JUDGED = 3;
const GROWTH_MAX = 1.05;
const OUTBOX_AGE_MAX_SECONDS = 2;

/**
 * By the heads of the columns. Lanes: the oldest delivery that is due, to any endpoint and to those that do not fail.
 */
const HEADS = [
  ...['API MiB', 'worker MiB', 'oldest open settlement s', 'outbox age s', 'lane age s', 'without failing'],
  ...['p99 ms', 'load'],
] as const;
type Sample = Readonly<Record<(typeof HEADS)[number] | 'from s', number>>;

export const soak: Bench = command({
  name: 'soak',
  description: 'Settlements and deliveries at half of the capacity: memory, what is behind, and p99, over time.',
  takes: { minutes: count('--minutes <count>', 'how long', 20) },
  run: (printer: Printer, { minutes }) =>
    withBenchStack(async (stack) => {
      let startedMs = Number.POSITIVE_INFINITY;
      const failing = () => `/${Math.floor((performance.now() - startedMs) / FAILING_MS) % ENDPOINTS}`;
      const receiver = await startHttpServer((response, { path }) =>
        response.writeHead(path === failing() ? 500 : 204).end(),
      );
      try {
        const { api, worker } = await stack.startProduct();
        const payer = await createPayer(stack);
        for (let n = 0; n < ENDPOINTS; n += 1) await payer.subscribe(`${receiver.url}/${n}`);
        const perSecond = (await measureCapacity(stack, payer)) / 2;
        printer.warn(`${perSecond.toFixed(1)} settlements/s for ${minutes} min`);
        startedMs = performance.now();
        const endMs = startedMs + minutes * 60_000;
        const drive = startDrive([payer], perSecond, endMs);
        const takingSamples = takeSamples(stack, { api: api.pid, worker: worker.pid }, drive.takeTimes, endMs);
        const [samples, driven] = await Promise.all([takingSamples, drive.done]);
        return judge(printer, samples, driven) ? EXIT.done : EXIT.refused;
      } finally {
        await receiver.close();
      }
    }),
});

/** Settlements per second to the last delivery, as fast as they are accepted. */
async function measureCapacity({ database }: BenchStack, payer: Payer): Promise<number> {
  const startedMs = performance.now();
  await inParallel(Array(CAPACITY_SETTLEMENTS).keys(), AT_ONCE, async () => {
    await payer.pay(await payer.settle());
  });
  await untilSettled(database);
  return CAPACITY_SETTLEMENTS / ((performance.now() - startedMs) / 1_000);
}

async function takeSamples(
  { database }: BenchStack,
  pids: { readonly api: number; readonly worker: number },
  takeTimes: () => number[],
  endMs: number,
): Promise<Sample[]> {
  const statement = `SELECT
    coalesce((SELECT extract(epoch FROM now() - min(created_at)) FROM outbox), 0)::float8 AS outbox,
    coalesce((SELECT extract(epoch FROM now() - min(next_attempt_at)) FROM webhook_deliveries
      WHERE lane_key IS NOT NULL AND next_attempt_at <= now()), 0)::float8 AS lane,
    coalesce((SELECT extract(epoch FROM now() - min(next_attempt_at)) FROM webhook_deliveries JOIN webhooks USING (webhook_id)
      WHERE webhook_deliveries.lane_key IS NOT NULL AND next_attempt_at <= now() AND failing_since IS NULL), 0)::float8 AS sound_lane,
    coalesce((SELECT extract(epoch FROM now() - min(created_at)) FROM settlements
      WHERE status NOT IN ('settled', 'rejected', 'expired', 'failed', 'canceled')), 0)::float8 AS settlement`;
  const samples: Sample[] = [];
  const startedMs = performance.now();
  while (performance.now() + SAMPLE_MS < endMs) {
    await delay(SAMPLE_MS);
    const { rows } = await database.query<Record<'outbox' | 'lane' | 'sound_lane' | 'settlement', number>>(statement);
    const [ages] = rows;
    samples.push({
      'from s': (performance.now() - startedMs) / 1_000,
      'API MiB': usageOf([pids.api]).residentMib,
      'worker MiB': usageOf([pids.worker]).residentMib,
      'oldest open settlement s': ages?.settlement ?? Number.NaN,
      'outbox age s': ages?.outbox ?? Number.NaN,
      'lane age s': ages?.lane ?? Number.NaN,
      'without failing': ages?.sound_lane ?? Number.NaN,
      'p99 ms': percentile(takeTimes(), 0.99),
      load: loadavg()[0] ?? Number.NaN,
    });
  }
  return samples;
}

/** Prints the parts of the time. @returns whether memory stayed flat and the outbox young, and no request failed */
function judge(printer: Printer, samples: readonly Sample[], { skipped, failed }: Driven): boolean {
  const size = Math.ceil(samples.length / PARTS);
  const parts = Array.from({ length: PARTS }, (_part, index) => samples.slice(index * size, (index + 1) * size));
  const filled = parts.filter((part) => part.length > 0);
  const valuesOf = (part: readonly Sample[] | undefined, head: keyof Sample) => (part ?? []).map((each) => each[head]);
  const rows = filled.map((part) => [
    String(Math.round(part[0]?.['from s'] ?? 0)),
    ...HEADS.map((head) => valuesOf(part, head)),
  ]);
  report(printer, 'soak', [{ head: ['from s', ...HEADS], rows }]);
  const judged = filled.slice(FIRST_PART_JUDGED).flat();
  const highest = (part: readonly Sample[], head: keyof Sample): number => Math.max(...valuesOf(part, head));
  // V8 gives memory back and takes it again, so one moment says little. A leak raises the highest use.
  const middle = Math.floor(judged.length / 2);
  const growthOf = (head: keyof Sample): number =>
    highest(judged.slice(middle), head) / highest(judged.slice(0, middle), head);
  const growth = { api: growthOf('API MiB'), worker: growthOf('worker MiB') };
  const outboxAge = highest(judged, 'outbox age s');
  const percent = (ratio: number): string => `${((ratio - 1) * 100).toFixed(1)} %`;
  printer.print(
    `Peak memory grew by ${percent(growth.api)} (API) and ${percent(growth.worker)} (worker) from the first half of what ` +
      `is judged to the second; the limit is ${percent(GROWTH_MAX)}. ` +
      `The outbox was at most ${outboxAge.toFixed(2)} s old; the limit is ${OUTBOX_AGE_MAX_SECONDS} s. ` +
      `${skipped} requests were left out, ${failed} failed.`,
  );
  const isFlat = growth.api <= GROWTH_MAX && growth.worker <= GROWTH_MAX;
  return failed === 0 && isFlat && outboxAge < OUTBOX_AGE_MAX_SECONDS;
}
