/**
 * HTTP as a careful partner uses it: every wait is limited, and a request without an answer is sent again. Every
 * request of the suite may be sent twice: it is a read, has an idempotency key, or asks for a state.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { stretched } from '../support/patience.ts';

const CALL_TIMEOUT_MS = stretched(8_000);
const RETRY_PAUSE_MS = 150;
/** Longer than any fault of a plan, with the restart after it. */
const PATIENCE_MS = stretched(90_000);
const SHOWN_LENGTH = 200;

// biome-ignore lint/suspicious/noExplicitAny: the oracle reads any field of an answer and checks it.
export type Json = any;

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
  /** Null for an empty body, and for one that is not JSON. */
  readonly body: Json;
};

export type Call = {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: object | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
};

export type HttpClient = {
  /** Sends the request once. Undefined: no answer, or one that says "try again" (429, 5xx). */
  once(call: Call): Promise<Answer | undefined>;
  /**
   * Repeats the request until it is answered.
   *
   * @throws Error when there is no answer for 90 s
   */
  untilAnswered(call: Call): Promise<Answer>;
  /** Answers that no caller may get: a 5xx other than 503, and a JSON type without JSON. */
  readonly broken: readonly string[];
};

/**
 * @param baseUrl is asked before each request
 * @param broken is where broken answers are collected
 */
export function createHttpClient(baseUrl: () => string, broken: string[] = []): HttpClient {
  const once = async (call: Call): Promise<Answer | undefined> => {
    const answer = await send(baseUrl(), call).catch(() => undefined);
    if (!answer || answer.status === 503 || answer.status === 429) return undefined;
    const isBroken = answer.status >= 500 || (isJson(answer.headers) && answer.body === null);
    if (isBroken) {
      const shown = answer.text.slice(0, SHOWN_LENGTH);
      broken.push(`${call.method ?? 'GET'} ${call.path} was answered ${answer.status}: ${shown}`);
    }
    return isBroken ? undefined : answer;
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

async function send(baseUrl: string, { method = 'GET', path, body, headers = {} }: Call): Promise<Answer> {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body) }),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const text = bytes.toString();
  return { status: response.status, headers: response.headers, bytes, text, body: parse(text) };
}

const isJson = (headers: Headers): boolean => headers.get('content-type')?.includes('json') === true;

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
