/** How the API and the worker close: in order at a signal or an unexpected error, at once at a fault of the process. */
import closeWithGrace from 'close-with-grace';

/**
 * The system handles them by ending the process. A handler of ours would return into the fault: the process would loop
 * without end, use a whole processor, and not react to SIGTERM.
 */
const FAULT_SIGNALS = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const;

/**
 * Calls `close` once, and then ends the process: with 0, or with 1 after an error or when `timeoutMs` is over.
 *
 * @returns what closes the process without a signal
 */
export function closeInOrder(
  timeoutMs: number,
  close: (reason: { readonly err?: unknown }) => Promise<void>,
): { readonly close: () => void } {
  return closeWithGrace({ delay: timeoutMs, logger: false, skip: [...FAULT_SIGNALS] }, close);
}
