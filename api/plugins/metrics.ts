/**
 * Metrics of requests (contract §15): number and duration by route template, method and status, and refusals by code.
 * The address that a caller sent is never a label: an unknown route is `none`. Also counts what the objectives are
 * about: acceptances and reads.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { Counter, Histogram } from 'prom-client';
import { ERROR_CODES, type ErrorCode } from '../../domain/error.ts';
import { countServiceLevels } from '../../process/service-level.ts';
import type { ApiDeps } from '../deps.ts';
import { refusalOf } from '../http/client-error.ts';
import { ABORTED_STATUS, STATUS_OF } from '../http/error-handler.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The code of the problem that answered the request; set when the problem is sent. */
    refusal?: ErrorCode;
  }
}

/** Seconds. The last bucket is the longest wait of a read (contract §6). */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const ACCEPTING = ['/v2/settle', '/v1/caribbean/settle'];
const ACCEPT_MS_MAX = 1_000;
const READ_MS_MAX = 500;
const SERVER_ERRORS_FROM = 500;

/** Every answered request does. One without an answer does if it was already slow, and its body had been read. */
const countsForObjective = ({ raw }: FastifyRequest, status: number, isSlow: boolean): boolean =>
  status !== ABORTED_STATUS || (isSlow && raw.complete);

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
  const count = countServiceLevels(deps.metrics, ['accept', 'read']);
  // Prometheus computes a rate from two samples, so that each series must begin with 0.
  for (const code of ERROR_CODES) refusals.inc({ code }, 0);
  // Before the answer, which ends the socket.
  app.server.prependListener('clientError', (error, socket) => {
    const code = refusalOf(error, socket);
    if (code === undefined) return;
    duration.observe({ route: 'none', method: 'none', status: STATUS_OF[code] }, 0);
    refusals.inc({ code });
  });
  app.onRequestEnd((request, reply, status) => {
    const { url: route = 'none' } = request.routeOptions;
    const { elapsedTime: ms } = reply;
    duration.observe({ route, method: request.method, status }, ms / 1_000);
    if (request.refusal !== undefined) refusals.inc({ code: request.refusal });
    // A closed gate is meant.
    const isBad = status >= SERVER_ERRORS_FROM && request.refusal !== 'launch_gates_closed';
    if (request.method === 'POST' && ACCEPTING.includes(route)) {
      if (countsForObjective(request, status, ms > ACCEPT_MS_MAX)) count('accept', !isBad && ms <= ACCEPT_MS_MAX);
    } else if (request.method === 'GET' && request.routeOptions.config.access?.auth !== 'none') {
      // A read that waits is as slow as its caller wishes.
      const isSlow = ms > READ_MS_MAX && !reply.hasHeader('preference-applied');
      if (countsForObjective(request, status, isSlow && request.headers['prefer'] === undefined))
        count('read', !isBad && !isSlow);
    }
  });
});
