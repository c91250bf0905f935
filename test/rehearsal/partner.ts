/**
 * A careful partner before several APIs: it prefers one that says it is ready, and repeats a request only after what the
 * interface says is safe: no connection, a connection that ended before an answer began, or 503 and 429 with Retry-After.
 * Whatever else goes wrong is a fault of ours: it is counted, kept and not repeated.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { answersReady } from '../../scripts/stack/product.ts';

/** What became of one attempt. */
export const OUTCOMES = [
  'answered',
  'not connected',
  'reset before an answer',
  '503 with Retry-After',
  '429 with Retry-After',
  'fault',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** What the partner cannot simply repeat; it is in the report. */
export class Fault extends Error {}

export type Partner = {
  /** An organization of its own, so that what it makes can be counted apart. */
  readonly orgId: string;
  readonly recipientId: string;
  /** @throws Fault */
  call(asked: Asked): Promise<unknown>;
  /** Since the last time it was asked: attempts by what became of them, the first faults in words, times of the calls in ms. */
  report(): Report;
  close(): Promise<void>;
};

export type Report = {
  readonly outcomes: Record<Outcome, number>;
  readonly faults: readonly string[];
  readonly callTimesMs: readonly number[];
};

type Asked = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
};
type Attempt = { readonly outcome: Outcome; readonly text: string; readonly retryAfterMs: number };

const PROBE_INTERVAL_MS = 200;
const RETRY_MS = 50;
const ANSWER_TIMEOUT_MS = 45_000;
const CALL_TIMEOUT_MS = 120_000;
const CONNECTIONS_MAX = 128;
const FAULTS_MAX = 10;
const NO_CONNECTION = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT']);
const RESET = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

const Organization = z.object({ org_id: z.string(), api_key: z.string() });
const Recipient = z.object({ recipient_id: z.string() });

export async function createPartner(apiUrls: readonly string[], signal: AbortSignal): Promise<Partner> {
  const agent = new Agent({ connections: CONNECTIONS_MAX, headersTimeout: ANSWER_TIMEOUT_MS });
  const balancer = startBalancer(apiUrls);
  let told = emptyReport();
  let apiKey: string | undefined;
  const refuse = ({ method, path }: Asked, text: string): never => {
    told.outcomes.fault += 1;
    if (told.faults.length < FAULTS_MAX) told.faults.push(`${method} ${path}: ${text}`);
    throw new Fault(text);
  };
  const call = async (asked: Asked): Promise<unknown> => {
    const startedAt = performance.now();
    while (performance.now() < startedAt + CALL_TIMEOUT_MS) {
      signal.throwIfAborted();
      const { outcome, text, retryAfterMs } = await attempt(agent, balancer.next(), asked, apiKey);
      if (outcome === 'fault') return refuse(asked, text);
      told.outcomes[outcome] += 1;
      if (outcome === 'answered') {
        told.callTimesMs.push(performance.now() - startedAt);
        return JSON.parse(text);
      }
      await delay(retryAfterMs);
    }
    return refuse(asked, `no answer in ${CALL_TIMEOUT_MS / 1_000} s`);
  };
  const { org_id: orgId, api_key: key } = Organization.parse(
    await call({ method: 'POST', path: '/v1/orgs', body: ORGANIZATION }),
  );
  apiKey = key;
  const { recipient_id: recipientId } = Recipient.parse(
    await call({ method: 'POST', path: '/v1/recipients', body: RECIPIENT }),
  );
  return {
    orgId,
    recipientId,
    call,
    report: () => {
      const report = told;
      told = emptyReport();
      return report;
    },
    close: async () => {
      balancer.stop();
      await agent.close();
    },
  };
}

const ORGANIZATION = { name: 'Rehearsal', country: 'JM', contact_email: 'rehearsal@acme.example' };
const RECIPIENT = {
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'National Commercial Bank', account_number: '123456789', currency: 'JMD' },
};

/** One after the other among those that said they are ready; among all when none does. */
function startBalancer(apiUrls: readonly string[]) {
  const ready = new Set(apiUrls);
  let turn = 0;
  const probe = () =>
    Promise.all(
      apiUrls.map(async (url) => {
        if (await answersReady(url)) ready.add(url);
        else ready.delete(url);
      }),
    );
  const timer = setInterval(() => void probe(), PROBE_INTERVAL_MS);
  return {
    next: (): string => {
      const candidates = ready.size > 0 ? [...ready] : apiUrls;
      turn += 1;
      return candidates[turn % candidates.length] ?? '';
    },
    stop: () => clearInterval(timer),
  };
}

async function attempt(
  agent: Agent,
  apiUrl: string,
  { method, path, body, headers }: Asked,
  apiKey: string | undefined,
): Promise<Attempt> {
  const sent = {
    ...headers,
    ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    ...(body && { 'content-type': 'application/json' }),
  };
  try {
    const answer = await request(`${apiUrl}${path}`, {
      dispatcher: agent,
      method,
      headers: sent,
      body: body ? JSON.stringify(body) : null,
    });
    // From here on an answer has begun: when it breaks off, nobody told the caller that it may be repeated.
    const text = await answer.body.text().catch((error: unknown) => error);
    if (typeof text !== 'string')
      return { outcome: 'fault', text: `the answer ${answer.statusCode} broke off (${codeOf(text)})`, retryAfterMs: 0 };
    return judged(answer.statusCode, answer.headers['retry-after'], text);
  } catch (error) {
    const code = codeOf(error);
    const outcome = NO_CONNECTION.has(code) ? 'not connected' : RESET.has(code) ? 'reset before an answer' : 'fault';
    return { outcome, text: `no answer (${code})`, retryAfterMs: RETRY_MS };
  }
}

function judged(status: number, retryAfter: string | string[] | undefined, text: string): Attempt {
  if (status < 300) return { outcome: 'answered', text, retryAfterMs: 0 };
  const retryAfterMs = Number(retryAfter) * 1_000;
  if (retryAfterMs > 0 && status === 503) return { outcome: '503 with Retry-After', text, retryAfterMs };
  if (retryAfterMs > 0 && status === 429) return { outcome: '429 with Retry-After', text, retryAfterMs };
  return { outcome: 'fault', text: `${status} ${text.slice(0, 300)}`, retryAfterMs: 0 };
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);

const emptyReport = () => ({
  outcomes: Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<Outcome, number>,
  faults: [] as string[],
  callTimesMs: [] as number[],
});
