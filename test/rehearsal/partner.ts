/**
 * A careful partner of several APIs. It prefers an API that is ready, and repeats a request only where that is safe
 * (scripts/partner/client.ts). Every other failure is a fault of the service: it is counted, kept and not repeated.
 */
import {
  type ApiRequest,
  type ClientOptions,
  createClient,
  Fault,
  RETRY_REASONS,
  type Reply,
} from '../../scripts/partner/client.ts';
import { type Partner, signUp } from '../../scripts/partner/partner.ts';
import { answersReady } from '../../scripts/stack/product.ts';

/** What became of an attempt. */
export const OUTCOMES = ['answered', ...RETRY_REASONS, 'fault'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** The attempts by their outcome, the first faults in words, and the times of whole calls. */
export type Report = {
  readonly outcomes: Record<Outcome, number>;
  readonly faults: string[];
  readonly callTimesMs: number[];
};

export type CarefulPartner = Partner & {
  readonly recipientId: string;
  readonly report: Report;
  close(): Promise<void>;
};

const PROBE_INTERVAL_MS = 200;
/** Longer than a killed process needs until it is ready again. */
const DOWNTIME_MAX_MS = 120_000;
const FAULTS_MAX = 10;

/** A new organization with a recipient. What it does can be counted apart from earlier data. */
export async function createCarefulPartner(apiUrls: readonly string[], signal: AbortSignal): Promise<CarefulPartner> {
  const balancer = startBalancer(apiUrls);
  const report = emptyReport();
  const onRetry: ClientOptions['onRetry'] = (reason) => {
    report.outcomes[reason] += 1;
  };
  const client = createClient({ baseUrl: balancer.next, downtimeMaxMs: DOWNTIME_MAX_MS, signal, onRetry });
  const call = async (asked: ApiRequest): Promise<Reply> => {
    const startedMs = performance.now();
    try {
      const answer = await client.call(asked);
      report.outcomes.answered += 1;
      report.callTimesMs.push(performance.now() - startedMs);
      return answer;
    } catch (error) {
      if (error instanceof Fault) {
        report.outcomes.fault += 1;
        if (report.faults.length < FAULTS_MAX) report.faults.push(error.message);
      }
      throw error;
    }
  };
  const close = async (): Promise<void> => {
    balancer.stop();
    await client.close();
  };
  try {
    const partner = await signUp(call);
    return { ...partner, recipientId: await partner.createRecipient(), report, close };
  } catch (error) {
    await close();
    throw error;
  }
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

const emptyReport = (): Report => ({
  outcomes: Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<Outcome, number>,
  faults: [],
  callTimesMs: [],
});
