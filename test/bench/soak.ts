/**
 * `soak`: settlements with ten subscribers at half of the capacity, for as long as asked. One of the endpoints always
 * fails, each in turn. Reports the memory of API and worker, how far settlements, the outbox and the lanes are behind,
 * and the p99 of `POST /v2/settle`, over time. Exits with 1 when memory grew by more than 5 %, or a row of the outbox
 * became 2 s old.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { type Bench, count, inParallel, percentile, report } from './bench.ts';
import { spreadOf } from './figure.ts';
import { createPayer, type Payer } from './payer.ts';
import { startReceiver } from './receiver.ts';
import { type BenchStack, withBenchStack } from './stack.ts';
import { waitUntil } from './wait.ts';

const AT_ONCE = 16;
/** More requests that wait for an answer mean that half of the capacity is too much at the moment. */
const IN_FLIGHT_MAX = 64;
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

type Sample = {
  readonly atSeconds: number;
  readonly apiMib: number;
  readonly workerMib: number;
  readonly settlementAgeSeconds: number;
  readonly outboxAgeSeconds: number;
  /** Of the oldest delivery that a lane is to send: to any endpoint, and to those that do not fail. */
  readonly laneAgeSeconds: number;
  readonly soundLaneAgeSeconds: number;
  readonly p99Ms: number;
  readonly load: number;
};

export const soak: Bench = command({
  name: 'soak',
  description: 'Settlements and deliveries at half of the capacity: memory, what is behind, and p99, over time.',
  takes: { minutes: count('--minutes <count>', 'how long', 20) },
  run: (printer: Printer, { minutes }) =>
    withBenchStack(async (stack) => {
      let startedMs = Number.POSITIVE_INFINITY;
      const receiver = await startReceiver(({ path, atMs }) =>
        path === `/${Math.floor((atMs - startedMs) / FAILING_MS) % ENDPOINTS}` ? 500 : 204,
      );
      try {
        const api = await stack.start('api', 'api/main.ts', 'API ready');
        const worker = await stack.start('worker', 'worker/main.ts', 'worker ready');
        const payer = await createPayer(stack, 'Marcia Brown');
        for (let n = 0; n < ENDPOINTS; n += 1) await payer.subscribe(`${receiver.base}/${n}`);
        const perSecond = (await measureCapacity(stack, payer)) / 2;
        printer.warn(`${perSecond.toFixed(1)} settlements/s for ${minutes} min`);
        startedMs = performance.now();
        const endMs = startedMs + minutes * 60_000;
        const drive = startDrive(payer, perSecond, endMs);
        const takingSamples = takeSamples(stack, { api: api.pid, worker: worker.pid }, drive.takeTimes, endMs);
        const [samples, missed] = await Promise.all([takingSamples, drive.done]);
        return reportSamples(printer, { samples, perSecond, ...missed }) ? EXIT.done : EXIT.refused;
      } finally {
        receiver.close();
      }
    }),
});

/** Settlements per second to the last delivery, as fast as they are accepted. */
async function measureCapacity({ database }: BenchStack, payer: Payer): Promise<number> {
  const startedMs = performance.now();
  await inParallel(CAPACITY_SETTLEMENTS, AT_ONCE, async () => payer.pay(await payer.settle()));
  const open = `SELECT EXISTS (SELECT FROM settlements WHERE status <> 'settled')
    OR EXISTS (SELECT FROM webhook_deliveries WHERE status = 'pending') OR EXISTS (SELECT FROM outbox) AS any`;
  await waitUntil('the last delivery', async () => !(await database.query(open)).rows[0].any);
  return CAPACITY_SETTLEMENTS / ((performance.now() - startedMs) / 1_000);
}

/** Requests that were left out, because too many waited, and requests that failed. */
type Missed = { readonly skipped: number; readonly failed: number };

/** Settles at this rate, whatever the answers take. */
function startDrive(payer: Payer, perSecond: number, endMs: number) {
  let times: number[] = [];
  const drive = async (): Promise<Missed> => {
    const startedMs = performance.now();
    const underWay = new Set<Promise<void>>();
    let skipped = 0;
    let failed = 0;
    const settle = async (): Promise<void> => {
      const askedMs = performance.now();
      const settlementId = await payer.settle();
      times.push(performance.now() - askedMs);
      await payer.pay(settlementId);
    };
    for (let index = 0; performance.now() < endMs; index += 1) {
      const dueMs = startedMs + (index * 1_000) / perSecond;
      await delay(Math.max(0, dueMs - performance.now()));
      if (underWay.size >= IN_FLIGHT_MAX) {
        skipped += 1;
        continue;
      }
      const settling = settle()
        .catch(() => {
          failed += 1;
        })
        .finally(() => underWay.delete(settling));
      underWay.add(settling);
    }
    await Promise.all(underWay);
    return { skipped, failed };
  };
  const takeTimes = (): number[] => {
    const taken = times;
    times = [];
    return taken;
  };
  return { done: drive(), takeTimes };
}

async function takeSamples(
  { database }: BenchStack,
  pids: { readonly api: number; readonly worker: number },
  takeTimes: () => number[],
  endMs: number,
): Promise<Sample[]> {
  const ages = `SELECT
    coalesce((SELECT extract(epoch FROM now() - min(created_at)) FROM outbox), 0)::float8 AS outbox,
    coalesce((SELECT extract(epoch FROM now() - min(next_attempt_at)) FROM webhook_deliveries
      WHERE lane_key IS NOT NULL), 0)::float8 AS lane,
    coalesce((SELECT extract(epoch FROM now() - min(next_attempt_at)) FROM webhook_deliveries JOIN webhooks USING (webhook_id)
      WHERE webhook_deliveries.lane_key IS NOT NULL AND failing_since IS NULL), 0)::float8 AS sound_lane,
    coalesce((SELECT extract(epoch FROM now() - min(created_at)) FROM settlements
      WHERE status NOT IN ('settled', 'rejected', 'expired', 'failed', 'canceled')), 0)::float8 AS settlement`;
  const samples: Sample[] = [];
  const startedMs = performance.now();
  while (performance.now() + SAMPLE_MS < endMs) {
    await delay(SAMPLE_MS);
    const { rows } = await database.query<Record<'outbox' | 'lane' | 'sound_lane' | 'settlement', number>>(ages);
    samples.push({
      atSeconds: (performance.now() - startedMs) / 1_000,
      apiMib: residentMib(pids.api),
      workerMib: residentMib(pids.worker),
      settlementAgeSeconds: rows[0]?.settlement ?? Number.NaN,
      outboxAgeSeconds: rows[0]?.outbox ?? Number.NaN,
      laneAgeSeconds: rows[0]?.lane ?? Number.NaN,
      soundLaneAgeSeconds: rows[0]?.sound_lane ?? Number.NaN,
      p99Ms: percentile(takeTimes(), 0.99),
      load: loadavg()[0] ?? Number.NaN,
    });
  }
  return samples;
}

/** The resident memory of a process and its children. Known on Linux only. */
function residentMib(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN;
  const own = readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8');
      const field = (label: string): number => Number(new RegExp(`^${label}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
      return Number(name) === pid || field('PPid') === pid ? [field('VmRSS') / 1_024] : [];
    } catch {
      // The process ended during this reading.
      return [];
    }
  });
  return own.reduce((total, mib) => total + mib, 0);
}

type Found = Missed & { readonly samples: readonly Sample[]; readonly perSecond: number };

/** @returns whether memory stayed flat and the outbox young */
function reportSamples(printer: Printer, { samples, perSecond, skipped, failed }: Found): boolean {
  const size = Math.ceil(samples.length / PARTS);
  const parts = Array.from({ length: PARTS }, (_part, index) => samples.slice(index * size, (index + 1) * size));
  const filled = parts.filter((part) => part.length > 0);
  const of = (part: readonly Sample[], pick: (sample: Sample) => number) => part.map(pick);
  const growthOf = (pick: (sample: Sample) => number): number =>
    spreadOf(of(filled.at(-1) ?? [], pick)).median / spreadOf(of(filled[FIRST_PART_JUDGED] ?? [], pick)).median;
  const growth = { api: growthOf(({ apiMib }) => apiMib), worker: growthOf(({ workerMib }) => workerMib) };
  const judged = filled.slice(FIRST_PART_JUDGED).flat();
  const [first, last] = [samples[0], samples.at(-1)];
  const outboxAge = Math.max(...judged.map(({ outboxAgeSeconds }) => outboxAgeSeconds));
  const isSound =
    failed === 0 && growth.api <= GROWTH_MAX && growth.worker <= GROWTH_MAX && outboxAge < OUTBOX_AGE_MAX_SECONDS;
  const table = {
    head: [
      'from s',
      'API MiB',
      'worker MiB',
      'oldest open settlement s',
      'outbox age s',
      'lane age s',
      'without failing',
      'p99 ms',
      'load',
    ],
    rows: filled.map((part) => [
      String(Math.round(part[0]?.atSeconds ?? 0)),
      of(part, ({ apiMib }) => apiMib),
      of(part, ({ workerMib }) => workerMib),
      of(part, ({ settlementAgeSeconds }) => settlementAgeSeconds),
      of(part, ({ outboxAgeSeconds }) => outboxAgeSeconds),
      of(part, ({ laneAgeSeconds }) => laneAgeSeconds),
      of(part, ({ soundLaneAgeSeconds }) => soundLaneAgeSeconds),
      of(part, ({ p99Ms }) => p99Ms),
      of(part, ({ load }) => load),
    ]),
  };
  const data = {
    per_second: perSecond,
    skipped,
    failed,
    memory_growth: growth,
    worker_mib: { start: first?.workerMib, end: last?.workerMib },
    outbox_age_max_seconds: outboxAge,
    lane_age_at_end_seconds: { all: last?.laneAgeSeconds, sound: last?.soundLaneAgeSeconds },
    samples,
  };
  report(printer, 'soak', [table], data);
  const percent = (ratio: number): string => `${((ratio - 1) * 100).toFixed(1)} %`;
  printer.print(
    `Memory grew by ${percent(growth.api)} (API) and ${percent(growth.worker)} (worker); the limit is 5 %. ` +
      `The worker had ${first?.workerMib.toFixed(0)} MiB at the start and ${last?.workerMib.toFixed(0)} at the end. ` +
      `The outbox was at most ${outboxAge.toFixed(2)} s old; the limit is ${OUTBOX_AGE_MAX_SECONDS} s. ` +
      `At the end the oldest delivery of the lanes was ${last?.laneAgeSeconds.toFixed(2)} s late, ` +
      `without the endpoint that fails ${last?.soundLaneAgeSeconds.toFixed(2)} s. ` +
      `${skipped} requests were left out, ${failed} failed.`,
  );
  return isSound;
}
