/**
 * Metrics of requests (contract §15): number and duration by route template, method and status, and refusals by code.
 * The address that a caller sent is never a label: an unknown route is `none`. Also counts what the objectives are
 * about: acceptances and reads.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { Counter, Gauge, Histogram } from 'prom-client';
import { ERROR_CODES, type ErrorCode } from '../../domain/error.ts';
import { countServiceLevels } from '../../process/service-level.ts';
import type { ApiDeps } from '../deps.ts';
import { refusalOf } from '../http/client-error.ts';
import { ABORTED_STATUS, STATUS_OF } from '../http/error-handler.ts';
import { takesCredential } from './authentication.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The code of the problem that answered the request; set when the problem is sent. */
    refusal?: ErrorCode;
    /** Whether it was refused because of what its caller had under way. */
    isOwnBurst?: boolean;
    /** When its body was asked for, and when it was there. */
    bodySinceMs?: number;
    bodyUntilMs?: number;
    /** When its answer was handed to the connection. */
    answeredAtMs?: number;
  }
}

/** Seconds. The last bucket is the longest wait of a read (contract §6). */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const ACCEPTING = ['/v2/settle', '/v1/caribbean/settle'];
const OBJECTIVE_MS = { accept: 1_000, read: 500 } as const;
/** The codes that count as failures of the service. Other refusals are intended, also those with a status of 5xx. */
const FAULTS: readonly (ErrorCode | undefined)[] = ['internal_error', 'temporarily_unavailable'];

function objectiveOf(request: FastifyRequest): keyof typeof OBJECTIVE_MS | undefined {
  const { url = '', config } = request.routeOptions;
  if (!config.access || !takesCredential(config.access, request)) return undefined;
  if (request.method === 'GET') return 'read';
  return request.method === 'POST' && ACCEPTING.includes(url) ? 'accept' : undefined;
}

/** A read that waits is as slow as its caller wishes, and a CSV takes as long as it has lines. */
function mayTakeLong({ headers }: FastifyRequest, reply: FastifyReply, isAnswered: boolean): boolean {
  if (!isAnswered) return headers['prefer'] !== undefined || /\btext\/csv\b/.test(headers.accept ?? '');
  return reply.hasHeader('preference-applied') || /^text\/csv\b/.test(String(reply.getHeader('content-type')));
}

/** From the arrival to the answer, without the time that the caller took to send the body, or to read the answer. */
function durationOf({
  arrivedAtMs,
  bodySinceMs,
  bodyUntilMs,
  answeredAtMs = performance.now(),
}: FastifyRequest): number {
  const bodyMs = bodySinceMs === undefined ? 0 : (bodyUntilMs ?? answeredAtMs) - bodySinceMs;
  return answeredAtMs - arrivedAtMs - bodyMs;
}

export const metrics = fp(async (app: FastifyInstance, { deps }: { deps: Pick<ApiDeps, 'metrics'> }) => {
  if (!deps.metrics) return;
  const registers = [deps.metrics];
  const duration = new Histogram({
    name: 'settlement_http_request_duration_seconds',
    help: 'Requests by route template, method and status, and how long the service took to answer',
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
  new Gauge({
    name: 'settlement_http_low_priority_waiting',
    help: 'Requests of administration and lists that wait for their turn',
    registers,
    collect() {
      this.set(app.lowPriority.waiting());
    },
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
  app.addHook('preParsing', (request, _reply, payload, done) => {
    request.bodySinceMs = performance.now();
    done(null, payload);
  });
  app.addHook('preValidation', (request, _reply, done) => {
    request.bodyUntilMs = performance.now();
    done();
  });
  app.addHook('onSend', (request, _reply, payload, done) => {
    request.answeredAtMs = performance.now();
    done(null, payload);
  });
  app.onRequestEnd((request, reply, status) => {
    const { refusal } = request;
    const ms = durationOf(request);
    duration.observe({ route: request.routeOptions.url ?? 'none', method: request.method, status }, ms / 1_000);
    if (refusal !== undefined) refusals.inc({ code: refusal });
    const objective = objectiveOf(request);
    if (objective === undefined || request.isOwnBurst) return;
    const isFault = FAULTS.includes(refusal);
    const isAnswered = status !== ABORTED_STATUS;
    const isSlow = ms > OBJECTIVE_MS[objective] && !(objective === 'read' && mayTakeLong(request, reply, isAnswered));
    // A request that fails, or whose caller goes, may do so before it is known who sends it.
    const isAdmitted = Boolean(request.principal ?? request.consumer) && refusal !== 'rate_limited';
    if (isAnswered ? isFault || isAdmitted : isSlow) count(objective, !isFault && !isSlow);
  });
});
