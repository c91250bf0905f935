/** First attempts on an idle service, beside organizations whose endpoints hang, and after a worker was killed. */
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import { askUntil } from '../support/wait.ts';
import { percentile, ratios, type Table } from './bench.ts';
import {
  createSubscribers,
  type Deliveries,
  paceCalls,
  publish,
  type Subscriber,
  subscriptionsOf,
  untilQuiet,
  untilRecorded,
  waitForArrivals,
} from './deliveries.ts';

/** A pause in which the lanes become idle. */
const IDLE_MS = { least: 600, most: 1_200 } as const;
const IDLE_CALLS = 60;

const ORGANIZATIONS = 50;
const HANGING_EACH = SUBSCRIPTIONS_MAX / 5;
const NOISY_CALLS = 200;
const CALL_EVERY_MS = 50;
/** A load that is later than this does not catch up with the rest. */
const BEHIND_MAX_MS = 1_000;
/** They take longer than the time limit of a request. */
const FIRST_CALLS = 500;

const KILLED_ORGANIZATIONS = 25;
const KILLED_EVENTS_EACH = 10;
/** The worker is killed when this part has arrived. */
const ARRIVED_PART = 3;
const DOWN_MS = 2_000;
const RECOVERED = { timeoutMs: 120_000, everyMs: 25 };

const p50 = (latencies: readonly number[]) => percentile(latencies, 0.5);
const p99 = (latencies: readonly number[]) => percentile(latencies, 0.99);

/** How soon a first attempt follows its call. @param rates of deliveries beside it, a second */
export async function measureLatency(
  deliveries: Deliveries,
  { rounds, rates }: { readonly rounds: number; readonly rates: readonly number[] },
): Promise<Table> {
  const pause = () => IDLE_MS.least + Math.random() * (IDLE_MS.most - IDLE_MS.least);
  const idleMs = await paceCalls(deliveries, IDLE_CALLS, pause);
  const { aloneMs, firstMs, loads } = await measureNoise(deliveries, rounds, rates);
  const alone = aloneMs.map(p99);
  const others =
    `beside ${ORGANIZATIONS} organizations with ${ORGANIZATIONS * SUBSCRIPTIONS_MAX} subscriptions, ` +
    `${ORGANIZATIONS * HANGING_EACH} of them hanging, at`;
  const first = `${others} ${rates[0]?.toFixed(0)}/s, in the first 25 s, until requests time out`;
  return {
    head: ['from the answer to the first attempt', 'wanted', 'p50 ms', 'p99 ms', 'p99 ÷ alone'],
    rows: [
      [`idle service, ${IDLE_CALLS} calls, once`, 'p50 60, p99 600', [p50(idleMs)], [p99(idleMs)], ''],
      [`a call every ${CALL_EVERY_MS} ms, alone, ${rounds} rounds`, '', aloneMs.map(p50), alone, ''],
      [`${first}, once`, '', [p50(firstMs)], [p99(firstMs)], ''],
      ...loads.map(({ rate, besideMs }) => {
        const beside = besideMs.map(p99);
        return [`${others} ${rate.toFixed(0)}/s`, '÷ alone 2', besideMs.map(p50), beside, ratios(beside, alone)];
      }),
    ],
  };
}

/** `firstMs`: from the begin of the load, until the first requests to endpoints that hang have timed out. */
async function measureNoise(deliveries: Deliveries, rounds: number, rates: readonly number[]) {
  const { stack } = deliveries;
  const { log } = await stack.start('test/bench/bare-endpoints.ts');
  const [healthy = '', hanging = ''] = log.match(/http:\S+/g) ?? [];
  const noisy = await createSubscribers(stack.apiUrl, ORGANIZATIONS, (index) => ({
    urls: Array.from(
      { length: SUBSCRIPTIONS_MAX },
      (_subscription, n) => `${n < HANGING_EACH ? hanging : healthy}/${index}/${n}`,
    ),
  }));
  const callsOfTenant = async (calls: number): Promise<number[]> => {
    await stack.database.query('UPDATE recipients SET is_active = true WHERE NOT is_active');
    deliveries.endpoints.deactivations.clear();
    return await paceCalls(deliveries, calls, () => CALL_EVERY_MS);
  };
  const repeated = async (): Promise<number[][]> => {
    const found: number[][] = [];
    for (let round = 0; round < rounds; round += 1) found.push(await callsOfTenant(NOISY_CALLS));
    return found;
  };
  await untilQuiet(deliveries);
  const aloneMs = await repeated();
  /** Of the load that runs; none when it is over. */
  let [rateNow] = rates;
  const measure = async () => {
    const firstMs = await callsOfTenant(FIRST_CALLS);
    const loads: { readonly rate: number; readonly besideMs: readonly number[][] }[] = [];
    for (const rate of rates) {
      rateNow = rate;
      loads.push({ rate, besideMs: await repeated() });
    }
    return { firstMs, loads };
  };
  const end = async (): Promise<void> => {
    rateNow = undefined;
    await (await request(`${healthy}/release`, { method: 'POST' })).body.dump();
  };
  const [beside] = await Promise.all([measure().finally(end), drive(deliveries, noisy, () => rateNow)]);
  return { aloneMs, ...beside };
}

/** Commits an event of one organization after the other, while there is a rate. */
async function drive(
  { connection }: Deliveries,
  noisy: readonly Subscriber[],
  rateNow: () => number | undefined,
): Promise<void> {
  let dueMs = performance.now();
  for (let index = 0; ; index += 1) {
    const subscriber = noisy[index % noisy.length];
    const rate = rateNow();
    if (!subscriber || rate === undefined) return;
    await publish(connection, [subscriber], 1);
    dueMs = Math.max(dueMs, performance.now() - BEHIND_MAX_MS) + (subscriber.urls.length * 1_000) / rate;
    await delay(Math.max(0, dueMs - performance.now()));
  }
}

/** Kills the worker in a burst and starts another one. The time is from its start to the last arrival. */
export async function measureKill(deliveries: Deliveries): Promise<Table> {
  const { organizations, connection, endpoints, worker, stack } = deliveries;
  const killed = organizations.slice(0, KILLED_ORGANIZATIONS);
  const wanted = subscriptionsOf(killed) * KILLED_EVENTS_EACH;
  await untilQuiet(deliveries);
  await publish(connection, killed, KILLED_EVENTS_EACH);
  await waitForArrivals(deliveries, wanted / ARRIVED_PART);
  process.kill(worker.pid, 'SIGKILL');
  await delay(DOWN_MS);
  const restartedMs = performance.now();
  const restart = stack.start('worker/main.ts');
  const firstArrivals = () =>
    new Map(endpoints.arrivals.toReversed().map(({ path, eventId, atMs }) => [`${path} ${eventId}`, atMs]));
  const first = await askUntil(firstArrivals, ({ size }) => size === wanted, RECOVERED);
  await restart;
  const seconds = first.size === wanted ? (Math.max(...first.values()) - restartedMs) / 1_000 : Number.NaN;
  if (first.size === wanted) await untilRecorded(deliveries);
  return {
    head: [
      `worker killed in a burst of ${wanted} to ${subscriptionsOf(killed)} subscriptions, once`,
      'wanted',
      'measured',
    ],
    rows: [
      ['deliveries that arrived', 'all', String(first.size)],
      ['s from the restart to the last', '15', [seconds]],
      ['of them sent twice', 'counted', String(endpoints.arrivals.length - first.size)],
    ],
  };
}
