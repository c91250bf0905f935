/** What activities may use; made once by `worker/main.ts`, or by a test. */
import type { CommandDeps } from '../db/commands/commit.ts';
import type { Certifier } from './certificate.ts';
import type { GuardedHttp } from './providers/guarded-http.ts';
import type { Mailer } from './providers/mailer.ts';

/** `now` is real time, for what a provider stamps; business rules use the workflow's time, which is an argument. */
export type ActivityDeps = CommandDeps & {
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
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};
