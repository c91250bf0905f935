/** Traces, for whoever configures where they go. Without that, nothing of what keeps them is loaded. */
import type { ClientInterceptors } from '@temporalio/client';
import type { WorkerOptions } from '@temporalio/worker';
import type { GuardedHttp } from '../activities/providers/guarded-http.ts';
import type { RequestTracing } from '../api/plugins/tracing.ts';
import type { Config } from '../config.ts';
import type { OutboxRow } from '../db/queries/outbox.ts';

export type Tracing = {
  readonly requests: RequestTracing;
  /** For whoever starts and signals workflows. */
  readonly client: NonNullable<ClientInterceptors['workflow']>;
  /** For a worker with the traced bundle. */
  readonly worker: Pick<WorkerOptions, 'interceptors' | 'sinks'>;
  /** Runs a dispatch as part of the trace that its row carries. */
  traceDispatch(row: OutboxRow, dispatch: () => Promise<string | undefined>): Promise<string | undefined>;
  /** Keeps each request to a subscriber; what is sent stays the same, and names no trace. */
  traceHttp(http: GuardedHttp): GuardedHttp;
  /** Sends what has ended so far. */
  flush(): Promise<void>;
  /** Sends what is left. */
  close(): Promise<void>;
};

export type TracingOptions = { readonly service: string; readonly log: { warn(fields: Record<string, unknown>, message: string): void } };

/** @returns undefined where no traces are kept */
export async function loadTracing({ otlpEndpoint }: Pick<Config, 'otlpEndpoint'>, options: TracingOptions): Promise<Tracing | undefined> {
  if (otlpEndpoint === undefined) return undefined;
  const { startTracing } = await import('./opentelemetry.ts');
  return startTracing(otlpEndpoint, options);
}
