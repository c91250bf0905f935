/**
 * `webhooks`: deliveries per second and CPU time of each, compared with a bare loop of signed POSTs to the same
 * receiver; how soon a first attempt follows its change, on an idle service and beside organizations under load whose
 * endpoints hang; and what a killed worker delays.
 */
import { randomBytes } from 'node:crypto';
import { loadavg } from 'node:os';
import { Pool } from 'undici';
import { signWebhook } from '../../activities/webhook-signature.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { type Bench, count, inParallel, percentile, report } from './bench.ts';
import {
  type Deliveries,
  openDeliveries,
  RECIPIENTS_EACH,
  SLOW_MS,
  type Turn,
  takeCallTurn,
  takeTurn,
} from './deliveries.ts';
import { type Kill, measureIdle, measureKill, measureNoise, type Noise } from './disturbance.ts';
import { type Cell, ratios, spreadOf } from './figure.ts';
import { withBenchStack } from './stack.ts';

/** Requests of the bare loop at the same time. */
const BARE_AT_ONCE = 80;
const ORGANIZATIONS = 10;
const EVENTS_EACH = 10;
/** A slow endpoint gets a part of the deliveries: it takes long enough. */
const SLOW_PART = 4;

export const webhooks: Bench = command({
  name: 'webhooks',
  description:
    'Deliveries per second and their latency, compared with a bare loop, beside hanging endpoints, in a crash.',
  takes: {
    rounds: count('--rounds <count>', 'how often each contender is measured', 5),
    noisyRounds: count('--noisy-rounds <count>', 'how often a tenant is measured beside the others', 3),
    deliveries: count('--deliveries <count>', 'to one subscription, in a turn', 4_000),
    subscriptions: count('--subscriptions <count>', 'of organizations with 20 each', 2_000),
    tenants: count('--tenants <count>', 'with one subscription and 10 recipients each', 200),
    organizations: count('--organizations <count>', 'under load, with 20 subscriptions each', 50),
    calls: count('--calls <count>', 'on the idle service, one at a time', 60),
    load: count('--load <percent>', 'of the measured rate, beside which another tenant is measured', 50),
  },
  run: (
    printer: Printer,
    { rounds, noisyRounds, deliveries: each, subscriptions, tenants, organizations, calls, load },
  ) =>
    withBenchStack(async (stack) => {
      const deliveries = await openDeliveries(stack, { subscriptions, tenants });
      try {
        printer.warn('the subscribers are made');
        const contenders = await measureContenders(printer, deliveries, rounds, each);
        printer.warn('calls on the idle service');
        const idleMs = await measureIdle(deliveries, calls);
        const rate = spreadOf(ratesOf(contenders.find(({ name }) => name.startsWith(SINGLES)))).median;
        const noise = await measureNoise(deliveries, { organizations, rounds: noisyRounds, rate: (rate * load) / 100 });
        printer.warn('the kill of the worker');
        const kill = await measureKill(deliveries);
        reportAll(printer, { rounds, load, contenders, idleMs, noise, kill });
        return EXIT.done;
      } finally {
        await deliveries.close();
      }
    }),
});

type Contender = { readonly name: string; readonly wanted: string; readonly turns: Turn[]; take(): Promise<Turn> };
const SINGLES = 'one delivery each';

function contendersOf(deliveries: Deliveries, each: number): Contender[] {
  const { organizations, tenants, slow, endpoints } = deliveries;
  const some = organizations.slice(0, ORGANIZATIONS);
  const one = tenants.slice(0, 1);
  const calls = tenants.length * RECIPIENTS_EACH;
  const contender = (name: string, wanted: string, take: () => Promise<Turn>) => ({ name, wanted, turns: [], take });
  return [
    contender('bare loop of signed POSTs', '', () => bareLoop(endpoints.base, each)),
    contender('the same on kept connections', '', () => bareLoop(endpoints.base, each, { keeps: true })),
    contender(
      `${SINGLES} to ${subscriptionsOf(organizations)} subscriptions of ${organizations.length} organizations`,
      '600/s, 3 ms',
      () => takeTurn(deliveries, organizations, 1),
    ),
    contender(`${EVENTS_EACH} to each of ${subscriptionsOf(some)} subscriptions`, '0.40 of the bare loop', () =>
      takeTurn(deliveries, some, EVENTS_EACH),
    ),
    contender(`one for each of ${calls} calls of one tenant`, '700/s', () => takeCallTurn(deliveries, one, calls)),
    contender(`one for each of ${calls} calls of ${tenants.length} tenants`, '700/s, p50 60 ms', () =>
      takeCallTurn(deliveries, tenants, RECIPIENTS_EACH),
    ),
    contender(`${each} to one subscription`, '4 000/s, 0.7 ms', () => takeTurn(deliveries, one, each)),
    contender(`to one subscription that takes ${SLOW_MS} ms`, '300/s', () =>
      takeTurn(deliveries, slow, Math.ceil(each / SLOW_PART)),
    ),
  ];
}

const subscriptionsOf = (subscribers: readonly { readonly urls: readonly string[] }[]): number =>
  subscribers.reduce((total, { urls }) => total + urls.length, 0);

async function measureContenders(
  printer: Printer,
  deliveries: Deliveries,
  rounds: number,
  each: number,
): Promise<Contender[]> {
  const contenders = contendersOf(deliveries, each);
  for (const { take } of contenders) await take();
  for (let round = 0; round < rounds; round += 1) {
    for (const { turns, take } of contenders) turns.push(await take());
    const rates = contenders.map(({ turns }) => `${turns.at(-1)?.perSecond.toFixed(0)}/s`).join(', ');
    printer.warn(`round ${round + 1} of ${rounds}: ${rates}; load ${loadavg()[0]?.toFixed(1)}`);
  }
  return contenders;
}

/** The least that a delivery needs: sign, connect and post. With `keeps`, connections are used again, as by a lane. */
async function bareLoop(base: string, deliveries: number, { keeps = false } = {}): Promise<Turn> {
  const secret = randomBytes(32);
  const body = Buffer.from(JSON.stringify({ id: 'evt', data: 'x'.repeat(600) }));
  const http = new Pool(base, { connections: BARE_AT_ONCE });
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

const ratesOf = (contender: Contender | undefined): number[] =>
  (contender?.turns ?? []).map(({ perSecond }) => perSecond);

type Results = {
  readonly rounds: number;
  readonly load: number;
  readonly contenders: readonly Contender[];
  readonly idleMs: readonly number[];
  readonly noise: Noise;
  readonly kill: Kill;
};

function reportAll(printer: Printer, { rounds, load, contenders, idleMs, noise, kill }: Results): void {
  const bare = ratesOf(contenders[0]);
  const names = Object.keys(contenders.at(-1)?.turns[0]?.cpuMsEach ?? {});
  const rows = contenders.map((contender) => {
    const { name, wanted, turns } = contender;
    const hasCpu = Object.keys(turns[0]?.cpuMsEach ?? {}).length > 0;
    const cpu = hasCpu ? names.map((process) => turns.map(({ cpuMsEach }) => cpuMsEach[process] ?? Number.NaN)) : [];
    const total = turns.map((_turn, round) => cpu.reduce((sum, ofProcess) => sum + (ofProcess[round] ?? 0), 0));
    const p50Ms = turns.flatMap((turn) => turn.p50Ms ?? []);
    return { name, wanted, perSecond: ratesOf(contender), ratio: ratios(ratesOf(contender), bare), p50Ms, total, cpu };
  });
  const cells = (...values: readonly (readonly number[])[]): Cell[] =>
    values.map((value) => (value.length === 0 ? '' : value));
  const p50 = (latencies: readonly number[]) => percentile(latencies, 0.5);
  const p99 = (latencies: readonly number[]) => percentile(latencies, 0.99);
  const alone = noise.aloneMs.map(p99);
  const beside = noise.besideMs.map(p99);
  const others =
    `${noise.organizations} organizations with ${noise.subscriptions} subscriptions, ` +
    `${noise.hanging} of them hanging, at ${load} % of the rate`;
  report(
    printer,
    'webhooks',
    [
      {
        head: [
          `deliveries, ${rounds} rounds`,
          'wanted',
          '/s',
          '÷ bare loop',
          'p50 ms from answer to arrival',
          'CPU ms each',
          ...names,
        ],
        rows: rows.map(({ name, wanted, perSecond, ratio, p50Ms, total, cpu }) => [
          ...[name, wanted],
          ...cells(perSecond, ratio, p50Ms, cpu.length === 0 ? [] : total),
          ...names.map((_name, index) => cpu[index] ?? ''),
        ]),
      },
      {
        head: ['from the answer to the first attempt', 'wanted', 'p50 ms', 'p99 ms', 'p99 ÷ alone'],
        rows: [
          [`idle service, ${idleMs.length} calls, once`, 'p50 60, p99 600', [p50(idleMs)], [p99(idleMs)], ''],
          [`a call every 50 ms, alone, ${alone.length} rounds`, '', noise.aloneMs.map(p50), alone, ''],
          [`beside ${others}`, '÷ alone 2', noise.besideMs.map(p50), beside, ratios(beside, alone)],
          [
            'beside them in the first 25 s, until requests time out, once',
            '',
            [p50(noise.firstMs)],
            [p99(noise.firstMs)],
            '',
          ],
        ],
      },
      {
        head: [
          `worker killed in a burst of ${kill.deliveries} to ${kill.subscriptions} subscriptions, once`,
          'wanted',
          'measured',
        ],
        rows: [
          ['deliveries that arrived', 'all', String(kill.arrived)],
          ['s from the restart to the last', '15', [kill.seconds]],
          ['of them sent twice', 'counted', String(kill.duplicates)],
        ],
      },
    ],
    {
      contenders: rows.map(({ name, wanted, perSecond, ratio, p50Ms, total, cpu }) => ({
        ...{ name, wanted, per_second: spreadOf(perSecond), ratio: spreadOf(ratio), p50_ms: spreadOf(p50Ms) },
        cpu_ms: spreadOf(total),
        cpu_ms_each: Object.fromEntries(cpu.map((values, index) => [names[index]?.toLowerCase(), spreadOf(values)])),
      })),
      idle_ms: { p50: p50(idleMs), p99: p99(idleMs) },
      beside_load: {
        ...{ load_percent: load, p99_alone_ms: spreadOf(alone), p99_ms: spreadOf(beside) },
        p99_first_ms: p99(noise.firstMs),
      },
      kill,
    },
  );
}
