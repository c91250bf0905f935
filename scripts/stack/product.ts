/** The product's two processes, and how each tells that it is ready. */
import type { ServiceOptions } from './service.ts';

type ProductOptions = Pick<ServiceOptions, 'env' | 'logFile'> & {
  /** Of several, "2" say; without it there is one. */
  readonly ordinal?: string;
  readonly logLevel: string;
};

const PROBE_TIMEOUT_MS = 2_000;

/** @param options `url`: where this machine reaches it */
export const apiService = ({
  url,
  logLevel,
  ordinal,
  ...options
}: ProductOptions & { readonly url: string }): ServiceOptions => ({
  ...options,
  name: named('The API', ordinal),
  run: 'api/main.ts',
  // The line proves that it is ours: another stack's API may be the one that answers.
  isReady: async (log) => says(log, 'API ready', logLevel) && (await answersReady(url)),
});

export const workerService = ({ logLevel, ordinal, ...options }: ProductOptions): ServiceOptions => ({
  ...options,
  name: named('The worker', ordinal),
  run: 'worker/main.ts',
  isReady: (log) => says(log, 'worker ready', logLevel),
});

const named = (name: string, ordinal: string | undefined): string =>
  ordinal === undefined ? name : `${name} ${ordinal}`;

/** With a log level that hides the line there is nothing to wait for. */
const says = (log: string, line: string, logLevel: string): boolean =>
  log.includes(line) || !['info', 'debug'].includes(logLevel);

/** Whether the API at this address can take requests. */
export async function answersReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
