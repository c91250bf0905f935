/**
 * The trace that whatever is done now belongs to, as W3C Trace Context writes it. Who keeps traces, if anybody, is not
 * known here: where nobody does, none is current.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

const current = new AsyncLocalStorage<string>();

/** Runs something, and whatever follows from it, as part of a trace. */
export const inTrace = <T>(traceparent: string, run: () => T): T => current.run(traceparent, run);

export const currentTraceparent = (): string | null => current.getStore() ?? null;
