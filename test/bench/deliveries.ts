/**
 * What the figures of `webhooks` share: subscribers, made once and used by all rounds, their endpoints, and one turn,
 * from the commit of events (or from calls) to the last arrival.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { type Connection, connect } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { recordFirstEvent } from '../../db/queries/event.ts';
import { notifyLanes } from '../../db/queries/webhook-lane.ts';
import { SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import { inParallel, percentile } from './bench.ts';
import { type CpuMsEach, startCpu } from './cpu.ts';
import { type Arrival, startReceiver } from './receiver.ts';
import type { BenchStack } from './stack.ts';
import { createSubscriber, type Subscriber } from './subscriber.ts';
import { waitUntil } from './wait.ts';

export const SLOW_MS = 80;
export const RECIPIENTS_EACH = 10;
const SIGN_UPS_AT_ONCE = 4;
const CALLS_AT_ONCE = 16;
const ARRIVAL_TIMEOUT_MS = 60_000;
const POLL_MS = 5;
const QUIET_POLL_MS = 250;
const NO_CONTENT = 204;

export type Turn = { readonly perSecond: number; readonly cpuMsEach: CpuMsEach; readonly p50Ms?: number };
export type Sizes = { readonly subscriptions: number; readonly tenants: number };
export type Deliveries = Awaited<ReturnType<typeof openDeliveries>>;

export async function openDeliveries(stack: BenchStack, sizes: Sizes) {
  const api = await stack.start('api', 'api/main.ts', 'API ready');
  const worker = await stack.start('worker', 'worker/main.ts', 'worker ready');
  const endpoints = await openEndpoints();
  const connection = connect(stack.databaseUrl, { poolSizeMax: 2, name: 'bench', onIdleError: () => undefined });
  const close = async (): Promise<void> => {
    endpoints.close();
    await connection.close();
  };
  const processes = { API: [api.pid], worker: [worker.pid], ...stack.servers };
  const subscribers = await createSubscribers(stack.apiUrl, endpoints.base, sizes);
  return { stack, worker, endpoints, connection, processes, ...subscribers, close };
}

/** The endpoints record each request, and answer at once, under `/slow/` after 80 ms. */
async function openEndpoints() {
  const arrivals: Arrival[] = [];
  const deactivations = new Map<string, number>();
  const { base, close } = await startReceiver(async (arrival) => {
    const { path, body, atMs } = arrival;
    arrivals.push(arrival);
    if (path.startsWith('/tenant/')) deactivations.set(JSON.parse(body.toString()).data.recipient_id, atMs);
    if (path.startsWith('/slow/')) await delay(SLOW_MS);
    return NO_CONTENT;
  });
  return { base, close, arrivals, deactivations };
}

/** Organizations with 20 subscriptions each, tenants with one each, and one whose endpoint is slow. */
async function createSubscribers(apiUrl: string, base: string, { subscriptions, tenants: wanted }: Sizes) {
  const create = creator(apiUrl);
  const organizations = await create(Math.ceil(subscriptions / SUBSCRIPTIONS_MAX), (index) => ({
    urls: Array.from({ length: SUBSCRIPTIONS_MAX }, (_, n) => `${base}/organization/${index}/${n}`),
    recipients: 0,
  }));
  const tenants = await create(wanted, (index) => ({
    urls: [`${base}/tenant/${index}`],
    // As many calls are made for the first one alone as for all of them.
    recipients: index === 0 ? wanted * RECIPIENTS_EACH : RECIPIENTS_EACH,
  }));
  const slow = await create(1, () => ({ urls: [`${base}/slow/`], recipients: 0 }));
  return { organizations, tenants, slow };
}

/** Creates subscribers. */
export const creator =
  (apiUrl: string) =>
  async (count: number, of: (index: number) => Parameters<typeof createSubscriber>[1]): Promise<Subscriber[]> => {
    const created: Subscriber[] = [];
    await inParallel(count, SIGN_UPS_AT_ONCE, async (index) => {
      created[index] = await createSubscriber(apiUrl, of(index));
    });
    return created;
  };

/** Waits until every result is recorded. */
export async function untilQuiet({ stack }: Deliveries): Promise<void> {
  const pending = 'SELECT FROM webhook_deliveries WHERE lane_key IS NOT NULL LIMIT 1';
  await waitUntil('the end of the last delivery', async () => (await stack.database.query(pending)).rowCount === 0, {
    everyMs: QUIET_POLL_MS,
  });
}

/** Commits so many events of each subscriber at once, and tells the lanes, as the service's processes do. */
export async function publish(
  { db }: Connection,
  subscribers: readonly Subscriber[],
  eventsEach: number,
): Promise<void> {
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
  await notifyLanes(db);
}

export const waitForArrivals = ({ endpoints }: Deliveries, wanted: number, timeoutMs = ARRIVAL_TIMEOUT_MS) =>
  waitUntil(`the arrival of ${wanted} deliveries`, () => endpoints.arrivals.length >= wanted, {
    everyMs: POLL_MS,
    timeoutMs,
  });

/** From the commit of the events to the last arrival. */
export async function takeTurn(
  deliveries: Deliveries,
  subscribers: readonly Subscriber[],
  eventsEach: number,
): Promise<Turn> {
  const { endpoints, connection, processes } = deliveries;
  const wanted = eventsEach * subscribers.reduce((total, { urls }) => total + urls.length, 0);
  await untilQuiet(deliveries);
  endpoints.arrivals.length = 0;
  const cpu = startCpu(processes);
  await publish(connection, subscribers, eventsEach);
  const startedMs = performance.now();
  await waitForArrivals(deliveries, wanted);
  return { perSecond: perSecond(wanted, startedMs), cpuMsEach: cpu(wanted) };
}

/** From the first call to the last arrival: as many recipients of each tenant are deactivated. */
export async function takeCallTurn(
  deliveries: Deliveries,
  tenants: readonly Subscriber[],
  callsEach: number,
): Promise<Turn> {
  await untilQuiet(deliveries);
  await reactivate(deliveries);
  const wanted = callsEach * tenants.length;
  const cpu = startCpu(deliveries.processes);
  const startedMs = performance.now();
  const latencies = await measureCalls(deliveries, (deactivate) =>
    inParallel(wanted, CALLS_AT_ONCE, async (index) => {
      const tenant = tenants[index % tenants.length];
      if (tenant) await deactivate(tenant, Math.floor(index / tenants.length));
    }),
  );
  return { perSecond: perSecond(wanted, startedMs), cpuMsEach: cpu(wanted), p50Ms: percentile(latencies, 0.5) };
}

/** Makes calls of a tenant with a pause before each, whatever their answers take. @returns ms from answer to arrival */
export async function paceCalls(
  deliveries: Deliveries,
  calls: number,
  pauseMs: () => number,
): Promise<readonly number[]> {
  const [tenant] = deliveries.tenants;
  if (!tenant) return [];
  return await measureCalls(deliveries, async (deactivate) => {
    let startMs = 0;
    const call = async (index: number): Promise<void> => {
      startMs += pauseMs();
      await delay(startMs);
      await deactivate(tenant, index);
    };
    await Promise.all(
      Array.from({ length: Math.min(calls, tenant.recipientIds.length) }, (_call, index) => call(index)),
    );
  });
}

/** The recipients can be deactivated once more. */
export async function reactivate({ stack, endpoints }: Deliveries): Promise<void> {
  await stack.database.query('UPDATE recipients SET is_active = true WHERE NOT is_active');
  endpoints.arrivals.length = 0;
  endpoints.deactivations.clear();
}

/** @param run deactivates recipients by their index. @returns ms from each answer to the arrival of its delivery */
async function measureCalls(
  { stack, endpoints }: Deliveries,
  run: (deactivate: (tenant: Subscriber, index: number) => Promise<void>) => Promise<void>,
): Promise<readonly number[]> {
  const http = new Pool(stack.apiUrl, { connections: CALLS_AT_ONCE });
  const answeredMs = new Map<string, number>();
  const deactivate = async ({ apiKey, recipientIds }: Subscriber, index: number): Promise<void> => {
    const recipientId = recipientIds[index] ?? '';
    const path = `/v1/recipients/${recipientId}`;
    const answer = await http.request({ method: 'DELETE', path, headers: { 'x-api-key': apiKey } });
    answeredMs.set(recipientId, performance.now());
    await answer.body.dump();
    if (answer.statusCode !== 200) throw new Error(`DELETE ${path} answered ${answer.statusCode}`);
  };
  await run(deactivate).finally(() => http.close());
  const { deactivations } = endpoints;
  const haveArrived = () => [...answeredMs.keys()].every((id) => deactivations.has(id));
  const options = { everyMs: POLL_MS, timeoutMs: ARRIVAL_TIMEOUT_MS };
  await waitUntil('the arrival of every deactivation', haveArrived, options);
  return [...answeredMs].map(([id, ms]) => (deactivations.get(id) ?? Number.NaN) - ms);
}

const perSecond = (count: number, startedMs: number): number => count / ((performance.now() - startedMs) / 1_000);
