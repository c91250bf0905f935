/**
 * A careful partner of several APIs. It prefers an API that is ready. Its client repeats a request only where that is
 * safe, and each attempt is counted by its outcome. Everything else is a fault of the service: it is kept, and ends the
 * call.
 */
import {
  ApiError,
  type Client,
  ConnectionFailed,
  type Retry,
  SettlementError,
} from '../../clients/typescript/index.ts';
import { type Partner, recipientBody, signUp } from '../../scripts/sandbox/partner.ts';
import { answersReady } from '../../scripts/stack/product.ts';

/** Why the contract lets a partner repeat a request (contract §2, §6). */
const RETRY_REASONS = [
  'not connected',
  'reset before an answer',
  '503 with Retry-After',
  '429 with Retry-After',
] as const;
/** What became of an attempt. */
export const OUTCOMES = ['answered', ...RETRY_REASONS, 'fault'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** The attempts by their outcome, the first faults in words, and the times of whole calls. */
export type Report = {
  readonly outcomes: Record<Outcome, number>;
  readonly faults: string[];
  readonly callTimesMs: number[];
};

export type CarefulPartner = Omit<Partner, 'client'> & {
  readonly recipientId: string;
  readonly report: Report;
  /** @throws SettlementError at a fault, which is then in the report */
  call<T>(send: (client: Client) => Promise<T>): Promise<T>;
  close(): void;
};

const PROBE_INTERVAL_MS = 200;
const LIMITS = {
  /** Longer than a killed process needs until it is ready again. */
  timeoutMs: 120_000,
  attemptTimeoutMs: 45_000,
  attemptsMax: Number.POSITIVE_INFINITY,
};
const FAULTS_MAX = 10;

/** The contract says nothing about repeating a request after half an answer. */
class HalfAnswer extends Error {}

/** A new organization with a recipient. What it does can be counted apart from earlier data. */
export async function createCarefulPartner(apiUrls: readonly string[], signal: AbortSignal): Promise<CarefulPartner> {
  const balancer = startBalancer(apiUrls);
  const report: Report = {
    outcomes: Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<Outcome, number>,
    faults: [],
    callTimesMs: [],
  };
  const baseUrl = apiUrls[0] ?? '';
  const fetchBalanced: typeof fetch = async (url, init) => {
    const response = await fetch(String(url).replace(baseUrl, balancer.next()), init);
    await response
      .clone()
      .arrayBuffer()
      .catch((cause: unknown) => {
        throw new HalfAnswer(`The answer ${response.status} broke off.`, { cause });
      });
    return response;
  };
  const onRetry = ({ error }: Retry): void => {
    signal.throwIfAborted();
    const reason = retryReason(error);
    if (reason === undefined) throw error;
    report.outcomes[reason] += 1;
  };
  const call = async <T>(send: () => Promise<T>): Promise<T> => {
    const startedMs = performance.now();
    try {
      const answer = await send();
      report.outcomes.answered += 1;
      report.callTimesMs.push(performance.now() - startedMs);
      return answer;
    } catch (error) {
      if (error instanceof SettlementError) {
        report.outcomes.fault += 1;
        const { cause } = error;
        if (report.faults.length < FAULTS_MAX)
          report.faults.push(cause instanceof HalfAnswer ? cause.message : error.message);
      }
      throw error;
    }
  };
  try {
    const { client, ...partner } = await call(() => signUp({ baseUrl, fetch: fetchBalanced, onRetry, ...LIMITS }));
    const { recipient_id: recipientId } = await call(() => client.recipients.create(recipientBody()));
    return { ...partner, recipientId, report, call: (send) => call(() => send(client)), close: balancer.stop };
  } catch (error) {
    balancer.stop();
    throw error;
  }
}

/** Undefined for a fault. */
function retryReason(error: SettlementError): (typeof RETRY_REASONS)[number] | undefined {
  if (error instanceof ConnectionFailed) {
    if (error.reason === 'not_connected') return 'not connected';
    return error.reason === 'timeout' || error.cause instanceof HalfAnswer ? undefined : 'reset before an answer';
  }
  if (!(error instanceof ApiError) || error.retryAfterSeconds === undefined) return undefined;
  return error.status === 429 ? '429 with Retry-After' : '503 with Retry-After';
}

/** Takes the APIs that are ready in turn, or all of them while none is ready. */
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
