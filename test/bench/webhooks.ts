/**
 * `webhooks`: deliveries per second from the commit of their events to the receiver, compared with a bare loop of signed
 * POSTs to the same receiver. Then an endpoint that takes 80 ms, and what subscriptions that hang cost the others.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { signWebhook } from '../../activities/webhook-signature.ts';
import { type Connection, connect } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { recordFirstEvent } from '../../db/queries/event.ts';
import { SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { type Bench, count, inParallel, percentile, report } from './bench.ts';
import type { Processes } from './contender.ts';
import { cpuMs } from './cpu.ts';
import { ratios, spreadOf } from './figure.ts';
import { type BenchStack, withBenchStack } from './stack.ts';
import { createSubscriber, type Subscriber } from './subscriber.ts';
import { waitUntil } from './wait.ts';

const SLOW_MS = 80;
/** Requests of the bare loop at the same time. */
const BARE_AT_ONCE = 80;
const ORGANIZATIONS = 10;
const HANGING_PER_ORGANIZATION = 4;
const ARRIVAL_TIMEOUT_MS = 300_000;
const POLL_MS = 5;
const QUIET_POLL_MS = 250;

export const webhooks: Bench = command({
  name: 'webhooks',
  description:
    'Deliveries per second, compared with a bare loop of signed POSTs, and the cost of subscriptions that hang.',
  takes: {
    rounds: count('--rounds <count>', 'how often each contender is measured', 5),
    deliveries: count('--deliveries <count>', 'how many deliveries a turn has', 2_000),
    subscriptions: count('--subscriptions <count>', 'with one delivery each, measured once', 2_000),
    hangingRounds: count('--hanging-rounds <count>', 'how often the healthy are measured with those that hang', 5),
  },
  run: (printer: Printer, { rounds, deliveries, subscriptions, hangingRounds }) =>
    withBenchStack(async (stack) => {
      const bench = await open(stack);
      try {
        const turns = await measureTurns(printer, bench, rounds, deliveries);
        printer.warn('one delivery to each subscription');
        const singles = await measureSingles(bench, subscriptions);
        printer.warn('subscriptions that hang');
        const isolation = await measureIsolation(bench, hangingRounds);
        reportAll(printer, { turns, singles, isolation, deliveries, subscriptions });
        return EXIT.done;
      } finally {
        await bench.close();
      }
    }),
});

type Setup = Awaited<ReturnType<typeof open>>;

/** The service's processes, a receiver in this process, and a connection that writes events. */
async function open(stack: BenchStack) {
  const api = await stack.start('api', 'api/main.ts', 'API ready');
  const worker = await stack.start('worker', 'worker/main.ts', 'worker ready');
  const servers = readStack()?.processes ?? {};
  const pidsOf = (name: string) => [servers[name]?.pid ?? []].flat();
  const processes: Processes = {
    API: [api.pid],
    worker: [worker.pid],
    Temporal: pidsOf('Temporal'),
    PostgreSQL: pidsOf('PostgreSQL'),
  };
  const receiver = await startReceiver();
  const connection = connect(stack.databaseUrl, { poolSizeMax: 2, name: 'bench', onIdleError: () => undefined });
  const subscribers = async (organizations: number, each: number, path: string): Promise<Subscriber[]> => {
    const created: Subscriber[] = [];
    for (let index = 0; index < organizations; index += 1) {
      const subscriber = await createSubscriber(stack.apiUrl);
      for (let n = 0; n < each; n += 1) await subscriber.subscribe(`${receiver.base}/${path}/${index}/${n}`);
      created.push(subscriber);
    }
    return created;
  };
  /** Waits until every result is recorded. */
  const untilQuiet = (): Promise<void> =>
    waitUntil(
      'the record of the last delivery',
      async () =>
        (await stack.database.query('SELECT 1 FROM webhook_deliveries WHERE lane_key IS NOT NULL LIMIT 1')).rowCount ===
        0,
      { everyMs: QUIET_POLL_MS },
    );
  const close = async (): Promise<void> => {
    receiver.close();
    await connection.close();
  };
  return { receiver, connection, processes, subscribers, untilQuiet, close };
}

/** Records each request and answers at once, under `/slow/` after 80 ms, and under `/hang/` never. */
async function startReceiver() {
  const arrivals: { readonly path: string; readonly atMs: number }[] = [];
  const server = createServer((incoming, response) => {
    const path = incoming.url ?? '';
    incoming.resume();
    incoming.on('end', async () => {
      if (path.startsWith('/hang/')) return;
      arrivals.push({ path, atMs: performance.now() });
      if (path.startsWith('/slow/')) await delay(SLOW_MS);
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
  const waitForArrivals = (wanted: number): Promise<void> =>
    waitUntil(`the arrival of ${wanted} deliveries`, () => arrivals.length >= wanted, {
      everyMs: POLL_MS,
      timeoutMs: ARRIVAL_TIMEOUT_MS,
    });
  return { base, arrivals, close, waitForArrivals };
}

/** Commits so many events of each partner at once, and nudges a dispatcher. */
async function publish({ db }: Connection, subscribers: readonly Subscriber[], eventsEach: number): Promise<void> {
  await db.transaction(async (tx) => {
    for (const { orgId } of subscribers) {
      for (let n = 0; n < eventsEach; n += 1)
        await recordFirstEvent(tx, {
          orgId,
          objectType: 'recipient',
          objectId: newId(),
          type: 'recipient.deactivated',
          data: { recipient_id: newId(), filler: 'x'.repeat(500) },
          at: new Date(),
          requestId: 'bench',
        });
    }
  });
  await subscribers[0]?.nudge();
}

type Turn = { readonly perSecond: number; readonly cpuMsEach: Readonly<Record<string, number>> };

/** From the commit of the events to the last arrival. */
async function takeTurn(
  { receiver, connection, processes, untilQuiet }: Setup,
  subscribers: readonly Subscriber[],
  { eventsEach, deliveries }: { readonly eventsEach: number; readonly deliveries: number },
): Promise<Turn> {
  await untilQuiet();
  receiver.arrivals.length = 0;
  const used = () => Object.entries(processes).map(([name, pids]): [string, number] => [name, cpuMs(pids)]);
  const before = new Map(used());
  await publish(connection, subscribers, eventsEach);
  const startedMs = performance.now();
  await receiver.waitForArrivals(deliveries);
  const perSecond = deliveries / ((performance.now() - startedMs) / 1_000);
  const each = used().map(([name, ms]) => [name, (ms - (before.get(name) ?? Number.NaN)) / deliveries]);
  return { perSecond, cpuMsEach: Object.fromEntries(each) };
}

type Contender = { readonly name: string; readonly turns: Turn[]; take(): Promise<Turn> };

async function measureTurns(printer: Printer, bench: Setup, rounds: number, deliveries: number): Promise<Contender[]> {
  const one = await bench.subscribers(1, 1, 'one');
  const many = await bench.subscribers(ORGANIZATIONS, SUBSCRIPTIONS_MAX, 'many');
  const slow = await bench.subscribers(1, 1, 'slow');
  const eventsEach = Math.ceil(deliveries / (ORGANIZATIONS * SUBSCRIPTIONS_MAX));
  const ofMany = eventsEach * ORGANIZATIONS * SUBSCRIPTIONS_MAX;
  const contenders: Contender[] = [
    { name: 'bare loop of signed POSTs', turns: [], take: () => bareLoop(bench, deliveries) },
    { name: 'the same on kept connections', turns: [], take: () => bareLoop(bench, deliveries, { keeps: true }) },
    {
      name: 'one subscription',
      turns: [],
      take: () => takeTurn(bench, one, { eventsEach: deliveries, deliveries }),
    },
    {
      name: `${ORGANIZATIONS * SUBSCRIPTIONS_MAX} subscriptions`,
      turns: [],
      take: () => takeTurn(bench, many, { eventsEach, deliveries: ofMany }),
    },
    {
      name: `one subscription that takes ${SLOW_MS} ms`,
      turns: [],
      take: () => takeTurn(bench, slow, { eventsEach: deliveries, deliveries }),
    },
  ];
  for (const { take } of contenders) await take();
  for (let round = 0; round < rounds; round += 1) {
    for (const { turns, take } of contenders) turns.push(await take());
    const rates = contenders.map(({ turns }) => `${turns.at(-1)?.perSecond.toFixed(0)}/s`).join(', ');
    printer.warn(`round ${round + 1} of ${rounds}: ${rates}; load ${loadavg()[0]?.toFixed(1)}`);
  }
  for (const subscriber of [...one, ...many, ...slow]) await subscriber.end();
  return contenders;
}

/** The least that a delivery needs: sign, connect and post. With `keeps`, connections are used again, as by a run. */
async function bareLoop({ receiver }: Setup, deliveries: number, { keeps = false } = {}): Promise<Turn> {
  const secret = randomBytes(32);
  const body = Buffer.from(JSON.stringify({ id: 'evt', data: 'x'.repeat(600) }));
  const http = new Pool(receiver.base, { connections: BARE_AT_ONCE });
  const startedMs = performance.now();
  await inParallel(deliveries, BARE_AT_ONCE, async (index) => {
    const timestamp = Math.floor(Date.now() / 1_000);
    const id = `evt_${index}`;
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signWebhook([secret], { id, timestamp, body }),
    };
    const answer = await http.request({ path: '/bare/', method: 'POST', body, headers, reset: !keeps });
    await answer.body.dump();
  });
  const perSecond = deliveries / ((performance.now() - startedMs) / 1_000);
  await http.close();
  return { perSecond, cpuMsEach: {} };
}

/** As many subscriptions as asked, with one delivery each: what a run of a workflow costs. */
async function measureSingles(bench: Setup, subscriptions: number): Promise<Turn> {
  const organizations = Math.ceil(subscriptions / SUBSCRIPTIONS_MAX);
  const subscribers = await bench.subscribers(organizations, SUBSCRIPTIONS_MAX, 'single');
  const turn = await takeTurn(bench, subscribers, { eventsEach: 1, deliveries: organizations * SUBSCRIPTIONS_MAX });
  for (const subscriber of subscribers) await subscriber.end();
  return turn;
}

type Isolation = {
  readonly healthy: number;
  readonly hanging: number;
  readonly aloneMs: readonly number[];
  readonly withHangingMs: readonly number[];
};

/** The p99 of the healthy subscriptions' arrivals, in turns with and without the others, which never answer. */
async function measureIsolation(bench: Setup, rounds: number): Promise<Isolation> {
  const healthyEach = SUBSCRIPTIONS_MAX - HANGING_PER_ORGANIZATION;
  const subscribers = await bench.subscribers(ORGANIZATIONS, healthyEach, 'healthy');
  const healthy = ORGANIZATIONS * healthyEach;
  const hanging: string[][] = [];
  for (const [index, subscriber] of subscribers.entries()) {
    const ids: string[] = [];
    for (let n = 0; n < HANGING_PER_ORGANIZATION; n += 1)
      ids.push(await subscriber.subscribe(`${bench.receiver.base}/hang/${index}/${n}`));
    hanging.push(ids);
  }
  const setHanging = async (status: 'enabled' | 'disabled'): Promise<void> => {
    for (const [index, ids] of hanging.entries()) for (const id of ids) await subscribers[index]?.setStatus(id, status);
  };
  const round = async (): Promise<number> => {
    bench.receiver.arrivals.length = 0;
    const startedMs = performance.now();
    await publish(bench.connection, subscribers, 1);
    await bench.receiver.waitForArrivals(healthy);
    const latencies = bench.receiver.arrivals.map(({ atMs }) => atMs - startedMs);
    return percentile(latencies, 0.99);
  };
  const [aloneMs, withHangingMs]: [number[], number[]] = [[], []];
  await setHanging('disabled');
  await round();
  for (let n = 0; n < rounds; n += 1) {
    await bench.untilQuiet();
    aloneMs.push(await round());
    await setHanging('enabled');
    // The first round makes them hang; the second one is measured with them.
    await round();
    withHangingMs.push(await round());
    await setHanging('disabled');
  }
  for (const subscriber of subscribers) await subscriber.end();
  return { healthy, hanging: ORGANIZATIONS * HANGING_PER_ORGANIZATION, aloneMs, withHangingMs };
}

type Results = {
  readonly turns: readonly Contender[];
  readonly singles: Turn;
  readonly isolation: Isolation;
  readonly deliveries: number;
  readonly subscriptions: number;
};

function reportAll(printer: Printer, { turns, singles, isolation, deliveries, subscriptions }: Results): void {
  const single = { name: `${subscriptions} subscriptions, one delivery each`, turns: [singles] };
  const contenders = [...turns, single];
  const rateOf = (contender: { readonly turns: readonly Turn[] } | undefined) =>
    (contender?.turns ?? []).map(({ perSecond }) => perSecond);
  const bare = rateOf(turns[0]);
  const names = Object.keys(singles.cpuMsEach);
  const rows = contenders.map((contender) => {
    const cpu = names.map((name) => contender.turns.map(({ cpuMsEach }) => cpuMsEach[name] ?? Number.NaN));
    const total = contender.turns.map(({ cpuMsEach }) => Object.values(cpuMsEach).reduce((sum, ms) => sum + ms, 0));
    return { name: contender.name, perSecond: rateOf(contender), ratio: ratios(rateOf(contender), bare), cpu, total };
  });
  const { healthy, hanging, aloneMs, withHangingMs } = isolation;
  report(
    printer,
    'webhooks',
    [
      {
        head: ['deliveries', '/s', 'ratio', 'CPU ms each', ...names],
        rows: rows.map(({ name, perSecond, ratio, total, cpu }) => [name, perSecond, ratio, total, ...cpu]),
      },
      {
        head: [`p99 of ${healthy} subscriptions, ms`, `with ${hanging} that hang`, 'ratio'],
        rows: [[aloneMs, withHangingMs, ratios(withHangingMs, aloneMs)]],
      },
    ],
    {
      deliveries,
      contenders: rows.map(({ name, perSecond, ratio, total }) => ({
        name,
        per_second: spreadOf(perSecond),
        ratio: spreadOf(ratio),
        cpu_ms: spreadOf(total),
      })),
      isolation: { healthy, hanging, p99_alone_ms: spreadOf(aloneMs), p99_with_hanging_ms: spreadOf(withHangingMs) },
    },
  );
}
