/**
 * Calls what logs and counts requests once for each, when it is over. Registered first, so that it also has the
 * requests that a later hook refuses.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { ABORTED_STATUS } from '../http/error-handler.ts';
import { whenOver } from '../http/request-end.ts';

/** @param status of the answer; `ABORTED_STATUS` if the caller went before there was one */
type AtEnd = (request: FastifyRequest, reply: FastifyReply, status: number) => void;

declare module 'fastify' {
  interface FastifyInstance {
    onRequestEnd(run: AtEnd): void;
  }
}

export const requestEnd = fp(async (app: FastifyInstance) => {
  const runs: AtEnd[] = [];
  app.decorate('onRequestEnd', (run: AtEnd) => void runs.push(run));
  app.decorateRequest('arrivedAtMs', 0);
  app.addHook('onRequest', (request, reply, done) => {
    request.arrivedAtMs = performance.now();
    whenOver(request.raw, reply.raw, () => {
      const status = reply.raw.writableEnded ? reply.statusCode : ABORTED_STATUS;
      for (const run of runs) run(request, reply, status);
    });
    done();
  });
});
