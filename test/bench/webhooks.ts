/**
 * `webhooks`: deliveries per second from the commit of an event to its receiver, compared with a bare loop of signed
 * POSTs to the same receiver. Then what 20 subscriptions that hang cost the other 180.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { signWebhook } from '../../activities/webhook-signature.ts';
import { IN_FLIGHT, SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import { CommandError, command, EXIT, type Printer } from '../../process/command-line.ts';
import { findRunningStack } from '../../process/running-stack.ts';
import { API_URL, NO_STACK } from '../../scripts/sandbox/command.ts';
import { type Bench, count, inParallel, percentile } from './bench.ts';
import { createSubscriber, type Subscriber } from './subscriber.ts';
import { waitUntil } from './wait.ts';

const ORGANIZATIONS = 10;
const HANGING_PER_ORGANIZATION = 2;
const ROUNDS = 3;
const ARRIVAL_TIMEOUT_MS = 120_000;
const ARRIVAL_POLL_MS = 2;

export const webhooks: Bench = command({
  name: 'webhooks',
  description: 'Deliveries per second beside a bare loop of signed POSTs, and the cost of subscriptions that hang.',
  takes: {
    events: count('--events <count>', 'how many events are delivered to every subscription', 25),
    url: API_URL,
  },
  run: async ({ print, printData }: Printer, { events, url: given }) => {
    const url = given ?? findRunningStack()?.apiUrl;
    if (url === undefined) throw new CommandError(EXIT.unavailable, `${NO_STACK}, or give --url.`);
    const receiver = await startReceiver();
    try {
      const throughput = await measureThroughput(url, receiver, events);
      const { deliveries, served, bare } = throughput;
      print(`${deliveries} deliveries: ${served.toFixed(0)}/s from commit to receiver.`);
      print(`A bare loop of signed POSTs: ${bare.toFixed(0)}/s. Ratio ${(served / bare).toFixed(3)}.`);
      const { healthy, hanging, aloneMs, besideMs } = await measureIsolation(url, receiver);
      const p99s = `${aloneMs.toFixed(0)} ms alone, ${besideMs.toFixed(0)} ms beside ${hanging} that hang`;
      print(`p99 of ${healthy} subscriptions: ${p99s}. Ratio ${(besideMs / aloneMs).toFixed(2)}; the limit is 1.5.`);
      printData({
        throughput: { deliveries, per_second: served, bare_per_second: bare, ratio: served / bare },
        isolation: { healthy, hanging, p99_alone_ms: aloneMs, p99_beside_ms: besideMs, ratio: besideMs / aloneMs },
      });
      return EXIT.done;
    } finally {
      receiver.close();
    }
  },
});

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Records each request and answers at once, except under `/hang/`, where it never answers. */
async function startReceiver() {
  const arrivals: { readonly path: string; readonly atMs: number }[] = [];
  const server = createServer((incoming, response) => {
    const path = incoming.url ?? '';
    incoming.resume();
    incoming.on('end', () => {
      if (path.startsWith('/hang/')) return;
      arrivals.push({ path, atMs: performance.now() });
      response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  const waitForArrivals = (count: number): Promise<void> =>
    waitUntil(`the arrival of ${count} deliveries`, () => arrivals.length >= count, {
      everyMs: ARRIVAL_POLL_MS,
      timeoutMs: ARRIVAL_TIMEOUT_MS,
    });
  return { base, arrivals, close, waitForArrivals };
}

async function measureThroughput(url: string, receiver: Receiver, events: number) {
  const deliveries = events * SUBSCRIPTIONS_MAX;
  const subscriber = await createSubscriber(url);
  for (let index = 0; index < SUBSCRIPTIONS_MAX; index += 1)
    await subscriber.subscribe(`${receiver.base}/fast/${index}`);
  await subscriber.emit(1);
  await receiver.waitForArrivals(SUBSCRIPTIONS_MAX);

  receiver.arrivals.length = 0;
  const startedMs = performance.now();
  await subscriber.emit(events);
  await receiver.waitForArrivals(deliveries);
  const served = deliveries / ((performance.now() - startedMs) / 1_000);
  await subscriber.end();
  const bare = await bareLoop(receiver, deliveries);
  return { deliveries, served, bare };
}

/** The least that a delivery needs: sign, connect and post, with as many requests at once as the service makes. */
async function bareLoop(receiver: Receiver, deliveries: number): Promise<number> {
  const secret = randomBytes(32);
  const body = Buffer.from(JSON.stringify({ id: 'evt', data: 'x'.repeat(600) }));
  const startedMs = performance.now();
  await inParallel(deliveries, IN_FLIGHT.first * SUBSCRIPTIONS_MAX, async (index) => {
    const timestamp = Math.floor(Date.now() / 1_000);
    const id = `evt_${index}`;
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signWebhook([secret], { id, timestamp, body }),
    };
    const answer = await request(`${receiver.base}/bare/`, { method: 'POST', body, headers, reset: true });
    await answer.body.dump();
  });
  return deliveries / ((performance.now() - startedMs) / 1_000);
}

async function measureIsolation(url: string, receiver: Receiver) {
  const subscribers: Subscriber[] = [];
  for (let index = 0; index < ORGANIZATIONS; index += 1) {
    const subscriber = await createSubscriber(url);
    for (let n = HANGING_PER_ORGANIZATION; n < SUBSCRIPTIONS_MAX; n += 1)
      await subscriber.subscribe(`${receiver.base}/fast/${index}/${n}`);
    subscribers.push(subscriber);
  }
  const healthy = ORGANIZATIONS * (SUBSCRIPTIONS_MAX - HANGING_PER_ORGANIZATION);
  const round = async (): Promise<number> => {
    receiver.arrivals.length = 0;
    const startedMs = performance.now();
    await Promise.all(subscribers.map((subscriber) => subscriber.emit(1)));
    await receiver.waitForArrivals(healthy);
    return percentile(
      receiver.arrivals.map(({ atMs }) => atMs - startedMs),
      0.99,
    );
  };
  const rounds = async (): Promise<number> => {
    const found: number[] = [];
    for (let n = 0; n < ROUNDS; n += 1) found.push(await round());
    return percentile(found, 0.5);
  };
  await round();
  const aloneMs = await rounds();
  for (const [index, subscriber] of subscribers.entries()) {
    for (let n = 0; n < HANGING_PER_ORGANIZATION; n += 1)
      await subscriber.subscribe(`${receiver.base}/hang/${index}/${n}`);
  }
  const besideMs = await rounds();
  for (const subscriber of subscribers) await subscriber.end();
  return { healthy, hanging: ORGANIZATIONS * HANGING_PER_ORGANIZATION, aloneMs, besideMs };
}
