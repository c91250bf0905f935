/**
 * Requests to the API as a careful partner makes them. A request is repeated only where that is safe:
 * - The API did nothing: there was no connection, or it answered 429 with Retry-After.
 * - What the API did is unknown: the connection ended before an answer, or it answered 503 with Retry-After. Then only
 *   a GET is repeated, and a request with an Idempotency-Key, which the API executes once (contract §2 and §6).
 */
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';

export type ApiRequest = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly apiKey?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object | undefined;
  /** Without it, every 2xx is expected. */
  readonly expectStatus?: number;
};

export type Reply = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The exact body. */
  readonly text: string;
  /** The body read as JSON; empty when there is no body. */
  readonly json: Readonly<Record<string, unknown>>;
};

/** Why a request is sent again. */
export const RETRY_REASONS = [
  'not connected',
  'reset before an answer',
  '503 with Retry-After',
  '429 with Retry-After',
] as const;
export type RetryReason = (typeof RETRY_REASONS)[number];

/** A request failed and may not be repeated, or repeating it did not help. */
export class Fault extends Error {}

export type ClientOptions = {
  /** Called before each attempt. With several APIs, each attempt may go to another one. */
  readonly baseUrl: () => string;
  readonly connectionsMax?: number;
  /** How long connections may be refused or reset before that is a fault. */
  readonly downtimeMaxMs?: number;
  /** Ends the waits between attempts. */
  readonly signal?: AbortSignal;
  readonly onRetry?: (reason: RetryReason, waitMs: number) => void;
};

export type Client = {
  /**
   * @returns the answer, whatever its status
   * @throws Fault when there is no answer
   */
  send(asked: ApiRequest): Promise<Reply>;
  /** @throws Fault when there is no answer, or its status is not the expected one */
  call(asked: ApiRequest): Promise<Reply>;
  close(): Promise<void>;
};

type Attempt =
  | { readonly reply: Reply }
  | { readonly retry: RetryReason; readonly waitMs: number }
  | { readonly fault: string };

const ANSWER_TIMEOUT_MS = 45_000;
/** The limit for all attempts of one request while the API answers with Retry-After. */
const RETRY_AFTER_MAX_MS = 120_000;
const DOWNTIME_MAX_MS = 2_000;
const RECONNECT_MS = 50;
const CONNECTIONS_MAX = 128;
const FAULT_TEXT_LENGTH_MAX = 300;
const NO_CONNECTION = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT']);
const RESET = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

export function createClient({
  baseUrl,
  connectionsMax = CONNECTIONS_MAX,
  downtimeMaxMs = DOWNTIME_MAX_MS,
  signal,
  onRetry,
}: ClientOptions): Client {
  const agent = new Agent({
    connections: connectionsMax,
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
  });
  const send = async (asked: ApiRequest): Promise<Reply> => {
    const startedMs = performance.now();
    for (;;) {
      signal?.throwIfAborted();
      const attempt = await attemptOnce(agent, baseUrl(), asked);
      if ('reply' in attempt) return attempt.reply;
      if ('fault' in attempt) throw new Fault(`${asked.method} ${asked.path}: ${attempt.fault}`);
      const { retry, waitMs } = attempt;
      const limitMs = retry.endsWith('Retry-After') ? RETRY_AFTER_MAX_MS : downtimeMaxMs;
      if (performance.now() + waitMs > startedMs + limitMs)
        throw new Fault(`${asked.method} ${asked.path}: ${retry}, still after ${limitMs / 1_000} s`);
      onRetry?.(retry, waitMs);
      await delay(waitMs, undefined, signal && { signal });
    }
  };
  return {
    send,
    call: async (asked) => requireStatus(asked, await send(asked)),
    close: () => agent.close(),
  };
}

/** @throws Fault when the status is not the expected one */
export function requireStatus({ method, path, expectStatus }: ApiRequest, reply: Reply): Reply {
  const isExpected = expectStatus === undefined ? isSuccess(reply.status) : reply.status === expectStatus;
  if (isExpected) return reply;
  const wanted = expectStatus === undefined ? '' : `, not ${expectStatus}`;
  const text = reply.text.slice(0, FAULT_TEXT_LENGTH_MAX);
  throw new Fault(`${method} ${path} answered ${reply.status}${wanted}: ${text}`);
}

async function attemptOnce(agent: Agent, baseUrl: string, asked: ApiRequest): Promise<Attempt> {
  const { method, path, apiKey, idempotencyKey, headers, body } = asked;
  const sent = {
    ...(apiKey !== undefined && { 'X-API-Key': apiKey }),
    ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
    ...headers,
  };
  const isRepeatable = method === 'GET' || idempotencyKey !== undefined;
  try {
    const answer = await request(`${baseUrl}${path}`, {
      dispatcher: agent,
      method,
      headers: sent,
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text().catch((error: unknown) => error);
    // The answer had begun. The contract says nothing about repeating a request after half an answer.
    if (typeof text !== 'string') return { fault: `the answer ${answer.statusCode} broke off (${codeOf(text)})` };
    return judge(answer.statusCode, answer.headers, text, isRepeatable);
  } catch (error) {
    const code = codeOf(error);
    if (NO_CONNECTION.has(code)) return { retry: 'not connected', waitMs: RECONNECT_MS };
    if (RESET.has(code) && isRepeatable) return { retry: 'reset before an answer', waitMs: RECONNECT_MS };
    return { fault: `no answer (${code})` };
  }
}

function judge(status: number, headers: IncomingHttpHeaders, text: string, isRepeatable: boolean): Attempt {
  const waitMs = Number(headers['retry-after']) * 1_000;
  if (waitMs > 0 && status === 429) return { retry: '429 with Retry-After', waitMs };
  if (waitMs > 0 && status === 503 && isRepeatable) return { retry: '503 with Retry-After', waitMs };
  try {
    return { reply: { status, headers, text, json: text === '' ? {} : JSON.parse(text) } };
  } catch {
    return { fault: `the answer ${status} is not JSON: ${text.slice(0, FAULT_TEXT_LENGTH_MAX)}` };
  }
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);
