/**
 * Requests as the beginnings of traces, where traces are kept. A trace that a caller names is not joined: what belongs
 * together in our traces is for nobody outside to decide. Probes leave none.
 */
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import type { RequestSpan } from '../../process/tracing.ts';
import type { ApiDeps } from '../deps.ts';

declare module 'fastify' {
  interface FastifyRequest {
    span?: RequestSpan;
  }
}

export const tracing = fp(async (app: FastifyInstance, { deps: { requestTracing } }: { deps: ApiDeps }) => {
  if (!requestTracing) return;
  app.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.access?.uncounted) return;
    request.span = requestTracing.begin({ method: request.method, requestId: request.id });
  });
  // After the body: what hears of its end was set up with the connection, before the request was there.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span) request.span.run(done);
    else done();
  });
  app.addHook('onResponse', async (request, reply) => {
    const orgId = request.principal?.orgId ?? request.consumer?.orgId;
    request.span?.end({
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      orgId,
      refusal: request.refusal,
    });
  });
});
