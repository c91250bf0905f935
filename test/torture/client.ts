/**
 * HTTP by the transport of the TypeScript client, which sends each request once here: the oracle must see every single
 * answer. What had no answer is sent again. Every request of the suite may be sent twice: it is a read, has an
 * idempotency key, or asks for a state.
 */
import { transportOptions } from '../../clients/typescript/client.ts';
import { ApiError, ConnectionFailed, UnexpectedAnswer, ValidationFailed } from '../../clients/typescript/index.ts';
import type { Method } from '../../clients/typescript/operation.ts';
import { createTransport, type RawAnswer, withJson } from '../../clients/typescript/transport.ts';
import { stretched } from '../support/patience.ts';
import { until } from '../support/wait.ts';

const CALL_TIMEOUT_MS = stretched(8_000);
const ONE_ATTEMPT = { attemptsMax: 1, attemptTimeoutMs: CALL_TIMEOUT_MS, timeoutMs: CALL_TIMEOUT_MS };
const RETRY_PAUSE_MS = 150;
/** Longer than any fault of a plan, with the restart after it. */
const PATIENCE_MS = stretched(90_000);
const TRY_AGAIN = [429, 503];

// biome-ignore lint/suspicious/noExplicitAny: the oracle reads any field of an answer and checks it.
export type Json = any;

/** A refusal has neither headers nor bytes. */
export type Answer = RawAnswer & { readonly text: string; readonly body: Json };

export type Call = {
  readonly method?: Method;
  readonly path: string;
  /** A text is sent as it is. */
  readonly body?: object | string;
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
  /** Answers that no caller may get: a 5xx other than 503, and what is neither JSON nor a problem. */
  readonly broken: readonly string[];
};

export function createHttpClient(baseUrl: string): HttpClient {
  const broken: string[] = [];
  const once = async ({ method = 'GET', path, body, headers = {} }: Call): Promise<Answer | undefined> => {
    const send = createTransport(transportOptions({ baseUrl, ...ONE_ATTEMPT }, () => headers));
    const text = typeof body === 'object' ? JSON.stringify(body) : body;
    try {
      const raw = await send({ method, path, body: text, isRepeatable: false });
      return { ...raw, text: new TextDecoder().decode(raw.bytes), body: withJson<Json>(raw).data };
    } catch (error) {
      if (isUnanswered(error)) return undefined;
      if (error instanceof ValidationFailed) return refusal(error.status, { detail: error.faults });
      if (error instanceof ApiError && error.status < 500) return refusal(error.status, error.problem);
      broken.push(`${method} ${path}: ${error}`);
      return undefined;
    }
  };
  return {
    broken,
    once,
    untilAnswered: (call) =>
      until(`answer to ${call.method ?? 'GET'} ${call.path}`, () => once(call), {
        timeoutMs: PATIENCE_MS,
        everyMs: RETRY_PAUSE_MS,
      }),
  };
}

const refusal = (status: number, body: object): Answer => ({
  ...{ status, headers: new Headers(), bytes: new Uint8Array() },
  ...{ text: JSON.stringify(body), body },
});

/** There was no answer, or one that says "try again". */
function isUnanswered(error: unknown): boolean {
  if (error instanceof ApiError || error instanceof UnexpectedAnswer) return TRY_AGAIN.includes(error.status);
  return error instanceof ConnectionFailed;
}
