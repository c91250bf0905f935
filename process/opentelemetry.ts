/**
 * Traces by OpenTelemetry, sent by OTLP over HTTP. Only `tracing.ts` loads this file. One trace runs from a request
 * through the outbox to the workflow, its activities and the deliveries that follow. The packages read the sampling
 * rate from the standard OTEL_ variables.
 */
import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { baggageUtils, setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { Resource } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { OpenTelemetryWorkflowClientInterceptor } from '@temporalio/interceptors-opentelemetry/lib/client/index.js';
import {
  makeWorkflowExporter,
  OpenTelemetryActivityInboundInterceptor,
} from '@temporalio/interceptors-opentelemetry/lib/worker/index.js';
import type { Config } from '../config/load.ts';
import { currentTraceparent, inTrace } from '../db/traceparent.ts';
import { settlementOfMessage } from '../domain/outbox.ts';
import { filterSpans } from './span-filter.ts';
import type { RequestTracing, TracedAnswer, TracedHttp, Tracing, TracingOptions } from './tracing.ts';

const EXPORT_TIMEOUT_MS = 5_000;
const SERVER_ERRORS_FROM = 500;
const FAILED = { code: SpanStatusCode.ERROR };

/**
 * @param collector its URL, without the path `/v1/traces`, and the headers for it, as OTEL_EXPORTER_OTLP_HEADERS has
 * them
 */
export function startTracing(collector: NonNullable<Config['otlp']>, { service, log }: TracingOptions): Tracing {
  const resource = Resource.default().merge(new Resource({ 'service.name': service }));
  const exporter = new OTLPTraceExporter({
    url: `${collector.endpoint}/v1/traces`,
    headers: baggageUtils.parseKeyPairsIntoRecord(collector.headers),
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const processor = new BatchSpanProcessor(filterSpans(exporter), { exportTimeoutMillis: EXPORT_TIMEOUT_MS });
  const provider = new BasicTracerProvider({ resource, spanProcessors: [processor] });
  setGlobalErrorHandler((error) => log.warn({ err: error }, 'traces could not be sent'));
  provider.register({
    contextManager: new AsyncLocalStorageContextManager().enable(),
    propagator: new W3CTraceContextPropagator(),
  });
  const tracer = provider.getTracer('settlement-service');
  return {
    requests: traceRequests(tracer),
    client: [new OpenTelemetryWorkflowClientInterceptor({ tracer })],
    worker: {
      interceptors: {
        activity: [
          (activity) => ({ inbound: new OpenTelemetryActivityInboundInterceptor(activity, { tracer }) }),
          () => ({ inbound: { execute: (input, next) => inCurrentTrace(() => next(input)) } }),
        ],
      },
      sinks: { exporter: makeWorkflowExporter(processor, resource) },
    },
    traceDispatch: traceDispatches(tracer),
    traceHttp: (http) => traceHttp(tracer, http),
    flush: () => provider.forceFlush(),
    close: () => provider.shutdown(),
  };
}

const traceRequests = (tracer: Tracer): RequestTracing => ({
  begin: ({ method, requestId }) => {
    const attributes = { 'http.request.method': method, 'request.id': requestId };
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, ROOT_CONTEXT);
    return {
      run: (work) => context.with(trace.setSpan(ROOT_CONTEXT, span), () => inCurrentTrace(work)),
      end: ({ route, status, orgId, refusal }) => {
        span
          .updateName(`${method} ${route}`)
          .setAttributes({ 'http.route': route, 'http.response.status_code': status });
        if (orgId !== undefined) span.setAttribute('organization.id', orgId);
        if (refusal !== undefined) span.setAttribute('error.type', refusal);
        if (status >= SERVER_ERRORS_FROM) span.setStatus(FAILED);
        span.end();
      },
    };
  },
});

const traceDispatches =
  (tracer: Tracer): Tracing['traceDispatch'] =>
  (row, dispatch) => {
    const { kind, traceparent, attempts } = row;
    const attributes = {
      'organization.id': row.context.orgId,
      'settlement.id': settlementOfMessage(row),
      'outbox.attempts': attempts,
    };
    const parent = traceparent === null ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
    return tracer.startActiveSpan(
      `dispatch ${kind}`,
      { kind: SpanKind.PRODUCER, attributes },
      parent,
      untilDone(dispatch, (error) => error),
    );
  };

const traceHttp = <Answer extends TracedAnswer>(tracer: Tracer, http: TracedHttp<Answer>): TracedHttp<Answer> => ({
  post: (url, body, headers, kept) => {
    const attributes = { 'http.request.method': 'POST', 'event.id': headers['webhook-id'] };
    const post = async (span: Span) => {
      const answer = await http.post(url, body, headers, kept);
      if (answer.status !== null) span.setAttribute('http.response.status_code', answer.status);
      return answer;
    };
    // The trace of the event, not that of the run, which delivers events of many traces.
    const traceparent = currentTraceparent();
    return tracer.startActiveSpan(
      'POST to subscriber',
      { kind: SpanKind.CLIENT, attributes },
      traceparent === null ? context.active() : propagation.extract(ROOT_CONTEXT, { traceparent }),
      untilDone(post, ({ error }) => error ?? undefined),
    );
  },
});

/** Runs work whose outbox rows get the trace that is active now. */
function inCurrentTrace<T>(work: () => T): T {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent === undefined ? work() : inTrace(carrier.traceparent, work);
}

/** Ends the span when the work ends. It is marked as failed when `errorOf` finds the kind of an error in the result. */
const untilDone =
  <T>(work: (span: Span) => Promise<T>, errorOf: (result: T) => string | undefined) =>
  async (span: Span): Promise<T> => {
    try {
      const result = await work(span);
      const error = errorOf(result);
      if (error !== undefined) span.setAttribute('error.type', error).setStatus(FAILED);
      return result;
    } catch (error) {
      span.setStatus(FAILED);
      throw error;
    } finally {
      span.end();
    }
  };
