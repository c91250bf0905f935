/**
 * An overloaded process answers 503 with Retry-After at once (contract §2), so that it does not answer all requests
 * late.
 */
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { DomainError } from '../../domain/error.ts';

/** The measure is the delay of answers. Utilization is not measured: a busy event loop can still answer in time. */
export const EVENT_LOOP_DELAY_MAX_MS = 2_000;
const SAMPLE_INTERVAL_MS = 500;

export const loadShedding = fp(async (app: FastifyInstance, { delayMaxMs }: { readonly delayMaxMs: number }) => {
  await app.register(underPressure, {
    maxEventLoopDelay: delayMaxMs,
    sampleInterval: SAMPLE_INTERVAL_MS,
    pressureHandler: (request, _reply, _type, value) => {
      // A busy process is alive, so its liveness probe is answered. The delay is infinite if the sampler saw no tick,
      // as after one long pause. That says nothing about the present delay.
      if (request.url === '/health/live' || value === Number.POSITIVE_INFINITY) return;
      throw new DomainError(
        'temporarily_unavailable',
        {},
        'The service is overloaded. Repeat the request after Retry-After. With the same Idempotency-Key this is safe.',
      );
    },
  });
});
