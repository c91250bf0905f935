/** First attempts on an idle service, beside organizations whose endpoints hang, and after a worker was killed. */
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import { creator, type Deliveries, paceCalls, publish, reactivate, untilQuiet, waitForArrivals } from './deliveries.ts';
import type { Subscriber } from './subscriber.ts';
import { waitUntil } from './wait.ts';

/** A pause in which the lanes become idle. */
const IDLE_MS = { least: 600, most: 1_200 } as const;

const HANGING_EACH = SUBSCRIPTIONS_MAX / 5;
const NOISY_CALLS = 200;
const CALL_EVERY_MS = 50;
/** They take longer than the time limit of a request. */
const FIRST_CALLS = 500;

const KILLED_ORGANIZATIONS = 25;
const KILLED_EVENTS_EACH = 10;
/** The worker is killed when this part has arrived. */
const ARRIVED_PART = 3;
const DOWN_MS = 2_000;
const RECOVERY_TIMEOUT_MS = 120_000;

export async function measureIdle(deliveries: Deliveries, calls: number): Promise<readonly number[]> {
  await untilQuiet(deliveries);
  await reactivate(deliveries);
  return await paceCalls(deliveries, calls, () => IDLE_MS.least + Math.random() * (IDLE_MS.most - IDLE_MS.least));
}

export type Noise = {
  readonly organizations: number;
  readonly subscriptions: number;
  readonly hanging: number;
  /** The latencies of each round. */
  readonly aloneMs: readonly (readonly number[])[];
  /** From the begin of the load, until the first requests to endpoints that hang have timed out. */
  readonly firstMs: readonly number[];
  /** Afterwards. */
  readonly besideMs: readonly (readonly number[])[];
};

/** @param load `rate`: deliveries per second to the organizations, those to endpoints that hang included */
export async function measureNoise(
  deliveries: Deliveries,
  { organizations, rounds, rate }: { readonly organizations: number; readonly rounds: number; readonly rate: number },
): Promise<Noise> {
  const { log } = await deliveries.stack.start('load', 'test/bench/bare-endpoints.ts', 'for the benchmark');
  const [healthy = '', hangingBase = ''] = log.match(/http:\S+/g) ?? [];
  const noisy = await creator(deliveries.stack.apiUrl)(organizations, (index) => ({
    urls: Array.from(
      { length: SUBSCRIPTIONS_MAX },
      (_subscription, n) => `${n < HANGING_EACH ? hangingBase : healthy}/${index}/${n}`,
    ),
    recipients: 0,
  }));
  const callsOfTenant = async (calls: number) => {
    await reactivate(deliveries);
    return await paceCalls(deliveries, calls, () => CALL_EVERY_MS);
  };
  const repeated = async () => {
    const found: (readonly number[])[] = [];
    for (let round = 0; round < rounds; round += 1) found.push(await callsOfTenant(NOISY_CALLS));
    return found;
  };
  await untilQuiet(deliveries);
  const aloneMs = await repeated();
  let isOver = false;
  const measure = async () => ({ firstMs: await callsOfTenant(FIRST_CALLS), besideMs: await repeated() });
  const end = async (): Promise<void> => {
    isOver = true;
    await (await request(`${healthy}/release`, { method: 'POST' })).body.dump();
  };
  const [beside] = await Promise.all([measure().finally(end), drive(deliveries, noisy, rate, () => isOver)]);
  const [subscriptions, hanging] = [organizations * SUBSCRIPTIONS_MAX, organizations * HANGING_EACH];
  return { organizations, subscriptions, hanging, aloneMs, ...beside };
}

/** Commits an event of one organization after the other. */
async function drive(
  { connection }: Deliveries,
  noisy: readonly Subscriber[],
  rate: number,
  isOver: () => boolean,
): Promise<void> {
  let dueMs = performance.now();
  for (let index = 0; !isOver(); index += 1) {
    const subscriber = noisy[index % noisy.length];
    if (!subscriber) return;
    await publish(connection, [subscriber], 1);
    dueMs += (subscriber.urls.length * 1_000) / rate;
    await delay(Math.max(0, dueMs - performance.now()));
  }
}

export type Kill = {
  readonly subscriptions: number;
  readonly deliveries: number;
  readonly arrived: number;
  /** From the restart of the worker to the last arrival; NaN if some did not arrive. */
  readonly seconds: number;
  readonly duplicates: number;
};

/** Kills the worker in a burst and starts another one. */
export async function measureKill(deliveries: Deliveries): Promise<Kill> {
  const { organizations, connection, endpoints, worker, stack } = deliveries;
  const { arrivals } = endpoints;
  const killed = organizations.slice(0, KILLED_ORGANIZATIONS);
  const subscriptions = killed.reduce((total, { urls }) => total + urls.length, 0);
  const wanted = subscriptions * KILLED_EVENTS_EACH;
  await untilQuiet(deliveries);
  arrivals.length = 0;
  await publish(connection, killed, KILLED_EVENTS_EACH);
  await waitForArrivals(deliveries, wanted / ARRIVED_PART);
  process.kill(worker.pid, 'SIGKILL');
  await delay(DOWN_MS);
  const restartedMs = performance.now();
  const restart = stack.start('worker', 'worker/main.ts', 'worker ready');
  const distinct = () => new Map(arrivals.toReversed().map(({ path, eventId, atMs }) => [`${path} ${eventId}`, atMs]));
  await waitUntil('the arrival of all', () => arrivals.length >= wanted && distinct().size === wanted, {
    timeoutMs: RECOVERY_TIMEOUT_MS,
  }).catch(() => undefined);
  await restart;
  const first = distinct();
  const isComplete = first.size === wanted;
  const seconds = isComplete ? (Math.max(...first.values()) - restartedMs) / 1_000 : Number.NaN;
  if (isComplete) await untilQuiet(deliveries);
  return {
    ...{ subscriptions, deliveries: wanted, arrived: first.size, seconds },
    duplicates: arrivals.length - distinct().size,
  };
}
