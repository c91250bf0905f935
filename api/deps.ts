/** What a route may use; made once by `api/main.ts`, or by a test. */
import type { Registry } from 'prom-client';
import type { Config } from '../config.ts';
import type { Database } from '../db/client.ts';
import type { Sealer } from '../db/seal.ts';
import type { IdentityProvider } from '../domain/idverify.ts';
import type { RequestTracing } from '../process/tracing.ts';
import type { CertificateKeys } from './certificate-key.ts';

export type ApiDeps = {
  readonly config: Pick<
    Config,
    | 'runtime'
    | 'publicBaseUrl'
    | 'apiKeyPeppers'
    | 'cardprocWebhookSecrets'
    | 'bankledgerWebhookSecrets'
    | 'idverifyWebhookSecrets'
    | 'idverify'
    | 'smtpUrl'
    | 'webhookAllowLocalTargets'
    | 'rateLimitPerMinute'
    | 'logLevel'
  >;
  readonly db: Database;
  readonly sealer: Sealer;
  readonly certificateKeys: CertificateKeys;
  /** Undefined in a remote runtime without the provider's credentials. */
  readonly idverify: IdentityProvider | undefined;
  /** Tells this process's dispatcher that something was committed; never waits (design §1.2). */
  readonly dispatcher: { nudge(): void };
  /** Whether Temporal answers; reported by readiness, decides nothing. */
  readonly temporalHealth: () => Promise<'up' | 'degraded'>;
  /** All addresses of a name, by DNS; rejects when it has none. */
  readonly resolveHost: (hostname: string) => Promise<readonly string[]>;
  readonly now: () => Date;
  /** Where requests are counted; nowhere without it. */
  readonly metrics?: Registry;
  /** What keeps requests as parts of traces; nobody does without it. */
  readonly requestTracing?: RequestTracing | undefined;
};
