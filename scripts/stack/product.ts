/** The product's two processes, and how to know that each is ready. */
import type { ServiceOptions } from './service.ts';

type ProductOptions = Pick<ServiceOptions, 'env' | 'logFile'> & {
  /** For one of several, "2" for example. */
  readonly ordinal?: string;
  /** The compiled program; by default its source is compiled while it starts. */
  readonly program?: string;
};

const PROBE_TIMEOUT_MS = 2_000;

/** @param options `url`: the API's address on this machine */
export const apiService = ({
  url,
  ordinal,
  program = 'api/main.ts',
  ...options
}: ProductOptions & { readonly url: string }): ServiceOptions => ({
  ...withReadyLine(options),
  name: named('The API', ordinal),
  run: program,
  // The log line proves that this API answers, and not another stack's.
  isReady: async (log) => log.includes('API ready') && (await answersReady(url)),
});

export const workerService = ({ ordinal, program = 'worker/main.ts', ...options }: ProductOptions): ServiceOptions => ({
  ...withReadyLine(options),
  name: named('The worker', ordinal),
  run: program,
  isReady: (log) => log.includes('worker ready'),
});

const named = (name: string, ordinal: string | undefined): string =>
  ordinal === undefined ? name : `${name} ${ordinal}`;

/** At these levels, a line of the log says that the process is ready. */
const withReadyLine = <Options extends Pick<ServiceOptions, 'env'>>(options: Options): Options => ({
  ...options,
  env: { ...options.env, LOG_LEVEL: options.env['LOG_LEVEL'] === 'debug' ? 'debug' : 'info' },
});

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
