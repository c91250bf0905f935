/** A collector of traces: a real HTTP server that keeps what it receives. */
import { z } from 'zod';
import { startHttpServer } from './http-server.ts';

const Attributes = z.array(
  z.object({
    key: z.string(),
    value: z.object({ stringValue: z.string().optional(), intValue: z.number().optional() }),
  }),
);
const Span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  attributes: Attributes.default([]),
  events: z.array(z.object({ name: z.string(), attributes: Attributes.default([]) })).default([]),
});
const Export = z.object({
  resourceSpans: z.array(z.object({ scopeSpans: z.array(z.object({ spans: z.array(Span) })) })),
});

export type CollectedSpan = z.infer<typeof Span>;

export async function startCollector() {
  /** The bodies as they were received. */
  const bodies: string[] = [];
  const credentials = new Set<string | undefined>();
  const { url, close } = await startHttpServer((response, { path, headers, body }) => {
    if (path === '/v1/traces') {
      bodies.push(body.toString());
      credentials.add(headers.authorization);
    }
    response.setHeader('content-type', 'application/json').end('{}');
  });
  const spans = (): CollectedSpan[] =>
    bodies.flatMap((body) =>
      Export.parse(JSON.parse(body)).resourceSpans.flatMap(({ scopeSpans }) =>
        scopeSpans.flatMap((scope) => scope.spans),
      ),
    );
  return { url, close, bodies, credentials, spans };
}
