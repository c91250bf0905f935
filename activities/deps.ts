/** What activities may use; made once by `worker/main.ts`, or by a test. */
import type { Database } from '../db/client.ts';
import type { Sealer } from '../db/seal.ts';
import type { RuntimeEnvironment } from '../domain/runtime.ts';
import type { Certifier } from './certificate.ts';
import type { GuardedHttp } from './providers/guarded-http.ts';
import type { Mailer } from './providers/mailer.ts';

export type ActivityDeps = {
  readonly runtime: RuntimeEnvironment;
  readonly db: Database;
  readonly sealer: Sealer;
  readonly certifier: Certifier;
  /** Where the sandbox's simulated providers post their events. */
  readonly apiBaseUrl: string;
  readonly cardprocWebhookSecret: string;
  readonly bankledgerWebhookSecret: string;
  readonly idverifyWebhookSecret: string;
  /** Requests to addresses that partners chose. */
  readonly guardedHttp: GuardedHttp;
  /** Undefined where no mail server is configured. */
  readonly mailer: Mailer | undefined;
  /** Tells this process's dispatcher that something was committed. */
  readonly dispatcher: { nudge(): void };
  /** Real time, for what a provider stamps; the business gets the workflow's time as an argument. */
  readonly now: () => Date;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};
