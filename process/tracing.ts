/** Traces. They are off unless a collector is configured; then, and only then, the packages for tracing are loaded. */
import type { ClientInterceptors } from '@temporalio/client';
import type { WorkerOptions } from '@temporalio/worker';
import type { Config } from '../config/load.ts';
import type { OutboxRow } from '../db/queries/outbox.ts';
import type { ErrorCode } from '../domain/error.ts';

/** What the API uses of tracing: a span for each request. */
export type RequestTracing = { begin(request: { readonly method: string; readonly requestId: string }): RequestSpan };

export type RequestSpan = {
  /** Runs work as part of the request's trace, with everything that the work starts. */
  run(work: () => void): void;
  end(answer: {
    readonly route: string;
    readonly status: number;
    readonly orgId: string | undefined;
    readonly refusal: ErrorCode | undefined;
  }): void;
};

/** The part of a subscriber's answer that a span keeps. */
export type TracedAnswer = { readonly status: number | null; readonly error: string | null };

export type TracedHttp<Answer extends TracedAnswer> = {
  post(url: string, body: Buffer, headers: Readonly<Record<string, string>>, kept?: unknown): Promise<Answer>;
};

export type Tracing = {
  readonly requests: RequestTracing;
  /** For clients that start and signal workflows. */
  readonly client: NonNullable<ClientInterceptors['workflow']>;
  /** For a worker with the traced bundle. */
  readonly worker: Pick<WorkerOptions, 'interceptors' | 'sinks'>;
  /** Runs a dispatch as part of the trace that its row names. */
  traceDispatch(row: OutboxRow, dispatch: () => Promise<string | undefined>): Promise<string | undefined>;
  /** Makes a span of each request to a subscriber. The request itself is not changed, and names no trace. */
  traceHttp<Answer extends TracedAnswer>(http: TracedHttp<Answer>): TracedHttp<Answer>;
  /** Sends the spans that have ended so far. */
  flush(): Promise<void>;
  /** Sends the remaining spans, and stops. */
  close(): Promise<void>;
};

export type TracingOptions = {
  readonly service: string;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

/** @returns undefined when no collector is configured */
export async function loadTracing(
  { otlp }: Pick<Config, 'otlp'>,
  options: TracingOptions,
): Promise<Tracing | undefined> {
  if (otlp === undefined) return undefined;
  const { startTracing } = await import('./opentelemetry.ts');
  return startTracing(otlp, options);
}
