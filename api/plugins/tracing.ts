/**
 * Begins a trace for each request, if tracing is configured. A `traceparent` of the caller is ignored: no caller may
 * join requests in our traces. Requests of probes are not traced.
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
  // After the body is read: the listeners of the body belong to the connection, where the span is not current.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span) request.span.run(done);
    else done();
  });
  app.onRequestEnd((request, _reply, status) => {
    const orgId = request.principal?.orgId ?? request.consumer?.orgId;
    request.span?.end({ route: request.routeOptions.url ?? 'none', status, orgId, refusal: request.refusal });
  });
});
