/**
 * Which parts of a span leave the process: times, names, the attributes listed here, and the kind of an error.
 * Everything else is removed, also what other packages add. So traces contain ids, and neither personal data nor
 * secrets.
 */
import type { Attributes } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';

/** The attributes that are kept, and the names they get. */
const KEPT: ReadonlyMap<string, string> = new Map([
  ['http.request.method', 'http.request.method'],
  ['http.route', 'http.route'],
  ['http.response.status_code', 'http.response.status_code'],
  ['error.type', 'error.type'],
  ['exception.type', 'exception.type'],
  ['request.id', 'request.id'],
  ['organization.id', 'organization.id'],
  ['settlement.id', 'settlement.id'],
  ['event.id', 'event.id'],
  ['outbox.attempts', 'outbox.attempts'],
  ['temporalWorkflowId', 'workflow.id'],
  ['workflowId', 'workflow.id'],
  ['run_id', 'workflow.run_id'],
  ['runId', 'workflow.run_id'],
  ['temporalActivityId', 'activity.id'],
]);

/** Removes from each span what must not leave the process, and passes the span to `exporter`. */
export function filterSpans(exporter: SpanExporter): SpanExporter {
  return {
    export: (spans, done) => exporter.export(spans.map(filtered), done),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

const filtered = (span: ReadableSpan): ReadableSpan => ({
  name: span.name,
  kind: span.kind,
  spanContext: () => span.spanContext(),
  ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
  startTime: span.startTime,
  endTime: span.endTime,
  status: { code: span.status.code },
  attributes: kept(span.attributes),
  links: [],
  events: span.events.map(({ name, time, attributes = {} }) => ({ name, time, attributes: kept(attributes) })),
  duration: span.duration,
  ended: span.ended,
  resource: span.resource,
  instrumentationLibrary: span.instrumentationLibrary,
  droppedAttributesCount: 0,
  droppedEventsCount: 0,
  droppedLinksCount: 0,
});

const kept = (attributes: Attributes): Attributes =>
  Object.fromEntries(
    Object.entries(attributes).flatMap(([key, value]) => {
      const name = KEPT.get(key);
      return name === undefined ? [] : [[name, value]];
    }),
  );
