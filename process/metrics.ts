/**
 * `/metrics` of a process (contract §15), on a port of its own that must never be published. It shows the process, its
 * database pools, whether it can use Temporal, and what the caller adds. Labels are states, kinds, codes and route
 * templates: no person, no object, and no set of values that grows with use.
 */
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Connection } from '../db/client.ts';
import { LIST_SOURCES, type ListSource } from '../db/replica.ts';
import { asProcess } from '../db/tenant.ts';
import type { TemporalHealth } from '../domain/temporal-health.ts';
import { measureDatabase } from './readiness.ts';

const REQUEST_TIMEOUT_MS = 10_000;
const TEMPORAL_SCRAPE_TIMEOUT_MS = 2_000;

/** Returns a part of the page, in Prometheus's text format. */
export type Exposition = () => Promise<string>;

/**
 * Pools of connections. A process has `main`; an API with a replica also has `lists`, a worker `lanes` and `retries`.
 */
export type PoolName = 'main' | 'lists' | 'lanes' | 'retries';

type CountedPool = Pick<Connection, 'waiting'> & {
  readonly pool: Pick<Connection['pool'], 'totalCount' | 'idleCount'>;
};

type ProcessMetricsDeps = Pick<Connection, 'db'> & {
  /** Those that are open when the page is made. */
  readonly pools: ReadonlyMap<PoolName, CountedPool>;
  readonly temporalHealth: () => Promise<TemporalHealth>;
};

/**
 * A registry with the metrics of every process: memory, event loop, garbage collector, the connections of its pools,
 * and what it sees of PostgreSQL's clock and of Temporal.
 */
export function processRegistry({ pools, db, temporalHealth }: ProcessMetricsDeps): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'settlement_database_pool_connections',
    help: 'Connections of this process to PostgreSQL by pool: total, idle, and requests waiting for one',
    labelNames: ['pool', 'state'],
    registers: [registry],
    collect() {
      for (const [name, { pool, waiting }] of pools) {
        this.set({ pool: name, state: 'total' }, pool.totalCount);
        this.set({ pool: name, state: 'idle' }, pool.idleCount);
        this.set({ pool: name, state: 'waiting' }, waiting());
      }
    },
  });
  new Gauge({
    name: 'settlement_process_memory_ratio',
    help: 'How much of its memory the process uses: of the container or machine, or of the heap, whichever is more',
    registers: [registry],
    collect() {
      const { rss, heapUsed } = process.memoryUsage();
      const limit = process.constrainedMemory();
      const room = limit > 0 && limit < totalmem() ? limit : totalmem();
      this.set(Math.max(rss / room, heapUsed / getHeapStatistics().heap_size_limit));
    },
  });
  new Gauge({
    name: 'settlement_clock_offset_seconds',
    help: "How far this process's clock is ahead of PostgreSQL's; absent while PostgreSQL does not answer",
    registers: [registry],
    async collect() {
      try {
        const { clockOffsetMs } = await asProcess(() => measureDatabase({ db, now: () => new Date() }));
        this.set(clockOffsetMs / 1_000);
      } catch {
        this.remove();
      }
    },
  });
  new Gauge({
    name: 'settlement_temporal_up',
    help: 'Whether this process can use Temporal: 0 for each cause of `temporal_cause` in /health/ready',
    registers: [registry],
    async collect() {
      this.set((await temporalHealth()).status === 'up' ? 1 : 0);
    },
  });
  return registry;
}

/** Counts lists by who answered them. Both begin at 0. */
export function countListSources(registry: Registry): (source: ListSource) => void {
  const counter = new Counter({
    name: 'settlement_list_reads_total',
    help: 'Lists by who answered them: the replica, or the primary while the replica was late or failed',
    labelNames: ['source'],
    registers: [registry],
  });
  for (const source of LIST_SOURCES) counter.inc({ source }, 0);
  return (source) => counter.inc({ source });
}

/** The Temporal SDK's own metrics, from an internal port; an empty text when the port does not answer. */
export function temporalExposition(port: number): Exposition {
  return async () => {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`, {
        signal: AbortSignal.timeout(TEMPORAL_SCRAPE_TIMEOUT_MS),
      });
      return answer.ok ? await answer.text() : '';
    } catch {
      return '';
    }
  };
}

/**
 * The worker's metrics port: the one after the API's, so that both can run on one machine with one configuration. 0
 * means any free port.
 */
export const workerMetricsPort = (metricsPort: number): number => (metricsPort === 0 ? 0 : metricsPort + 1);

/** A port of 127.0.0.1 that was free when this function looked. */
export async function freeLoopbackPort(): Promise<number> {
  const server = createTcpServer();
  return await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const port = portOf(server.address());
      server.close(() => resolve(port));
    });
  });
}

type Answer = readonly [status: number, type: string, text: string];
const jsonAnswer = (status: number, body: object): Answer => [status, 'application/json', JSON.stringify(body)];

export type MetricsServer = { readonly port: number; close(): Promise<void> };

/** @throws Error when the port is in use */
export async function serveMetrics(options: {
  readonly host: string;
  readonly port: number;
  readonly expositions: readonly Exposition[];
  /** Of a process without another port: the same port also answers `/health/live` and `/health/ready`. */
  readonly readiness?: () => Promise<{ readonly status: 'ready' | 'not_ready' }>;
}): Promise<MetricsServer> {
  const { expositions, readiness } = options;
  const metrics = async (): Promise<Answer> => {
    const parts = await Promise.all(expositions.map((expose) => expose()));
    return [200, Registry.PROMETHEUS_CONTENT_TYPE, parts.map((part) => `${part.trim()}\n`).join('')];
  };
  const health = (ask: NonNullable<typeof readiness>): Readonly<Record<string, () => Promise<Answer>>> => ({
    '/health/live': async () => jsonAnswer(200, { status: 'live' }),
    '/health/ready': async () => {
      const found = await ask();
      return jsonAnswer(found.status === 'ready' ? 200 : 503, found);
    },
  });
  const answers = new Map(Object.entries({ '/metrics': metrics, ...(readiness && health(readiness)) }));
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
    (request, response) => {
      const answer = request.method === 'GET' ? answers.get(request.url ?? '') : undefined;
      if (answer === undefined) {
        response.writeHead(404).end();
        return;
      }
      answer().then(
        ([status, type, text]) => response.writeHead(status, { 'content-type': type }).end(text),
        () => response.writeHead(500).end(),
      );
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: portOf(server.address()),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const portOf = (address: AddressInfo | string | null): number =>
  typeof address === 'object' && address !== null ? address.port : 0;
