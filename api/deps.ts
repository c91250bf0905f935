/** What routes use. It is made once, by `api/main.ts` or by a test. */
import type { Registry } from 'prom-client';
import type { Config } from '../config/load.ts';
import type { ChangeListener } from '../db/change-listener.ts';
import type { CommandDeps } from '../db/commands/commit.ts';
import type { LongLists } from '../db/queries/long-list.ts';
import type { ReadList } from '../db/replica.ts';
import type { IdentityProvider } from '../domain/idverify.ts';
import type { TemporalHealth } from '../domain/temporal-health.ts';
import type { CreateApplicant } from '../process/applicant.ts';
import type { RequestTracing } from '../process/tracing.ts';
import type { CertificateKeys } from './http/certificate-key.ts';
import type { InFlight } from './plugins/in-flight.ts';
import type { LowPriority } from './plugins/turn.ts';

export type ApiDeps = CommandDeps & {
  readonly config: Pick<
    Config,
    | 'publicBaseUrl'
    | 'apiKeyPeppers'
    | 'cardprocWebhookSecrets'
    | 'bankledgerWebhookSecrets'
    | 'idverifyWebhookSecrets'
    | 'idverify'
    | 'idverifyLevelNames'
    | 'smtpUrl'
    | 'webhookAllowLocalTargets'
    | 'trustedProxies'
    | 'consumerAllowedOrigins'
    | 'rateLimitPerMinute'
    | 'outboxMaxRows'
    | 'retentionDays'
    | 'logLevel'
  >;
  readonly certificateKeys: CertificateKeys;
  /** The lists that this process knows to be longer than the counting limit. */
  readonly longLists: LongLists;
  /** Lists may be answered by a replica. */
  readonly readList: ReadList;
  /** Wakes reads that wait for a settlement to change. */
  readonly changes: Pick<ChangeListener, 'subscribe'>;
  /** Undefined in a remote runtime without the provider's credentials. */
  readonly idverify: IdentityProvider | undefined;
  /** Has a worker create an applicant at the provider, and waits for it. */
  readonly createApplicant: CreateApplicant;
  /** Readiness shows it, and does not depend on it. */
  readonly temporalHealth: () => Promise<TemporalHealth>;
  /** All addresses of a host name, by DNS. Rejects if the name does not resolve. */
  readonly resolveHost: (hostname: string) => Promise<readonly string[]>;
  /** How late this process may be before it refuses requests; undefined: as late as in production. */
  readonly eventLoopDelayMaxMs?: number;
  /** How many requests may be under way; undefined: as many as in production. */
  readonly inFlight?: InFlight;
  /** How many requests of low priority are handled at once; undefined: as many as in production. */
  readonly lowPriority?: LowPriority;
  /** Where requests are counted; undefined without metrics. */
  readonly metrics?: Registry;
  /** Records a trace of each request; undefined without tracing. */
  readonly requestTracing?: RequestTracing | undefined;
};
