/** The client of a partner. It is for servers: an API key must never be in a browser or in an app. */
import { accountGroups } from './account.ts';
import { catalogGroups } from './catalog.ts';
import type { Intent } from './intent.ts';
import { createRequest, type Request, sendIntent } from './request.ts';
import { RETRY_LIMITS, type RetryLimits } from './retry.ts';
import { settlementGroups } from './settlement.ts';
import { subscriptionGroups } from './subscription.ts';
import { type Answer, type CallOptions, createTransport, type Retry, type TransportOptions } from './transport.ts';

export type ConnectionOptions = Partial<RetryLimits> & {
  /** Such as `https://api.example.com`. With `http:`, only this machine: the sandbox at `http://127.0.0.1:3000`. */
  readonly baseUrl: string;
  /** Called before each wait for another attempt. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Another `fetch`, for example behind a proxy. */
  readonly fetch?: typeof fetch | undefined;
};

export type ClientOptions = ConnectionOptions & {
  /** `sk_…`. Without one, only what needs no key answers: `organizations.create`, `service.capabilities`. */
  readonly apiKey?: string | undefined;
};

/**
 * Bodies and answers are as on the wire: `snake_case`, money as decimal strings. Every method throws a
 * `SettlementError`; a call ends after `timeoutMs` (60 s) with all its attempts.
 */
export function createClient({ apiKey, ...options }: ClientOptions) {
  requireCredential('apiKey', apiKey);
  const send = createTransport(
    transportOptions(options, () => (apiKey === undefined ? undefined : { 'X-API-Key': apiKey })),
  );
  const request: Request = createRequest(send);
  return {
    ...settlementGroups(send, request),
    ...subscriptionGroups(send, request),
    ...accountGroups(send, request),
    ...catalogGroups(send, request),
    /** Any other operation of the OpenAPI document, with status and headers. */
    request,
    /** Sends any stored intent, for example that of an error. */
    send: <T>(intent: Intent<T>, callOptions?: CallOptions): Promise<Answer<T>> =>
      sendIntent(send, intent, callOptions),
  };
}

export type Client = ReturnType<typeof createClient>;

/** As `URL` writes them. */
const THIS_MACHINE = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** @throws TypeError when the base URL is not one of HTTPS, or of HTTP on this machine */
export function transportOptions(
  { baseUrl, onRetry, fetch: ownFetch = fetch, ...limits }: ConnectionOptions,
  credentials: TransportOptions['credentials'],
): TransportOptions {
  const url = /^https?:\/\//.test(baseUrl) && !/[?#@]/.test(baseUrl) ? parsed(baseUrl) : undefined;
  if (url === undefined)
    throw new TypeError(
      'baseUrl must be an address such as https://api.example.com, without a user, query or fragment.',
    );
  const { protocol, hostname } = url;
  if (protocol === 'http:' && !THIS_MACHINE.test(hostname))
    throw new TypeError('baseUrl must be https: a key must not be sent over http to another machine.');
  return {
    baseUrl: baseUrl.replace(/\/+$/, ''),
    credentials,
    limits: { ...RETRY_LIMITS, ...definedOnly(limits) },
    fetch: ownFetch,
    onRetry,
  };
}

/** After thousands of calls, `URL.canParse` of Node 20 and 22 refuses letters beyond ASCII. */
function parsed(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** @throws TypeError without the value, which an error of `fetch` would show in its text */
export function requireCredential(name: string, value: string | undefined): void {
  if (!/^[\x21-\x7e]*$/.test(value?.trim() ?? ''))
    throw new TypeError(`${name} has characters that no credential has.`);
}

const definedOnly = <T extends object>(values: T): Partial<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
