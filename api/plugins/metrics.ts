/**
 * Requests as metrics (contract §15): how many and how long by route template, method and status, and which refusals
 * were given. Never an address that a caller wrote: a route that does not exist is `none`.
 */
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { Counter, Histogram } from 'prom-client';
import { ERROR_CODES, type ErrorCode } from '../../domain/error.ts';
import type { ApiDeps } from '../deps.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the request was refused with; set where the problem is sent. */
    refusal?: ErrorCode;
  }
}

/** Seconds; the last is as long as a read may be held (contract §6). */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const metrics = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  if (!deps.metrics) return;
  const registers = [deps.metrics];
  const duration = new Histogram({
    name: 'settlement_http_request_duration_seconds',
    help: 'Requests by route template, method and status, and how long their answers took',
    labelNames: ['route', 'method', 'status'],
    buckets: BUCKETS,
    registers,
  });
  const refusals = new Counter({
    name: 'settlement_http_refusals_total',
    help: 'Refused requests by the code of the problem',
    labelNames: ['code'],
    registers,
  });
  // A rate needs the zero before the first.
  for (const code of ERROR_CODES) refusals.inc({ code }, 0);
  app.addHook('onResponse', async (request, reply) => {
    const { url: route = 'none' } = request.routeOptions;
    duration.observe({ route, method: request.method, status: reply.statusCode }, reply.elapsedTime / 1_000);
    if (request.refusal !== undefined) refusals.inc({ code: request.refusal });
  });
});
