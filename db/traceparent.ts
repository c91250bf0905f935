/**
 * The current trace, as W3C Trace Context writes it; null where tracing is off. This module does not know which library
 * keeps the traces.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

const current = new AsyncLocalStorage<string>();

/** Runs a function, and everything that it starts, as part of a trace. */
export const inTrace = <T>(traceparent: string, run: () => T): T => current.run(traceparent, run);

/** The current trace; null where tracing is off. */
export const currentTraceparent = (): string | null => current.getStore() ?? null;
