/**
 * What the figures of `webhooks` share: subscribers, made once and used by all rounds, their endpoints, and one turn,
 * from the commit of events (or from calls) to the last arrival.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { type Connection, connect } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { writeEvent } from '../../db/queries/event.ts';
import { notifyLane } from '../../db/queries/webhook-lane.ts';
import { laneOf, SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import { recipientBody, signUp } from '../../scripts/sandbox/partner.ts';
import { startHttpServer } from '../support/http-server.ts';
import { inParallel } from '../support/parallel.ts';
import { until } from '../support/wait.ts';
import { percentile, untilNone } from './bench.ts';
import type { Turn } from './contender.ts';
import type { BenchStack } from './stack.ts';

export const SLOW_MS = 80;
export const RECIPIENTS_EACH = 10;
const SUBSCRIPTIONS = 2_000;
const FAILING = 1_000;
const TENANTS = 200;
const SIGN_UPS_AT_ONCE = 4;
const RECIPIENTS_AT_ONCE = 8;
const CALLS_AT_ONCE = 16;
const ARRIVED = { timeoutMs: 60_000, everyMs: 5 };
const QUIET = { timeoutMs: 180_000, everyMs: 250 };
const NO_CONTENT = 204;
const FAULT = 500;

/** A partner with subscriptions and recipients. Each deactivation of a recipient is one event. */
export type Subscriber = {
  readonly orgId: string;
  readonly apiKey: string;
  readonly urls: readonly string[];
  readonly recipientIds: readonly string[];
};
/** A request to an endpoint, and when all of it had arrived, by `performance.now()`. */
type Arrival = { readonly path: string; readonly eventId: string; readonly atMs: number };
export type Deliveries = Awaited<ReturnType<typeof openDeliveries>>;

export async function openDeliveries(stack: BenchStack) {
  const { worker, processes } = await stack.startProduct();
  const endpoints = await openEndpoints();
  const connection = connect(stack.databaseUrl, { poolSizeMax: 2, name: 'bench', onIdleError: () => undefined });
  const close = async (): Promise<void> => {
    await endpoints.close();
    await connection.close();
  };
  return { stack, worker, endpoints, connection, processes, ...(await createAll(stack.apiUrl, endpoints.url)), close };
}

/**
 * The endpoints record each request and answer at once, under `/slow/` after 80 ms. Under `/failing/` the first request
 * for each event fails.
 */
async function openEndpoints() {
  const arrivals: Arrival[] = [];
  /** When the event about each recipient arrived. */
  const deactivations = new Map<string, number>();
  /** What has failed under `/failing/`: path and event. */
  const failed = new Set<string>();
  const { url, close } = await startHttpServer(async (response, { path, headers, body }) => {
    const atMs = performance.now();
    const eventId = String(headers['webhook-id']);
    arrivals.push({ path, eventId, atMs });
    if (path.startsWith('/tenant/')) deactivations.set(JSON.parse(body.toString()).data.recipient_id, atMs);
    if (path.startsWith('/slow/')) await delay(SLOW_MS);
    const fails = path.startsWith('/failing/') && !failed.has(path + eventId);
    if (fails) failed.add(path + eventId);
    response.writeHead(fails ? FAULT : NO_CONTENT).end();
  });
  return { url, close, arrivals, deactivations };
}

/** Organizations with 20 subscriptions each, of which some fail once; tenants with one each, of which one is slow. */
async function createAll(apiUrl: string, base: string) {
  const createOrganizations = (subscriptions: number, path: string) =>
    createSubscribers(apiUrl, subscriptions / SUBSCRIPTIONS_MAX, (index) => ({
      urls: Array.from({ length: SUBSCRIPTIONS_MAX }, (_, n) => `${base}/${path}/${index}/${n}`),
    }));
  const organizations = await createOrganizations(SUBSCRIPTIONS, 'organization');
  const failing = await createOrganizations(FAILING, 'failing');
  const tenants = await createSubscribers(apiUrl, TENANTS, (index) => ({
    urls: [`${base}/tenant/${index}`],
    // As many calls are made for the first one alone as for all of them.
    recipients: index === 0 ? TENANTS * RECIPIENTS_EACH : RECIPIENTS_EACH,
  }));
  const slow = await createSubscribers(apiUrl, 1, () => ({ urls: [`${base}/slow/`] }));
  return { organizations, failing, tenants, slow };
}

/** @param of one subscription for each URL */
export const createSubscribers = (
  baseUrl: string,
  count: number,
  of: (index: number) => { readonly urls: readonly string[]; readonly recipients?: number },
): Promise<Subscriber[]> =>
  inParallel(Array(count).keys(), SIGN_UPS_AT_ONCE, async (index) => {
    const { urls, recipients = 0 } = of(index);
    const { orgId, apiKey, client } = await signUp({ baseUrl });
    for (const url of urls) await client.webhooks.create({ url, event_types: ['recipient.deactivated'] });
    const recipientIds = await inParallel(Array(recipients).keys(), RECIPIENTS_AT_ONCE, async () => {
      return (await client.recipients.create(recipientBody())).recipient_id;
    });
    return { orgId, apiKey, urls, recipientIds };
  });

/** Waits until no lane has anything to send or to record. */
export const untilRecorded = (deliveries: Deliveries) => untilNoDelivery(deliveries, 'lane_key IS NOT NULL');

const untilNoDelivery = ({ stack }: Pick<Deliveries, 'stack'>, condition: string) =>
  untilNone(stack.database, condition, `SELECT FROM webhook_deliveries WHERE ${condition} LIMIT 1`, QUIET);

/** As `untilRecorded`. Then the recipients can be deactivated once more. */
export async function untilQuiet(deliveries: Deliveries): Promise<void> {
  const { stack, endpoints } = deliveries;
  await untilRecorded(deliveries);
  await stack.database.query('UPDATE recipients SET is_active = true WHERE NOT is_active');
  endpoints.arrivals.length = 0;
  endpoints.deactivations.clear();
}

/** Commits so many events of each subscriber at once, and tells their lanes, as the service's processes do. */
export async function publish(
  { db }: Connection,
  subscribers: readonly Subscriber[],
  eventsEach: number,
): Promise<void> {
  const about = { objectType: 'recipient', type: 'recipient.deactivated', requestId: 'bench' } as const;
  await db.transaction(async (tx) => {
    for (const { orgId } of subscribers) {
      for (let n = 0; n < eventsEach; n += 1) {
        const data = { recipient_id: newId(), filler: 'x'.repeat(500) };
        await writeEvent(tx, { ...about, orgId, objectId: newId(), data, at: new Date() }, 1);
      }
    }
  });
  for (const lane of new Set(subscribers.map(({ orgId }) => laneOf(orgId)))) await notifyLane(db, lane);
}

export const waitForArrivals = ({ endpoints }: Deliveries, wanted: number) =>
  until(`arrival of ${wanted} deliveries`, () => endpoints.arrivals.length >= wanted, ARRIVED);

export const subscriptionsOf = (subscribers: readonly Subscriber[]): number =>
  subscribers.reduce((total, { urls }) => total + urls.length, 0);

/** From the commit of the events to the last arrival. */
export async function takeTurn(
  deliveries: Deliveries,
  subscribers: readonly Subscriber[],
  eventsEach: number,
): Promise<Turn> {
  const done = eventsEach * subscriptionsOf(subscribers);
  await publish(deliveries.connection, subscribers, eventsEach);
  const startedMs = performance.now();
  await waitForArrivals(deliveries, done);
  return { done, figures: { '/s': perSecond(done, startedMs) } };
}

/** From the commit of an event of each subscriber, whose endpoint fails once, until every retry has succeeded. */
export async function takeFailingTurn(deliveries: Deliveries, subscribers: readonly Subscriber[]): Promise<Turn> {
  const done = subscriptionsOf(subscribers);
  const startedMs = performance.now();
  await publish(deliveries.connection, subscribers, 1);
  await untilNoDelivery(deliveries, `status = 'pending'`);
  return { done, figures: { '/s': perSecond(done, startedMs) } };
}

/** From the first call to the last arrival: as many recipients of each tenant are deactivated. */
export async function takeCallTurn(
  deliveries: Deliveries,
  tenants: readonly Subscriber[],
  callsEach: number,
): Promise<Turn> {
  const done = callsEach * tenants.length;
  const startedMs = performance.now();
  const latencies = await measureCalls(deliveries, (deactivate) =>
    inParallel(Array(done).keys(), CALLS_AT_ONCE, async (index) => {
      const tenant = tenants[index % tenants.length];
      if (tenant) await deactivate(tenant, Math.floor(index / tenants.length));
    }),
  );
  const figures = { '/s': perSecond(done, startedMs), 'p50 ms from answer to arrival': percentile(latencies, 0.5) };
  return { done, figures };
}

/** Makes calls of a tenant with a pause before each, whatever their answers take. @returns ms from answer to arrival */
export async function paceCalls(deliveries: Deliveries, calls: number, pauseMs: () => number): Promise<number[]> {
  const [tenant] = deliveries.tenants;
  if (!tenant) return [];
  return await measureCalls(deliveries, async (deactivate) => {
    let startMs = 0;
    const call = async (_call: unknown, index: number): Promise<void> => {
      startMs += pauseMs();
      await delay(startMs);
      await deactivate(tenant, index);
    };
    await Promise.all(Array.from({ length: Math.min(calls, tenant.recipientIds.length) }, call));
  });
}

/** @param run deactivates recipients by their index. @returns ms from each answer to the arrival of its delivery */
async function measureCalls(
  { stack, endpoints }: Deliveries,
  run: (deactivate: (tenant: Subscriber, index: number) => Promise<void>) => Promise<unknown>,
): Promise<number[]> {
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
  await until('arrival of every deactivation', haveArrived, ARRIVED);
  return [...answeredMs].map(([id, ms]) => (deactivations.get(id) ?? Number.NaN) - ms);
}

const perSecond = (count: number, startedMs: number): number => count / ((performance.now() - startedMs) / 1_000);
