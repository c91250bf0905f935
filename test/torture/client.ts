/**
 * HTTP as a careful partner uses it: every wait has a limit, and a request without an answer is sent again until
 * somebody answers. Only a request that may be sent twice is repeated.
 */
import { setTimeout as delay } from 'node:timers/promises';

const CALL_TIMEOUT_MS = 8_000;
const RETRY_PAUSE_MS = 150;
/** Longer than any fault of a plan lasts, a restart included. */
const PATIENCE_MS = 90_000;

// biome-ignore lint/suspicious/noExplicitAny: the oracle reads any field of an answer and judges it.
export type Json = any;

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Json;
};

export type Call = {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: object | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
};

export type HttpClient = {
  /** One attempt; undefined when there was no answer, or one that says that the service could not decide. */
  once(call: Call): Promise<Answer | undefined>;
  /**
   * Repeats the call until there is an answer.
   *
   * @throws Error when none came in 90 s
   */
  untilAnswered(call: Call): Promise<Answer>;
  /** Answers that no caller may get: 500, and anything that is not JSON where JSON is promised. */
  readonly broken: string[];
};

export function createHttpClient(baseUrl: string): HttpClient {
  const broken: string[] = [];
  const once = async ({ method = 'GET', path, body, headers = {} }: Call): Promise<Answer | undefined> => {
    try {
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body) }),
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      const text = await response.text();
      if (response.status === 503 || response.status === 429) return undefined;
      if (response.status >= 500) broken.push(`${method} ${path} answered ${response.status}: ${text.slice(0, 200)}`);
      if (response.status >= 500) return undefined;
      return { status: response.status, headers: response.headers, text, body: text === '' ? null : JSON.parse(text) };
    } catch {
      return undefined;
    }
  };
  return {
    broken,
    once,
    async untilAnswered(call) {
      const end = Date.now() + PATIENCE_MS;
      for (;;) {
        const answer = await once(call);
        if (answer) return answer;
        if (Date.now() > end)
          throw new Error(`${call.method ?? 'GET'} ${call.path} had no answer in ${PATIENCE_MS / 1_000} s`);
        await delay(RETRY_PAUSE_MS);
      }
    },
  };
}
