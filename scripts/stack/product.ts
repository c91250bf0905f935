/** The product's two processes, and how to know that each is ready. */
import type { ServiceOptions } from './service.ts';

type ProductOptions = Pick<ServiceOptions, 'env' | 'logFile'> & {
  /** For one of several, "2" for example. */
  readonly ordinal?: string;
  readonly logLevel: string;
  /** The compiled program; by default its source is compiled while it starts. */
  readonly program?: string;
};

const PROBE_TIMEOUT_MS = 2_000;

/** @param options `url`: the API's address on this machine */
export const apiService = ({
  url,
  logLevel,
  ordinal,
  program = 'api/main.ts',
  ...options
}: ProductOptions & { readonly url: string }): ServiceOptions => ({
  ...options,
  name: named('The API', ordinal),
  run: program,
  // The log line proves that this API answers, and not another stack's.
  isReady: async (log) => hasLogged(log, 'API ready', logLevel) && (await answersReady(url)),
});

export const workerService = ({
  logLevel,
  ordinal,
  program = 'worker/main.ts',
  ...options
}: ProductOptions): ServiceOptions => ({
  ...options,
  name: named('The worker', ordinal),
  run: program,
  isReady: (log) => hasLogged(log, 'worker ready', logLevel),
});

const named = (name: string, ordinal: string | undefined): string =>
  ordinal === undefined ? name : `${name} ${ordinal}`;

/** Counts as logged if the log level hides the line. */
const hasLogged = (log: string, line: string, logLevel: string): boolean =>
  log.includes(line) || !['info', 'debug'].includes(logLevel);

/** Whether the API at this address is ready. */
export async function answersReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
