/** An overloaded process refuses at once instead of answering everybody late (contract §2: 503 with Retry-After). */
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { DomainError } from '../../domain/error.ts';

/** Answers are this late already; utilization alone says nothing about lateness, so it is not looked at. */
const EVENT_LOOP_DELAY_MAX_MS = 2_000;
const SAMPLE_INTERVAL_MS = 500;

export const loadShedding = fp(async (app: FastifyInstance) => {
  await app.register(underPressure, {
    maxEventLoopDelay: EVENT_LOOP_DELAY_MAX_MS,
    sampleInterval: SAMPLE_INTERVAL_MS,
    pressureHandler: (request, _reply, _type, value) => {
      // Whoever asks whether the process lives must not be told that it is dead because it is busy; and a sampler
      // that saw no tick at all reports an infinite delay, which after one long pause says nothing about now.
      if (request.url === '/health/live' || value === Number.POSITIVE_INFINITY) return;
      throw new DomainError(
        'temporarily_unavailable',
        {},
        'The service is overloaded. Repeat the request after the time that Retry-After tells; with the same Idempotency-Key that is safe.',
      );
    },
  });
});
