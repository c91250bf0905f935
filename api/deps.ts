/** What a route may use; made once by `api/main.ts`, or by a test. */
import type { Registry } from 'prom-client';
import type { Config } from '../config.ts';
import type { CommandDeps } from '../db/commands/commit.ts';
import type { IdentityProvider } from '../domain/idverify.ts';
import type { RequestTracing } from '../process/tracing.ts';
import type { CertificateKeys } from './http/certificate-key.ts';

export type ApiDeps = CommandDeps & {
  readonly config: Pick<
    Config,
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
  readonly certificateKeys: CertificateKeys;
  /** Undefined in a remote runtime without the provider's credentials. */
  readonly idverify: IdentityProvider | undefined;
  /** Whether Temporal answers; reported by readiness, decides nothing. */
  readonly temporalHealth: () => Promise<'up' | 'degraded'>;
  /** All addresses of a name, by DNS; rejects when it has none. */
  readonly resolveHost: (hostname: string) => Promise<readonly string[]>;
  /** Where requests are counted; nowhere without it. */
  readonly metrics?: Registry;
  /** What keeps requests as parts of traces; nobody does without it. */
  readonly requestTracing?: RequestTracing | undefined;
};
