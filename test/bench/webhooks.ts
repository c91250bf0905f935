/**
 * `webhooks`: deliveries per second and CPU time of each, compared with a bare loop of signed POSTs to the same
 * receiver; how soon a first attempt follows its change, on an idle service and beside organizations under load whose
 * endpoints hang; and what a killed worker delays.
 */
import { randomBytes } from 'node:crypto';
import { Pool } from 'undici';
import { signWebhook } from '../../activities/webhook-signature.ts';
import { optional, text } from '../../ops/command-line/parameter.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { inParallel } from '../support/parallel.ts';
import { type Bench, ROUNDS, report, spreadOf } from './bench.ts';
import { type Contender, compare, type Turn } from './contender.ts';
import {
  type Deliveries,
  openDeliveries,
  RECIPIENTS_EACH,
  SLOW_MS,
  subscriptionsOf,
  takeCallTurn,
  takeFailingTurn,
  takeTurn,
  untilQuiet,
} from './deliveries.ts';
import { measureKill, measureLatency } from './disturbance.ts';
import { withBenchStack } from './stack.ts';

/** Requests of the bare loop at the same time. */
const BARE_AT_ONCE = 80;
const ORGANIZATIONS = 10;
const EVENTS_EACH = 10;
/** To one subscription, in a turn. A slow endpoint gets a part of them: it takes long enough. */
const DELIVERIES = 4_000;
const SLOW_PART = 4;
/** Of the measured rate: beside each, another tenant is measured, one after the other. */
const LOADS = [0.5, 0.25, 0.1] as const;

export const webhooks: Bench = command({
  name: 'webhooks',
  description:
    'Deliveries per second and their latency, compared with a bare loop, beside hanging endpoints, in a crash.',
  takes: {
    rounds: ROUNDS,
    only: optional('--only <words>', 'measures only the deliveries with these words in their name', text),
  },
  run: (printer: Printer, { rounds, only = '' }) =>
    withBenchStack(async (stack) => {
      const deliveries = await openDeliveries(stack);
      try {
        printer.warn('the subscribers are made');
        const { singles, contenders } = contendersOf(deliveries);
        const labels = ['wanted', 'deliveries'];
        const chosen = contenders.filter(({ labels: [, name = ''] }) => name.includes(only));
        const { table, figuresOf } = await compare(printer, { rounds, labels }, chosen);
        if (chosen.length < contenders.length) {
          report(printer, 'webhooks', [table]);
          return EXIT.done;
        }
        printer.warn('calls on the idle service, and beside others');
        const { median } = spreadOf(figuresOf(singles, '/s'));
        const latency = await measureLatency(deliveries, {
          rounds,
          rates: LOADS.map((part) => part * median),
        });
        printer.warn('the kill of the worker');
        report(printer, 'webhooks', [table, latency, await measureKill(deliveries)]);
        return EXIT.done;
      } finally {
        await deliveries.close();
      }
    }),
});

function contendersOf(deliveries: Deliveries) {
  const { organizations, failing, tenants, slow, endpoints, processes } = deliveries;
  const some = organizations.slice(0, ORGANIZATIONS);
  const one = tenants.slice(0, 1);
  const calls = tenants.length * RECIPIENTS_EACH;
  const rest = () => untilQuiet(deliveries);
  const bare: Contender = {
    labels: ['', 'bare loop of signed POSTs'],
    take: () => bareLoop(endpoints.url),
    rest,
  };
  const kept: Contender = {
    labels: ['', 'the same on kept connections'],
    take: () => bareLoop(endpoints.url, { keeps: true }),
    rest,
    against: [bare],
  };
  const contender = (wanted: string, name: string, take: () => Promise<Turn>): Contender => ({
    ...{ labels: [wanted, name], processes, against: [bare], take, rest },
  });
  const singles = contender(
    '600/s, 3 ms',
    `one delivery each to ${subscriptionsOf(organizations)} subscriptions of ${organizations.length} organizations`,
    () => takeTurn(deliveries, organizations, 1),
  );
  const contenders = [
    bare,
    kept,
    singles,
    contender('0.40 of the bare loop', `${EVENTS_EACH} to each of ${subscriptionsOf(some)} subscriptions`, () =>
      takeTurn(deliveries, some, EVENTS_EACH),
    ),
    contender('700/s', `one for each of ${calls} calls of one tenant`, () => takeCallTurn(deliveries, one, calls)),
    contender('700/s, p50 60 ms', `one for each of ${calls} calls of ${tenants.length} tenants`, () =>
      takeCallTurn(deliveries, tenants, RECIPIENTS_EACH),
    ),
    contender('4 000/s, 0.7 ms', `${DELIVERIES} to one subscription`, () => takeTurn(deliveries, one, DELIVERIES)),
    contender('300/s', `to one subscription that takes ${SLOW_MS} ms`, () =>
      takeTurn(deliveries, slow, DELIVERIES / SLOW_PART),
    ),
    contender('', `one to each of ${subscriptionsOf(failing)} subscriptions that fail once, and the retry`, () =>
      takeFailingTurn(deliveries, failing),
    ),
  ];
  return { singles, contenders };
}

/** The least that a delivery needs: sign, connect and post. With `keeps`, connections are used again, as by a lane. */
async function bareLoop(base: string, { keeps = false } = {}): Promise<Turn> {
  const secret = randomBytes(32);
  const body = Buffer.from(JSON.stringify({ id: 'evt', data: 'x'.repeat(600) }));
  const http = new Pool(base, { connections: BARE_AT_ONCE });
  const startedMs = performance.now();
  await inParallel(Array(DELIVERIES).keys(), BARE_AT_ONCE, async (index) => {
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
  const perSecond = DELIVERIES / ((performance.now() - startedMs) / 1_000);
  await http.close();
  return { done: DELIVERIES, figures: { '/s': perSecond } };
}
