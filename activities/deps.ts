/** What activities use. `worker/main.ts` makes it once; tests make their own. */
import type { ChangeListener } from '../db/change-listener.ts';
import type { Database } from '../db/client.ts';
import type { CommandDeps } from '../db/commands/commit.ts';
import type { Runs } from '../db/commands/lost-run.ts';
import type { IdentityProvider } from '../domain/idverify.ts';
import type { RetentionDays } from '../domain/retention.ts';
import type { LaneReport } from '../domain/webhook.ts';
import type { Certifier } from './certificate.ts';
import type { GuardedHttp } from './providers/guarded-http.ts';
import type { Mailer } from './providers/mailer.ts';
import type { PayoutRail } from './providers/payout-rail.ts';

export type ActivityObserver = {
  /** @param of `isStep`: it is a step of a settlement. `isFailed`: by an error that is no refusal */
  activityEnded(activity: string, of: { isStep: boolean; isFailed: boolean; seconds: number }): void;
  /** A call to the payout rail failed. */
  payoutCallFailed(): void;
  /** A lane begins a first attempt, this long after it was due. It may have waited for a place of its endpoint. */
  deliveryTaken(lateSeconds: number, waitedForEndpoint: boolean): void;
};

/**
 * `now` is real time by this process's clock: for gates and for the dates of changes. Other rules get the workflow's time
 * as input, or go by the database's clock.
 */
export type ActivityDeps = CommandDeps & {
  /** The connections of the lanes, and of the retries. */
  readonly laneDb: Database;
  readonly retryDb: Database;
  readonly certifier: Certifier;
  /** The API to which the simulated providers post their events. */
  readonly apiBaseUrl: string;
  readonly cardprocWebhookSecret: string;
  readonly bankledgerWebhookSecret: string;
  readonly idverifyWebhookSecret: string;
  readonly payoutRail: PayoutRail;
  /** For requests to URLs that partners choose. */
  readonly guardedHttp: GuardedHttp;
  /** Undefined in a remote runtime without the provider's credentials. */
  readonly idverify: IdentityProvider | undefined;
  /** Undefined when no mail server is configured. */
  readonly mailer: Mailer | undefined;
  readonly runs: Runs;
  /** Shows operators what a lane did. */
  readonly reportLane: (workflowId: string, report: LaneReport) => Promise<void>;
  /** Wakes the lanes when there are deliveries to take. */
  readonly deliveriesDue: Pick<ChangeListener, 'subscribe'>;
  /** Aborted when the process begins to stop: long activities end then. */
  readonly stopping: AbortSignal;
  readonly retentionDays: RetentionDays;
  /** Counts what activities do; undefined in tests. */
  readonly observer?: ActivityObserver | undefined;
  readonly log: Record<'info' | 'warn', (fields: Record<string, unknown>, message: string) => void>;
};
